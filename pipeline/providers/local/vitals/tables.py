"""Vital signs in ruled tables: each cell is read in its own column, and an empty cell stays empty.

A table has a column for each vital sign, or a row for each vital sign with columns such as value,
previous and unit. A cell that is not explained costs only its own reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding
from pipeline.providers.local.labs.columns import (
    NO_COLUMNS,
    Columns,
    cells_by_column,
    columns_of,
    parts_of,
)
from pipeline.providers.local.text.latest_reading import MOMENT, days_of, latest_of, moment_of
from pipeline.providers.local.text.struck_words import without_struck
from pipeline.providers.local.vitals.findings import found_vital, not_understood
from pipeline.providers.local.vitals.grammar import read_statement
from pipeline.providers.local.vitals.vital_signs import NAMES, Vital, vital_of

_OTHER = re.compile(
    r"time|date(?:[ ]?[/&]?[ ]?time)?|day|visit|shift|position|posture|site|initials|by|rn|O2"
    r"|oxygen"
    r"|O2[ ](?:device|flow|delivery)|device|source|notes?|comments?|remarks?|glucose|intake"
    r"|output"
    r"|I/O|GCS|hour|taken|recorded|activity|rhythm|method|arm|location|staff|nurse|user|#"
    r"|pain[ ]site",
    re.I,
)
_WHEN_HEADING = re.compile(r"time|date(?:[ ]?[/&]?[ ]?time)?|day|hour|taken|recorded|visit", re.I)
_UNIT_OF_NAME = re.compile(r"[ ,]*[(\[]?[ ]*(?P<unit>[^()\[\]\s][^()\[\]]{0,11})[)\]]?")
_NOTHING = re.compile(
    r"[-–—.*]*|n/?a|nil|none|not[ ](?:done|taken|obtained|recorded|measured)|refused"
    r"|declined|deferred"
    r"|unable|unobtainable|x",
    re.I,
)
_MARKED = re.compile(
    r"[ ]*(?:\((?:HH?|LL?|A)\)|(?<=[\d% ])(?:HH?|LL?|A)(?!\w)|[*!↑↓†]+|[¹²³⁴⁵⁶⁷⁸⁹])+$"
)
_MOMENT = re.compile(MOMENT)
_SPOILED = re.compile(
    r"error|erroneous|wrong|invalid|artifact|disregard|incorrect|unreliable", re.I
)
_GOALS = re.compile(
    r"\b(?:goals?|targets?|parameters?|limits?|thresholds?|notify|call|alarm)\b", re.I
)
_POSTURE = re.compile(
    r"lying|supine|recumbent|sitting|seated|standing|upright"
    r"|(?:right|left|[RL])(?:[ ](?:arm|leg))?",
    re.I,
)
_VITAL = re.compile(
    r"(?:orthostatic[ ])?(?:vitals?(?:[ ]signs?)?|signs?|parameters?|measure(?:ment)?s?)", re.I
)
_RULES = ("\t", "|", "  ")
_MIN_SIGNS = 2


@dataclass(frozen=True, slots=True)
class _Name:
    """The vital sign that a cell names, and the unit beside the name."""

    vital: Vital
    words: str
    unit: str | None


@dataclass(slots=True)
class _SignTable:
    """A table with a column for each vital sign."""

    columns: Columns
    names: tuple[_Name | None, ...]
    whens: tuple[int, ...]
    """The indexes of the columns with a date or a time."""
    rows: list[tuple[str, list[Finding]]] = field(default_factory=list)


def read_vital_tables(reading: DocumentState) -> None:
    """Add the cells of all ruled tables of vital signs."""
    table: _SignTable | None = None
    columns = NO_COLUMNS
    for line in reading.lines:
        raw = reading.document.raw[line.start : line.end]
        rule = next((r for r in _RULES if r in raw.strip()), "")
        if not rule:
            if raw.strip():
                columns = NO_COLUMNS if columns.ruled != "\t" else columns
            continue
        text, raw = without_struck(line.text), without_struck(raw)
        heading = _sign_table(text, raw, rule)
        if heading is not None:
            _finish(reading, table)
            table, columns = heading, NO_COLUMNS
            reading.claim(line.start, line.end)
            continue
        if table is not None:
            if _read_signs(reading, table, line.start, text, raw):
                reading.claim(line.start, line.end)
                continue
            _finish(reading, table)
            table = None
        head = _postures(text, raw, rule) or columns_of(
            text, raw, reading.date_order, reading.own_day
        )
        if head:
            _finish(reading, table)
            table, columns = None, head
            continue
        findings = _row_of_sign(reading, columns, line.start, text, raw, rule)
        if findings is not None:
            for found in findings:
                reading.add(found)
            reading.claim(line.start, line.end)
    _finish(reading, table)


def _postures(text: str, raw: str, rule: str) -> Columns:
    """Return the columns of a heading with a column for each posture or side."""
    parts = parts_of(raw, rule)
    words = [text[start:end].strip() for start, end in parts]
    if len(words) <= _MIN_SIGNS or not all(_POSTURE.fullmatch(word) for word in words[1:]):
        return NO_COLUMNS
    if words[0] and not _VITAL.fullmatch(words[0]):
        return NO_COLUMNS
    return Columns(
        kinds=("name", "value", *("also" for _ in words[2:])),
        days=tuple(None for _ in words),
        ruled=rule,
        starts=tuple(start for start, _ in parts),
    )


def _name_in(text: str, start: int, end: int) -> _Name | None:
    """Return the vital sign if the cell names one and nothing else."""
    m = NAMES.match(text, start, end)
    if m is None:
        return None
    vital = vital_of(m)
    rest = text[m.end() : end].rstrip(" :")
    if not rest:
        return _Name(vital, m["name"].strip(), None)
    unit = _UNIT_OF_NAME.fullmatch(rest)
    if unit is None or re.fullmatch(vital.unit, unit["unit"], re.I) is None:
        return None
    return _Name(vital, m["name"].strip(), unit["unit"])


def _sign_table(text: str, raw: str, rule: str) -> _SignTable | None:
    """Return the table that a line heads with a column for each vital sign."""
    parts = parts_of(raw, rule)
    if len(parts) < _MIN_SIGNS or re.search(r"\d{2,}", raw.replace("O2", "").replace("m2", "")):
        return None
    names: list[_Name | None] = []
    whens: list[int] = []
    unknown = 0
    for index, (start, end) in enumerate(parts):
        words = text[start:end].strip()
        name = _name_in(text, start, end) if words else None
        names.append(name)
        if name is None and _WHEN_HEADING.fullmatch(words.rstrip(":")):
            whens.append(index)
        elif name is None and words and not _OTHER.fullmatch(words.rstrip(":")):
            unknown += 1
    signs = sum(name is not None for name in names)
    if signs < _MIN_SIGNS and not (signs == 1 and whens and len(parts) > 1):
        return None
    if unknown > (1 if signs > 1 else 0):
        return None
    columns = Columns(
        kinds=tuple("name" for _ in parts),
        days=tuple(None for _ in parts),
        ruled=rule,
        starts=tuple(start for start, _ in parts),
    )
    return _SignTable(columns, tuple(names), tuple(whens))


def _read_signs(reading: DocumentState, table: _SignTable, start: int, text: str, raw: str) -> bool:
    """Read a row below a heading of vital signs. Return False if the line is no such row."""
    spans = cells_by_column(raw, table.columns) if table.columns.ruled in raw else None
    if spans is None:
        return False
    cells = [(name, span) for name, span in zip(table.names, spans, strict=True) if name]
    if not any(re.search(r"\d", text[a:b]) for _, (a, b) in cells):
        return not any(text[a:b].strip() for _, (a, b) in cells)
    when = " ".join(text[slice(*spans[i])].strip() for i in table.whens).strip()
    findings: list[Finding] = []
    for name, (a, b) in cells:
        findings.extend(_cell(reading, name, start, text, (a, b)))
    others = " ".join(
        text[a:b] for name, (a, b) in zip(table.names, spans, strict=True) if name is None
    )
    clear = any(found.value is not None for found in findings)
    if not clear and not (when and _MOMENT.fullmatch(when)):
        return False
    if _SPOILED.search(others):
        findings = [_unclear(reading, found) for found in findings]
    table.rows.append((when, findings))
    return True


def _unclear(reading: DocumentState, found: Finding) -> Finding:
    return replace(
        found,
        value=None,
        unit=None,
        date=None,
        temporality=None,
        rule=_unclear_rule(found.rule),
        engine_confidence=0.5,
    )


def _unclear_rule(rule: str) -> str:
    return rule.removesuffix(".v1").removesuffix(".not-understood") + ".not-understood.v1"


def _finish(reading: DocumentState, table: _SignTable | None) -> None:
    """Add the rows of a table; the rows of the latest day are current."""
    if table is None:
        return
    order, own = reading.date_order, reading.own_day
    moments = [moment_of(when, order, own) if when else None for when, _ in table.rows]
    days = {days_of(moment) for moment in moments}
    latest = latest_of([m for m in moments if m]) if None not in moments and len(days) > 1 else None
    dated = len(days) > 1 and any(_MOMENT.fullmatch(when) for when, _ in table.rows)
    for moment, (_, findings) in zip(moments, table.rows, strict=True):
        for found in findings:
            made = found
            if dated and (latest is None or moment is None):
                made = _unclear(reading, found)
            elif found.value is not None:
                last = moments[latest] if latest is not None else None
                earlier = last is not None and days_of(moment) != days_of(last)
                earlier = earlier and reading.precedes(moment)
                made = replace(
                    found,
                    date=moment.day if moment else None,
                    temporality="historical" if earlier else found.temporality,
                )
            reading.add(made)
    table.rows = []


def _cell(
    reading: DocumentState, name: _Name, start: int, text: str, span: tuple[int, int]
) -> Iterator[Finding]:
    """Read the readings of one cell."""
    a, b = span
    words = text[a:b].strip()
    if not words or _NOTHING.fullmatch(words):
        return
    values = _values_in(name, text, a, b)
    if values is None:
        if re.search(r"\d", words):
            yield not_understood(reading, name.vital, name.words, start + a, start + b)
        return
    for first, last, value, unit in values:
        place = (start + first, start + last)
        found = found_vital(reading, name.vital, place, name.words, value, unit or name.unit)
        yield replace(found, rule="vital.flowsheet.v1")


def _values_in(
    name: _Name, text: str, a: int, b: int
) -> list[tuple[int, int, str, str | None]] | None:
    """Return start, end, value and unit of the readings of a cell; None if it is not explained."""
    cell = text[:b]
    m = _MARKED.search(cell, a)
    cell = cell[: m.start()] if m and m.start() > a else cell
    statement = read_statement(cell, name.vital, a, goal=False)
    rest = cell[max(statement.reach, statement.end) :].strip(" .")
    if not statement.understood or not statement.readings or rest:
        return None
    if any(part.earlier or part.day for part in statement.readings):
        return None
    return [(part.start, part.end, part.value, part.unit) for part in statement.readings]


def _row_of_sign(
    reading: DocumentState, columns: Columns, start: int, text: str, raw: str, rule: str
) -> list[Finding] | None:
    """Read a row that begins with a vital sign; None if the line is no such row."""
    parts = parts_of(raw, rule)
    filled = [(a, b) for a, b in parts if text[a:b].strip()]
    names = [_name_in(text, a, b) for a, b in filled]
    name = next((found for found in names if found), None)
    if name is None or sum(found is not None for found in names) != 1 or len(filled) < _MIN_SIGNS:
        return None
    zone = reading.zones.at(start)
    if zone is not None and zone.heading and _GOALS.search(zone.heading):
        return None
    spans = cells_by_column(raw, columns) if columns and columns.ruled == rule else None
    if spans is None and columns and columns.ruled == rule == "\t":
        a = filled[names.index(name)][0]
        return [not_understood(reading, name.vital, name.words, start + a, start + filled[-1][1])]
    if spans is None:
        return _plain_row(reading, name, start, text, filled) if names[0] else None
    if _name_in(text, *spans[columns.kinds.index("name")]) is None:
        return None
    return _row_below(reading, name, columns, start, text, spans)


def _plain_row(
    reading: DocumentState, name: _Name, start: int, text: str, filled: Sequence[tuple[int, int]]
) -> list[Finding] | None:
    """Read `name, value` or `name, value, unit` without a heading."""
    whole = read_statement(text, name.vital, filled[0][1], goal=False)
    if len(filled) > _MIN_SIGNS and len(whole.readings) > 1:
        # Several values without a heading: the columns may be times, or an earlier visit.
        return [
            not_understood(
                reading, name.vital, name.words, start + filled[0][0], start + filled[-1][1]
            )
        ]
    values = _values_in(name, text, *filled[1])
    if values is None or len(values) != 1 or len(filled) > _MIN_SIGNS + 1:
        return None
    _, last, value, unit = values[0]
    if len(filled) > _MIN_SIGNS:
        own = text[slice(*filled[2])].strip()
        if unit or not re.fullmatch(name.vital.unit, own, re.I):
            return None
        unit, last = own, filled[2][1]
    place = (start + filled[0][0], start + last)
    return [found_vital(reading, name.vital, place, name.words, value, unit or name.unit)]


def _row_below(
    reading: DocumentState,
    name: _Name,
    columns: Columns,
    start: int,
    text: str,
    spans: Sequence[tuple[int, int]],
) -> list[Finding]:
    """Read a row of one vital sign below a heading with value, previous and unit."""
    filled = [(a, b) for a, b in spans if text[a:b].strip()]
    place = (start + filled[0][0], start + filled[-1][1])
    unclear = [not_understood(reading, name.vital, name.words, *place)]
    unit: str | None = name.unit
    found: list[tuple[int, list[tuple[int, int, str, str | None]]]] = []
    for index, (kind, (a, b)) in enumerate(zip(columns.kinds, spans, strict=True)):
        words = text[a:b].strip()
        if not words or kind in ("name", "other", "range", "low", "high", "flag", "date"):
            continue
        if kind in ("value", "also", "previous", "split"):
            if _NOTHING.fullmatch(words):
                continue
            values = _values_in(name, text, a, b)
            if values is None:
                return unclear
            found.append((index, values))
        elif kind == "unit":
            if not re.fullmatch(name.vital.unit, words, re.I):
                return unclear
            unit = words
        elif _SPOILED.search(words):
            return unclear
    if columns.doubtful:
        return unclear
    findings: list[Finding] = []
    for index, values in found:
        for _, _, value, own in values:
            made = found_vital(reading, name.vital, place, name.words, value, own or unit)
            past = columns.kinds[index] == "previous"
            findings.append(
                replace(
                    made,
                    temporality="historical" if past else made.temporality,
                    date=columns.days[index],
                )
            )
    return findings
