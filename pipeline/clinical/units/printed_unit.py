"""Read one printed unit as a UCUM code, or as unknown.

A unit is looked up as a whole. Otherwise each part between slashes is looked up, and every part
must be known. Blanks, micro signs and raised figures do not matter; case matters where the table
says so.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from pipeline.clinical.units.unit_table import Spellings, plain, sections

_LONGEST = 40
_LONGEST_NAME = 500
_MOST_PARTS = 4
_POWER = re.compile(
    r"(?:[x*]?10(?:\^|\*{1,2}|e|\(|\^\(|\*\()?|x10)(?P<n>3|6|9|12)\)?/(?P<volume>[a-z0-9^.]+)", re.I
)
_SCALED = re.compile(r"(?P<n>[1-9][0-9]{0,3})(?P<unit>[a-z]+)", re.I)
_CELL_COUNT = re.compile(
    r"\b(?:wbcs?|rbcs?|white|red (?:blood )?cells?|red blood|leu[ck]o\w*|plt|platelets?|thrombo\w*"
    r"|erythro(?:cytes?|zyten|\b)|lympho?\w*|mono(?:s|cytes)?|neut\w*|eos\w*|baso\w*|granulo\w*|anc"
    r"|plaquettes|plaquetas|h[ée]maties|hemat[ií]es|retic\w*|blasts?|bands?|cd[348])\b",
    re.I,
)
_NO_COUNT = re.compile(r"\b(?:poietin|sedimentation|esterase|volume|width|mcv|mpv|rdw)\b", re.I)
_ENZYME = re.compile(
    r"\w{3,}ase\b|\benzyme\b|\b(?:ast|sgot|alt|sgpt|alp|ggtp?|gamma[ -]?gt|ldh?|ck|cpk|ck[ -]?mb"
    r"|che|alkp|alk[ -]?phos|got|gpt|g[ -]?6[ -]?pd)\b",
    re.I,
)
_PROTEIN = re.compile(
    r"\b(?:(?:pre)?albumin|(?:total )?proteins?|\w*globulins?|h[a]?emoglobin|hgb|hb"
    r"|fibrinogen|ig[gam]|mchc|transferrin|haptoglobin)\b",
    re.I,
)
_NO_ENZYME = re.compile(r"\b(?:anti(?:body|bodies)?|ab|abs|igg|iga|igm|inhibitor)\b|anti-", re.I)


class UnitContext(StrEnum):
    """The kind of value that a unit belongs to."""

    LAB = "lab"
    VITAL = "vital"
    MEDICATION = "medication"


def ucum_code(
    printed: str, *, context: UnitContext = UnitContext.LAB, name: str = ""
) -> str | None:
    """Return the UCUM code of a printed unit; None if the unit is unknown or has two meanings.

    `name` is the printed name of the analyte, the vital sign or the drug.
    """
    if len(printed) > _LONGEST or len(name) > _LONGEST_NAME:
        return None
    text = plain(printed).strip(",;:")
    if not text:
        return None
    found = _code_of(text, context, name)
    return found if found is not None or text[-1] != "." else _code_of(text[:-1], context, name)


@lru_cache(maxsize=4096)
def _code_of(text: str, context: UnitContext, name: str) -> str | None:
    if context is UnitContext.LAB and text in ("L", "l") and "volume" not in name.casefold():
        # Behind a result the letter is the flag of a low value.
        return None
    contexts = _contexts(context, name)
    whole = _lookup(text, "whole", contexts)
    if whole is not None:
        return whole
    if context is UnitContext.LAB and (m := _POWER.fullmatch(text)):
        volume = _lookup(m["volume"], "token", ("any",))
        return f"10*{m['n']}/{volume}" if volume in _VOLUMES else None
    if context is UnitContext.VITAL and text == "#" and "weight" in name.casefold():
        return "[lb_av]"
    return _composed(text, contexts)


_VOLUMES = frozenset({"L", "dL", "mL", "uL", "nL", "mm3", "pL", "fL"})


def _contexts(context: UnitContext, name: str) -> tuple[str, ...]:
    found = [context.value]
    if context is UnitContext.LAB:
        if _CELL_COUNT.search(name) and not _NO_COUNT.search(name):
            found.insert(0, "count")
        if _ENZYME.search(name) and not _NO_ENZYME.search(name):
            found.append("enzyme")
        if _PROTEIN.search(name):
            found.append("protein")
        if "urobilinogen" in name.casefold():
            found.append("urine")
    return (*found, "any")


def _composed(text: str, contexts: tuple[str, ...]) -> str | None:
    if text in ("G/L", "G/l") or (text.casefold() == "g/l" and contexts[0] == "count"):
        # G/L means 10*9/L for cells; the case of a print is no proof.
        return None
    parts = text.split("/")
    if len(parts) > _MOST_PARTS or (text.isupper() and _is_milli_or_mega(parts[0], parts[1:])):
        return None
    codes = [_part(part, contexts, is_first=not at) for at, part in enumerate(parts)]
    if len(parts) > 1 and not parts[0]:
        codes[0] = "" if contexts[0] != UnitContext.MEDICATION else None
    return None if None in codes else "/".join(code for code in codes if code is not None)


def _is_milli_or_mega(first: str, rest: list[str]) -> bool:
    """Return whether an upper-case `M` before units can mean a thousandth or a million."""
    return first in ("MIU", "MU") and not any(part in ("ML", "DL") for part in rest)


def _part(text: str, contexts: tuple[str, ...], *, is_first: bool) -> str | None:
    """Return the code of one part; a part behind a slash can have a count (`24 h`, `5 mL`)."""
    if text.isupper() and text == "MIU":
        return "m[IU]" if is_first and UnitContext.LAB in contexts else None
    if re.fullmatch(r"[numpf]M", text):
        # nM is a concentration of which UCUM has no code; nm is a length.
        return None
    kinds = contexts if is_first else (*contexts, "per")
    code = _lookup(text, "token", kinds)
    if code is None and not is_first and (m := _SCALED.fullmatch(text)):
        scaled = _lookup(m["unit"], "token", kinds)
        code = scaled if scaled is None or m["n"] == "1" else f"({m['n']}.{scaled})"
    return code


def _lookup(text: str, part: str, kinds: tuple[str, ...]) -> str | None:
    table = sections()
    for kind in kinds:
        found = table.get(f"{part} {kind}", _NONE).get(text)
        if found is not None:
            return found
    return None


_NONE = Spellings()
