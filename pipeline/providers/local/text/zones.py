"""Sections of a record: headings in their many spellings, and the zone of each character.

A heading opens a line (`PMH:`, `PAST MEDICAL HISTORY`) or a sentence (`ROS: denies …`). A heading
that names an organ continues the zone before.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import cast, get_args

from pipeline.clinical.page_text.lines import PrintedLine, bullet_end
from pipeline.providers.local.names.word_lists import rows
from pipeline.providers.schemas import ZoneType

_ORGAN = "organ"
"""The list's key for a heading inside an examination or a review of systems."""
_UNKNOWN = "unknown"
"""The kind of a line that looks like a heading but is in no list."""
_BESIDE = "beside"
"""The kind of a line with several headings side by side."""
_MORE_NAMES = {
    "problems": "past_medical_history",
    "conditions": "past_medical_history",
    "diagnoses": "past_medical_history",
    "diagnosis": "past_medical_history",
}
"""Names that are headings beside another heading."""
_NO_NAMES = frozenset(
    [
        "start",
        "stop",
        "continue",
        "continued",
        "changed",
        "data",
        "history",
        "physical",
        "events",
        "story",
        "results",
        "background",
        "indication",
        "indications",
        "objective",
        "narrative",
        "identification",
        "exam",
        "examination",
        "complaint",
        "family",
        "social",
        "personal",
    ]
)
_APART = frozenset({"allergies", "family_history", "medications"})
"""Sections whose entities mean something else in another section."""
_TABLES = re.compile(
    r"[ ]*(?:(?P<allergies>(?:drug |food )?allerg(?:en|y|ies)s?|allergic to|substance"
    r"|causative agent)[ ]*\t(?:[^\n]*\t)?[ ]*(?:reactions?|manifestations?|severity"
    r"|type of reaction)"
    r"|(?P<immunizations>vaccines?|immuni[sz]ations?|vaccine name)[ ]*\t[^\n]*"
    r"(?:date|status|given|administered|dose))\b[^\n]*",
    re.I,
)
"""The header of a table that is a section of its own."""
_MAX_HEADING_WORDS = 8
_MAX_HEADING = 120
"""A line with more characters is no heading."""
_MIN_CAPITALS = 5
_Heading = tuple[int, int, str, str]
"""Start and end of the heading, its kind, and its words as printed."""


@dataclass(frozen=True, slots=True)
class Zone:
    """A section, from its heading to the next heading."""

    start: int
    end: int
    body: int
    """Where the text after the heading begins."""
    zone: ZoneType
    heading: str | None
    beside: frozenset[str] = frozenset()
    """The kinds of headings that share one line; the text below may belong to any of these."""


class Zones:
    """All sections of a document, in order."""

    def __init__(self, zones: list[Zone]) -> None:
        self.all = zones
        self._starts = [zone.start for zone in zones]

    def at(self, offset: int) -> Zone | None:
        """Return the section that contains `offset`; None before the first heading."""
        index = bisect.bisect_right(self._starts, offset) - 1
        return self.all[index] if index >= 0 else None

    def type_at(self, offset: int) -> ZoneType | None:
        """Return the kind of section at `offset`."""
        zone = self.at(offset)
        return zone.zone if zone else None

    def in_heading(self, offset: int) -> bool:
        """Return whether `offset` is part of a heading's own words."""
        zone = self.at(offset)
        return zone is not None and offset < zone.body


def zones_of(text: str, lines: list[PrintedLine], raw: str) -> Zones:
    """Find the sections of a document's text; `raw` is the text with the borders of its cells."""
    found: list[_Heading] = []
    above: _Heading | None = None
    is_table = False
    for line in lines:
        printed = raw[line.start : line.end]
        kind = _TABLES.match(printed) if "\t" in printed else None
        if kind is not None:
            above = found[-1] if found else None
            is_table = True
            zone = next(name for name, words in kind.groupdict().items() if words)
            found.append((line.start, line.end, zone, kind.group().partition("\t")[0]))
            continue
        if is_table and line.text.strip() and "\t" not in printed:
            # The section goes on below a table that has a section of its own.
            is_table = False
            goes_on = ("other", "") if above is None else above[2:]
            found.append((line.start, line.start, *goes_on))
        found.extend(_headings(line))
    zones: list[Zone] = []
    found = _followed(found)
    for index, (start, body, zone, heading) in enumerate(found):
        end = found[index + 1][0] if index + 1 < len(found) else len(text)
        kinds = _side_by_side(heading) if zone == _BESIDE else None
        if kinds is not None:
            zones.append(Zone(start, end, body, "other", heading, kinds))
        else:
            zones.append(Zone(start, end, body, cast(ZoneType, zone), heading))
    return Zones(zones)


def _followed(headings: list[_Heading]) -> list[_Heading]:
    """Drop organ headings, except after vital signs, and most unknown headings."""
    kept: list[_Heading] = []
    for start, body, kind, words in headings:
        current = kept[-1][2] if kept else None
        if kind == _ORGAN:
            if current == "vitals":
                kept.append((start, start, "physical_exam", words))
        elif kind == _UNKNOWN:
            if current in ("allergies", "family_history"):
                kept.append((start, body, "other", words))
        elif current == "allergies" and words.lower() in ("medication", "drug"):
            continue
        else:
            kept.append((start, body, kind, words))
    return kept


def _headings(line: PrintedLine) -> list[_Heading]:
    if not line.text.strip():
        return []
    found: list[_Heading] = []
    begin = bullet_end(line.text)
    table = _table()
    printed = line.text[begin:].strip().rstrip(":").strip()
    if len(printed) <= _MAX_HEADING:
        outside = re.sub(r"\([^)]*\)", "", printed) if "(" in printed else printed
        words = " ".join(outside.split()).lower()
        known = words in table and len(words.split()) <= _MAX_HEADING_WORDS
        if known and _is_whole_heading(printed, line):
            return [(line.start + begin, line.end, table[words], printed)]
        if not known and _side_by_side(printed) is not None:
            return [(line.start + begin, line.end, _BESIDE, printed)]
        longer = _longer_heading(printed, words)
        if longer is not None:
            return [(line.start + begin, line.end, longer, printed)]
    if ":" not in line.text or not any(_may_be_named(m[1]) for m in _NAMED.finditer(line.text)):
        return found
    for m in _pattern().finditer(line.text):
        kind = table.get(re.sub(r"\s+", " ", m["name"]).lower())
        if kind is None:
            continue
        if m.start("name") > begin and not _opens(line.text, m.start("name"), m["name"], kind):
            continue
        at = line.start + m.start("name")
        found.append((at, line.start + m.end(), kind, m["name"]))
    return found


def _side_by_side(printed: str | None) -> frozenset[str] | None:
    """Return the kinds of the headings if a line consists of two or more headings."""
    if printed is None or not printed[:1].isupper() or re.search(r"[.,;0-9]", printed):
        return None
    words = re.sub(r"[:|\t]", " ", printed).split()
    if not 2 <= len(words) <= 2 * _MAX_HEADING_WORDS or any(
        word[0].islower() and word not in ("of", "and", "to", "on", "at", "with") for word in words
    ):
        return None
    lower = [word.lower() for word in words]
    table, kinds, at = _table(), [], 0
    while at < len(lower):
        for size in range(min(5, len(lower) - at), 0, -1):
            name = " ".join(lower[at : at + size])
            kind = _MORE_NAMES.get(name) or table.get(name)
            if (
                kind
                and kind != _ORGAN
                and len(name) > 2
                and name not in _NO_NAMES
                and name != "all"
            ):
                kinds.append(kind)
                at += size
                break
        else:
            return None
    return frozenset(kinds) if len(set(kinds)) > 1 and set(kinds) & _APART else None


def _longer_heading(printed: str, words: str) -> str | None:
    """Classify a line in capitals by the known words at its end or its beginning."""
    letters = re.sub(
        r"[^A-Za-z]", "", re.sub(r"\(.*?\)|\b(?:per|drawn|collected|on|at)\b.*", "", printed)
    )
    if (
        not letters.isupper()
        or len(letters) < _MIN_CAPITALS
        or "," in printed
        or printed.endswith(".")
    ):
        return None
    parts = re.sub(r"[^a-z/& ]", " ", words).split()
    if not parts or len(parts) > _MAX_HEADING_WORDS:
        return None
    table = _table()
    for size in range(min(4, len(parts)), 0, -1):
        for at in (len(parts) - size, 0):
            kind = table.get(" ".join(parts[at : at + size]))
            if kind is not None and kind != _ORGAN and len(" ".join(parts[at : at + size])) > 2:
                return kind
    return _UNKNOWN


def _is_whole_heading(words: str, line: PrintedLine) -> bool:
    """Return whether `words` are a heading, not a line of text with the same words."""
    if line.text.rstrip().endswith(":"):
        return True
    if len(words) <= 2:
        return words.isupper() and line.text.strip() == words
    return (
        words.isupper()
        or words.istitle()
        or (len(words.split()) > 1 and words[0].isupper() and not words.endswith("."))
    )


def _opens(text: str, at: int, name: str, kind: str) -> bool:
    """Return whether a heading in the middle of a line begins a new statement."""
    before = text[:at].rstrip()
    if kind in _APART and len(name) > 4 and name[0].isupper() and ":" in before:
        return True
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


_NAMED = re.compile(r"([^\s:]+)[ ]*(?:\([^)\n]{1,20}\)[ ]*)?:")
"""The last word before a colon."""


@lru_cache(maxsize=4_096)
def _may_be_named(word: str) -> bool:
    """Return whether the word before a colon ends a heading. The large pattern decides."""
    word = word.lower()
    return word.endswith(_last_words()) or word.partition("(")[0].endswith(_last_words())


@cache
def _last_words() -> tuple[str, ...]:
    return tuple({name.split()[-1] for name in _table()})


@cache
def _pattern() -> re.Pattern[str]:
    names = sorted(_table(), key=len, reverse=True)
    alternatives = "|".join(re.escape(name).replace(r"\ ", r"[ ]+") for name in names)
    return re.compile(rf"(?<![\w/])(?P<name>{alternatives})(?:[ ]*\([^)\n]{{1,20}}\))?[ ]*:", re.I)
