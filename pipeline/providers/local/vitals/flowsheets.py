"""Vital signs in flowsheets: a column for each vital sign, or a row for each vital sign.

A row whose cells do not fit the columns is not guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from pipeline.clinical.date_forms import DATE_FORM, iso_day
from pipeline.clinical.page_text.lines import PrintedLine
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.vitals.findings import found_vital, not_understood
from pipeline.providers.local.vitals.vital_signs import NAMES, VITALS, Vital, plausible, vital_of

_HEAD = re.compile(
    r"(?<![\w/])(?P<name>"
    + "|".join(f"(?P<v{i}>{v.pattern})" for i, v in enumerate(VITALS))
    + r"|(?P<other>time|date(?:/time)?|day|visit|position|site|initials|by|O2|source|note|comment"
    r"|glucose|intake|output|I/O|GCS|hour))"
    r"(?![\w])(?:[ ]*\((?P<unit>[^)\n]{1,12})\))?",
    re.I,
)
_ROW_LABEL = re.compile(
    r"[ ]*(?:(?:\d{1,2}/\d{1,2}/\d{2,4}|\d{4}-\d{2}-\d{2}|\d{1,2}/\d{1,2}(?=[ ]+\d{1,2}:)"
    r"|\d{1,2}-[A-Za-z]{3}(?:-\d{2,4})?|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov"
    r"|Dec)[a-z]{0,6}\.?[ ]\d{1,2}(?:,?[ ]\d{4})?(?!/)"
    r"|\d{1,2}:\d{2}(?::\d{2})?(?:[ ]?[AaPp]\.?[Mm]\.?)?|\d{4}(?=[ ]+\d{2,3}/\d{2,3})|Day[ ]\d+"
    r"|\(?[A-Za-z][A-Za-z-]*\)?:?)[ ]*)*"
)
_CELL = re.compile(
    r"(?<!\S)(?:\d{2,3}/\d{2,3}|\d{1,3}(?:\.\d{1,2})?%?|\d{1,2}/10|--?|—|–|n/?a)(?=\s|$)", re.I
)
_WHEN = re.compile(r"time|date(?:/time)?", re.I)
_MIN_COLUMNS = 3
"""The least number of vital signs in a heading; one less behind a heading of times."""
_MAX_MISSES = 8
"""The most lines without measures (headers and footers) inside a flowsheet."""


_DAY = re.compile(rf"(?:{DATE_FORM})", re.I)
_MOMENT = re.compile(
    rf"(?:{DATE_FORM}|\d{{1,2}}/\d{{1,2}}(?![\d/])|\d{{1,2}}:\d{{2}}(?:[ ]?[AaPp]\.?[Mm]\.?)?"
    r"|[0-2]\d[0-5]\d(?!\d)|\d{1,2}[ ]?[AaPp][Mm]|(?:Day|POD)[ ]?\d{1,2})"
)
_ACROSS_LABEL = re.compile(r"[ ]*(?:[A-Za-z][A-Za-z/&() ]{0,24}?[: ])??(?=[ ]*(?:\d|Day|POD))")
_ACROSS = re.compile(
    rf"{_ACROSS_LABEL.pattern}[ |]*{_MOMENT.pattern}(?:[ |]+{_MOMENT.pattern})+[ |]*"
)
"""A heading with a column for each time: `Time 08:00 12:00 16:00`."""


@dataclass(frozen=True, slots=True)
class _Column:
    vital: Vital | None
    name: str
    unit: str | None


def read_flowsheets(reading: DocumentState) -> None:
    """Add the cells of all flowsheets."""
    columns: list[_Column] = []
    times: list[str] = []
    misses = 0
    for line in reading.lines:
        if not line.text.strip() or reading.is_claimed(line.start, line.end):
            continue
        head, across = _columns_of(line), _times_of(line)
        if head:
            columns, times, misses = head, [], 0
            reading.claim(line.start, line.end)
        elif across:
            dated = len(across) == len(times) and any(map(_DAY.match, times))
            times = times if dated and not any(map(_DAY.match, across)) else across
            columns, misses = [], 0
        elif columns or times:
            read = (
                _read_row(reading, line, columns) if columns else _read_across(reading, line, times)
            )
            misses = 0 if read else misses + 1
            if misses > _MAX_MISSES:
                columns, times = [], []


def _times_of(line: PrintedLine) -> list[str]:
    """Return the times or dates of a heading line that has a column for each of them."""
    if not _ACROSS.fullmatch(line.text):
        return []
    label = _ACROSS_LABEL.match(line.text)
    return [m[0].strip() for m in _MOMENT.finditer(line.text, label.end() if label else 0)]


def _read_across(reading: DocumentState, line: PrintedLine, times: list[str]) -> bool:
    """Read a row that begins with the name of its vital sign."""
    start = len(line.text) - len(line.text.lstrip())
    m = NAMES.match(line.text, start)
    if m is None:
        return False
    vital = vital_of(m)
    unit = re.compile(rf"[ ]*[(,]?[ ]*(?P<unit>{vital.unit})[ ]*\)?", re.I).match(
        line.text, m.end()
    )
    at = re.compile(r"[ :|]*").match(line.text, unit.end() if unit else m.end())
    begin = at.end() if at else m.end()
    cells = _cells_of(reading, line, begin, len(times))
    if not any(words[:1].isdigit() for _, words in cells):
        return False
    whole = " ".join(line.text[begin:].replace("|", " ").split())
    shown = " ".join(words for _, words in cells if words)
    if (
        len(cells) != len(times)
        or whole != shown
        or not all(not words or _fits(vital, words) for _, words in cells)
    ):
        reading.add(not_understood(reading, vital, m["name"], line.start + start, line.end))
        return True
    days = [iso_day(time, reading.date_order) if _DAY.match(time) else None for time in times]
    latest = max((day for day in days if day), default=None)
    for (place, words), day in zip(cells, days, strict=True):
        value = words.rstrip("%")
        if not value[:1].isdigit():
            continue
        span = (line.start + place, line.start + place + len(value))
        own = unit["unit"] if unit else ("%" if words.endswith("%") else None)
        found = found_vital(reading, vital, span, m["name"], value, own)
        is_earlier = day is not None and latest is not None and day < latest
        reading.add(
            replace(
                found,
                rule="vital.flowsheet.v1",
                date=day,
                temporality="historical" if is_earlier else found.temporality,
            )
        )
    reading.claim(line.start, line.end)
    return True


def _cells_of(
    reading: DocumentState, line: PrintedLine, begin: int, wanted: int
) -> list[tuple[int, str]]:
    """Return place and words of each cell; a TAB in the page's text shows an empty cell."""
    raw = reading.document.raw[line.start : line.end]
    if raw.count("\t", begin) >= wanted - 1:
        cells, at = [], begin
        for words in raw[begin:].split("\t"):
            lead = len(words) - len(words.lstrip())
            cells.append((at + lead, words.strip()))
            at += len(words) + 1
        return cells
    return [(m.start(), m.group()) for m in _CELL.finditer(line.text, begin)]


def _columns_of(line: PrintedLine) -> list[_Column]:
    if re.search(r"\d{2,}(?!\))", line.text.replace("O2", "").replace("m2", "")):
        return []
    found: list[_Column] = []
    for m in _HEAD.finditer(line.text):
        index = next((i for i in range(len(VITALS)) if m[f"v{i}"]), None)
        found.append(
            _Column(None if index is None else VITALS[index], m["name"].strip(), m["unit"])
        )
    timed = bool(found) and _WHEN.fullmatch(found[0].name) is not None
    if sum(column.vital is not None for column in found) < _MIN_COLUMNS - timed:
        return []
    rest = _HEAD.sub(" ", line.text)
    return found if len(rest.split()) <= len(found) else []


def _read_row(reading: DocumentState, line: PrintedLine, columns: list[_Column]) -> bool:
    label = _ROW_LABEL.match(line.text)
    at = label.end() if label else 0
    cells = list(_CELL.finditer(line.text, at))
    wanted = [column for column in columns if column.vital is not None]
    trailing = columns[:]
    while trailing and trailing[0].vital is None:
        trailing.pop(0)
    for order in (trailing, wanted):
        if len(cells) == len(order) and all(
            column.vital is None or _fits(column.vital, cell.group())
            for column, cell in zip(order, cells, strict=True)
        ):
            for column, cell in zip(order, cells, strict=True):
                value = cell.group().rstrip("%")
                if column.vital is None or not value[0].isdigit():
                    continue
                span = (line.start + cell.start(), line.start + cell.start() + len(value))
                unit = column.unit or ("%" if cell.group().endswith("%") else None)
                found = found_vital(reading, column.vital, span, column.name, value, unit)
                reading.add(replace(found, rule="vital.flowsheet.v1"))
            reading.claim(line.start, line.end)
            return True
    return False


def _fits(vital: Vital, cell: str) -> bool:
    if not cell[0].isdigit():
        return True
    if ("/" in cell) != (vital.key == "BP") and vital.key != "pain":
        return False
    return plausible(vital, cell)
