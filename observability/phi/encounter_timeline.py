"""The encounters of a record on a line of time: the place of each mark. Pure.

The chart is 1,000 units wide. A stay is a bar, a visit is a dot. Marks that would overlap lie in
rows below each other. An encounter without a day is not on the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

WIDTH = 1000
MARGIN = 20
ROW = 22
"""Height of a row of marks, in units."""
DOT = 8
"""Radius of a visit, in units."""
NEAR = 24
"""Least distance of two marks in one row, in units."""
MAX_ROWS = 6
"""Marks beyond share the last row."""
AXIS = 24
"""Height of the axis below the marks, in units."""


@dataclass(frozen=True, kw_only=True)
class EncounterDays:
    """The number of an encounter with its first and last day."""

    number: int
    first: date | None
    last: date | None


@dataclass(frozen=True, kw_only=True)
class TimelineMark:
    """One encounter on the line; a visit has no width."""

    number: int
    x: float
    y: float
    width: float
    title: str


@dataclass(frozen=True, kw_only=True)
class TimelineTick:
    """One day that the axis names."""

    x: float
    words: str
    anchor: str
    """The SVG text anchor, so that the words stay inside the chart."""


@dataclass(frozen=True, kw_only=True)
class EncounterTimeline:
    """The chart; the table of encounters on the page has the same content in words."""

    height: int
    marks: Sequence[TimelineMark]
    ticks: Sequence[TimelineTick]

    @property
    def width(self) -> int:
        """Width of the chart in units."""
        return WIDTH

    @property
    def axis(self) -> int:
        """Place of the axis from the top, in units."""
        return self.height - AXIS


def encounter_timeline(encounters: Sequence[EncounterDays]) -> EncounterTimeline | None:
    """Return the chart; None if fewer than two days are known, because one day needs no line."""
    dated = [each for each in encounters if each.first is not None]
    days = {day for each in dated for day in (each.first, each.last) if day is not None}
    if len(days) < 2:
        return None
    first, last = min(days), max(days)
    scale = (WIDTH - 2 * MARGIN) / (last - first).days
    ends: list[float] = []
    marks = []
    for each in sorted(dated, key=lambda one: (one.first or first, one.number)):
        begins, ended = each.first or first, max(each.last or first, each.first or first)
        x = MARGIN + (begins - first).days * scale
        width = (ended - begins).days * scale
        row = next((n for n, end in enumerate(ends) if end + NEAR <= x), len(ends))
        row = min(row, MAX_ROWS - 1)
        ends[row : row + 1] = [x + width]
        marks.append(
            TimelineMark(
                number=each.number,
                x=round(x, 1),
                y=ROW * row + ROW / 2 + 2,
                width=round(width, 1) if width > 2 * DOT else 0,
                title=f"encounter {each.number}: {_span(begins, ended)}",
            )
        )
    return EncounterTimeline(
        height=ROW * len(ends) + AXIS + 4, marks=marks, ticks=_ticks(first, last, scale)
    )


def _ticks(first: date, last: date, scale: float) -> list[TimelineTick]:
    """Return the first day, the last day, and the years between that have room for their words."""
    room = 110
    found = [
        TimelineTick(x=MARGIN, words=first.isoformat(), anchor="start"),
        TimelineTick(x=WIDTH - MARGIN, words=last.isoformat(), anchor="end"),
    ]
    at = float(MARGIN + room)
    for year in range(first.year + 1, last.year + 1):
        x = MARGIN + (date(year, 1, 1) - first).days * scale
        if at <= x <= WIDTH - MARGIN - room:
            found.append(TimelineTick(x=round(x, 1), words=str(year), anchor="middle"))
            at = x + room / 2
    return found


def _span(first: date, last: date) -> str:
    return first.isoformat() if first == last else f"{first.isoformat()} to {last.isoformat()}"
