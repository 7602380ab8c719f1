"""Tables with a column for each test and a row for each date.

The latest row of a test is current. The cells are parted by TABs, so an empty cell stays empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.labs.analytes import known_name
from pipeline.providers.local.labs.columns import parts_of
from pipeline.providers.local.labs.headings import kind_of_heading
from pipeline.providers.local.labs.ruled_rows import UnclearCellError, value_of_cell
from pipeline.providers.local.text.latest_reading import MOMENT, latest_of, moment_of

_MOMENT = re.compile(MOMENT)
_UNIT = re.compile(r"[ ]*[(\[](?P<unit>[^()\[\]]{1,16})[)\]]$")
_LABELS = ("date", "", "name", "specimen")
_UNIT_ROW = re.compile(r"units?:?", re.I)
_MIN_TESTS = 2


@dataclass(slots=True)
class _SeriesCell:
    start: int
    end: int
    value: str | None
    """None if the cell is not understood."""
    flag: str | None
    when: str


@dataclass(slots=True)
class SeriesTable:
    """The tests of the heading, and the cells read so far."""

    names: tuple[str, ...]
    """The name of each column after the first; "" if the column is no known test."""
    units: list[str | None]
    cells: list[list[_SeriesCell]] = field(default_factory=list)

    def add(self, start: int, text: str, raw: str) -> bool:
        """Read a row that begins at `start`; return False if the row does not fit the table."""
        parts = parts_of(raw, "\t")
        if len(parts) > len(self.names) + 1:
            return False
        first, last = parts[0]
        label = text[first:last].strip()
        if _UNIT_ROW.fullmatch(label):
            for at, (begin, end) in enumerate(parts[1:]):
                self.units[at] = text[begin:end].strip() or self.units[at]
            return True
        if kind_of_heading(label) == "range":
            return True
        if not _MOMENT.fullmatch(label):
            return False
        for at, (begin, end) in enumerate(parts[1:]):
            if end > begin and self.names[at]:
                self._add_cell(at, start, text, (begin, end), label)
        return True

    def _add_cell(self, at: int, start: int, text: str, span: tuple[int, int], label: str) -> None:
        begin, end = span
        try:
            found = value_of_cell(text, begin, end)
        except UnclearCellError:
            self.cells[at].append(_SeriesCell(start + begin, start + end, None, None, label))
            return
        if found.cell is not None:
            self.units[at] = self.units[at] or found.unit
            span = (start + found.cell.start, start + found.cell.end)
            self.cells[at].append(_SeriesCell(*span, found.cell.words, found.flag, label))

    def findings(self, reading: DocumentState) -> Iterator[Finding]:
        """Return the findings of all cells, column by column."""
        order, own = reading.date_order, reading.own_day
        for name, unit, cells in zip(self.names, self.units, self.cells, strict=True):
            moments = [moment_of(cell.when, order, own) for cell in cells]
            latest = latest_of(moments)
            for index, (cell, moment) in enumerate(zip(cells, moments, strict=True)):
                clear = cell.value is not None and latest is not None
                yield Finding(
                    category="lab",
                    start=cell.start,
                    end=cell.end,
                    head_end=cell.end,
                    name=own_words(name),
                    value=own_words(cell.value) if clear and cell.value else None,
                    unit=unit if clear else None,
                    abnormal_flag=cell.flag if clear else None,
                    date=moment.day if clear and moment else None,
                    temporality="historical" if clear and index != latest else None,
                    rule="lab.series.v1" if clear else "lab.series-not-understood.v1",
                    engine_confidence=0.95 if clear else 0.5,
                    zone=reading.zones.type_at(cell.start),
                )


def series_table_of(raw: str) -> SeriesTable | None:
    """Return the table that a line of tests heads, behind a heading like `Date`."""
    parts = parts_of(raw, "\t")
    if len(parts) <= _MIN_TESTS or kind_of_heading(raw[parts[0][0] : parts[0][1]]) not in _LABELS:
        return None
    names: list[str] = []
    units: list[str | None] = []
    for start, end in parts[1:]:
        words = raw[start:end]
        m = _UNIT.search(words)
        name = words[: m.start()] if m else words
        names.append(name if name and known_name(name, 0) == len(name) else "")
        units.append(m["unit"] if m else None)
    if sum(map(bool, names)) < _MIN_TESTS or any(re.search(r"\d{2}", raw[s:e]) for s, e in parts):
        return None
    return SeriesTable(tuple(names), units, [[] for _ in names])
