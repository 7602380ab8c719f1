"""Facets of a code: side, trimester, encounter and wound, apart from what the code names.

ICD-10-CM writes one condition as up to a hundred codes. The index keeps one entry for all of them,
and the facets choose among the codes. The words follow the ICD-10-CM tabular list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache


class Side(StrEnum):
    """The side that a code or a text states."""

    NONE = ""
    LEFT = "L"
    RIGHT = "R"
    BOTH = "B"
    OPEN = "U"
    """The code belongs to a family with sides and leaves the side open."""


SIDE_NAMES = {Side.LEFT: "left", Side.RIGHT: "right", Side.BOTH: "bilateral"}
STATED = frozenset(SIDE_NAMES)


@dataclass(frozen=True, slots=True)
class Facets:
    """What distinguishes codes of one family; an empty string states nothing."""

    side: Side = Side.NONE
    trimester: str = ""
    """`1`, `2`, `3`, or `0` where the code leaves the trimester open."""
    encounter: str = ""
    """`A` initial, `D` subsequent, `S` sequela: the first letter of each group of ICD-10-CM."""
    wound: str = ""
    """`closed`, `open` or `open3` (type III)."""
    healing: str = ""
    """`routine`, `delayed`, `nonunion` or `malunion`."""
    fetus: str = ""
    """The number of the fetus, or `0` where the code leaves the number open."""
    specimen: str = ""
    """`blood`, `urine`, `csf`, `cells` or `fluid` of a laboratory test."""

    def __str__(self) -> str:
        return ";".join(getattr(self, each.name) for each in fields(self))

    @classmethod
    def read(cls, text: str) -> Facets:
        """Return the facets that `str` wrote."""
        side, *others = text.split(";")
        return cls(Side(side), *others)


SPECIMENS = {
    **dict.fromkeys(("serum", "plasma", "venous_blood", "whole_blood"), "blood"),
    **dict.fromkeys(("urine", "urine_24_h", "urinary"), "urine"),
    **dict.fromkeys(("csf", "cerebrospinal"), "csf"),
    **dict.fromkeys(("pleural", "synovial", "peritoneal", "ascitic", "fluid"), "fluid"),
    "red_blood_cells": "cells",
}
"""Specimens as sources and clinicians write them → the specimen as a facet."""
_ENCOUNTER = re.compile(r",?\s*\b(initial encounter|subsequent encounter|sequela)\b(.*)$", re.S)
_TRIMESTER = re.compile(r",?\s*\b(unspecified|first|second|third) trimester\b")
_FETUS = re.compile(r",\s*(?:fetus (\d)|other fetus|not applicable or unspecified)$")
_SIDE = re.compile(r"\b(left|right|bilateral)\b", re.I)
_OPEN_SIDE = re.compile(r"\bunspecified\b\s*", re.I)
_LETTERS = {"initial encounter": "A", "subsequent encounter": "D", "sequela": "S"}
_TRIMESTERS = {"unspecified": "0", "first": "1", "second": "2", "third": "3"}


@lru_cache(maxsize=20_000)
def of_display(display: str) -> tuple[str, Facets]:
    """Return the text of a code without its facets, and the facets."""
    text = display
    encounter = wound = healing = trimester = fetus = ""
    if match := _ENCOUNTER.search(text):
        text, encounter = text[: match.start()], _LETTERS[match[1]]
        wound, healing = wound_of(match[2]), healing_of(match[2])
    if match := _FETUS.search(text):
        text, fetus = text[: match.start()], match[1] or ("9" if "other" in match[0] else "0")
    if match := _TRIMESTER.search(text):
        text = text[: match.start()] + text[match.end() :]
        trimester = _TRIMESTERS[match[1]]
    sides = {found.lower() for found in _SIDE.findall(text)}
    side = side_of(sides)
    return _SIDE.sub(" ", text).strip(" ,"), Facets(
        side, trimester, encounter, wound, healing, fetus
    )


def without_open_side(text: str) -> list[str]:
    """Return the text without each of its words "unspecified" in turn."""
    return [text[: match.start()] + text[match.end() :] for match in _OPEN_SIDE.finditer(text)]


def side_of(sides: set[str]) -> Side:
    """Return the side that these words state."""
    if "bilateral" in sides or {"left", "right"} <= sides:
        return Side.BOTH
    if "left" in sides:
        return Side.LEFT
    return Side.RIGHT if "right" in sides else Side.NONE


def wound_of(text: str) -> str:
    """Return the wound that a text states."""
    if re.search(r"\b(?:open|compound)\b", text):
        return "open3" if re.search(r"\btypes?:? (?:iii|3)", text, re.I) else "open"
    return "closed" if "closed" in text else ""


def healing_of(text: str) -> str:
    """Return the healing that a text states."""
    return next((h for h in ("routine", "delayed", "nonunion", "malunion") if h in text), "")
