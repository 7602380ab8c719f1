"""Sections of a record: headings in their many spellings, and which zone each character is in.

May import `layout`, `lexicon_files` and `schemas`. A heading opens a line (`PMH:`, `PAST MEDICAL
HISTORY`) or a sentence (`ROS: denies …`); one that names an organ goes on with the zone before.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from functools import cache
from typing import cast, get_args

from pipeline.provider.local.layout import Line, bullet_end
from pipeline.provider.local.lexicon_files import rows
from pipeline.provider.schemas import ZoneType

_ORGAN = "organ"
"""The list's word for a heading inside an examination or a review of systems."""
_MAX_HEADING_WORDS = 8


@dataclass(frozen=True, slots=True)
class Zone:
    """A section, from its heading to the next one."""

    start: int
    end: int
    body: int
    """Where the words behind the heading begin."""
    zone: ZoneType
    heading: str | None


class Zones:
    """All sections of a document, in order."""

    def __init__(self, zones: list[Zone]) -> None:
        self.all = zones
        self._starts = [zone.start for zone in zones]

    def at(self, offset: int) -> Zone | None:
        """Return the section that `offset` stands in; None before the first heading."""
        index = bisect.bisect_right(self._starts, offset) - 1
        return self.all[index] if index >= 0 else None

    def type_at(self, offset: int) -> ZoneType | None:
        """Return the kind of section at `offset`."""
        zone = self.at(offset)
        return zone.zone if zone else None

    def in_heading(self, offset: int) -> bool:
        """Tell whether `offset` is part of a heading's own words."""
        zone = self.at(offset)
        return zone is not None and offset < zone.body


def zones_of(text: str, lines: list[Line]) -> Zones:
    """Find the sections of a document's text."""
    found: list[tuple[int, int, ZoneType, str]] = []
    for line in lines:
        found.extend(_headings(line))
    zones: list[Zone] = []
    for index, (start, body, zone, heading) in enumerate(found):
        end = found[index + 1][0] if index + 1 < len(found) else len(text)
        zones.append(Zone(start, end, body, zone, heading))
    return Zones(zones)


def _headings(line: Line) -> list[tuple[int, int, ZoneType, str]]:
    if not line.text.strip():
        return []
    found: list[tuple[int, int, ZoneType, str]] = []
    begin = bullet_end(line.text)
    whole = line.text[begin:].strip().rstrip(":").strip()
    words = re.sub(r"\s+", " ", re.sub(r"\(.*?\)", "", whole)).strip().lower()
    table = _table()
    if words in table and len(words.split()) <= _MAX_HEADING_WORDS and _stands_alone(whole, line):
        if table[words] != _ORGAN:
            zone = cast(ZoneType, table[words])
            found.append((line.start + begin, line.end, zone, whole))
        return found
    for m in _pattern().finditer(line.text):
        kind = table.get(re.sub(r"\s+", " ", m["name"]).lower())
        if kind is None or kind == _ORGAN:
            continue
        if m.start("name") > begin and not _opens(line.text, m.start("name"), m["name"]):
            continue
        at = line.start + m.start("name")
        found.append((at, line.start + m.end(), cast(ZoneType, kind), m["name"]))
    return found


def _stands_alone(words: str, line: Line) -> bool:
    """Tell a heading without colon from a line of text that happens to be the same words."""
    if line.text.rstrip().endswith(":"):
        return True
    if len(words) <= 2:
        return False
    return (
        words.isupper()
        or words.istitle()
        or (len(words.split()) > 1 and words[0].isupper() and not words.endswith("."))
    )


def _opens(text: str, at: int, name: str) -> bool:
    """Tell whether a heading in mid-line begins a new statement."""
    before = text[:at].rstrip()
    return before.endswith((".", "?", "!", ";", "|", ":")) or (
        name.isupper() and text[at - 2 : at] == "  "
    )


@cache
def _table() -> dict[str, str]:
    known = {*get_args(ZoneType), _ORGAN}
    table: dict[str, str] = {}
    for row in rows("headings.txt"):
        zone, _, names = row.partition(":")
        if zone not in known:
            raise ValueError(f"headings.txt: no zone {zone}")
        for name in names.split("|"):
            table[re.sub(r"\s+", " ", name).strip().lower()] = zone
    return table


@cache
def _pattern() -> re.Pattern[str]:
    names = sorted(_table(), key=len, reverse=True)
    alternatives = "|".join(re.escape(name).replace(r"\ ", r"[ ]+") for name in names)
    return re.compile(rf"(?<![\w/])(?P<name>{alternatives})(?:[ ]*\([^)\n]{{1,20}}\))?[ ]*:", re.I)
