"""A laboratory series as a table and a small chart. Pure.

One group holds the results of one unit. The chart is drawn only from numbers with a day, and only
if there are two of them: a comparator (`<0.01`) and a text (`Negative`) stay in the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pipeline.clinical.enrichment_flags import in_words

WIDTH, HEIGHT, ROOM = 160, 40, 5
"""Units of the chart; `ROOM` is the free space on each side."""


@dataclass(frozen=True, kw_only=True)
class LabResult:
    """One result, in the order of time."""

    day: str
    """The day, or the first and the last day of the stay; "" if neither is known."""
    printed: str
    flag: str
    """`H`, `L`, `A`, …; "" within the range or without a range."""
    reasons: tuple[str, ...]
    """Why a person must check the result."""
    entity_id: str


@dataclass(frozen=True, kw_only=True)
class LabPoint:
    """A result on the chart; y grows downwards."""

    x: float
    y: float
    is_flagged: bool
    title: str


@dataclass(frozen=True, kw_only=True)
class LabGroup:
    """The results of one analyte in one unit."""

    unit: str
    results: tuple[LabResult, ...]
    points: tuple[LabPoint, ...]
    """Empty without a chart."""
    words: str
    """The chart in words."""

    @property
    def line(self) -> str:
        """The `points` of the SVG line."""
        return " ".join(f"{each.x},{each.y}" for each in self.points)


def lab_groups(summary: Mapping[str, Any]) -> tuple[LabGroup, ...]:
    """Return the groups of a series (`clinical.record_lists.lab_series`)."""
    return tuple(
        _group(str(group.get("unit") or ""), group.get("values", ()))
        for group in summary.get("groups", ())
    )


def _group(unit: str, values: Sequence[Mapping[str, Any]]) -> LabGroup:
    points = _points(unit, values)
    return LabGroup(
        unit=unit,
        results=tuple(_result(each) for each in values),
        points=points,
        words="; ".join(each.title for each in points),
    )


def _result(value: Mapping[str, Any]) -> LabResult:
    return LabResult(
        day=str(value.get("date") or value.get("stay") or ""),
        printed=str(value.get("printed") or value.get("text") or ""),
        flag=_flag(value),
        reasons=in_words(map(str, value.get("flags", ()))),
        entity_id=str(value.get("entity_id") or ""),
    )


def _flag(value: Mapping[str, Any]) -> str:
    flag = str(value.get("flag") or "")
    return "" if flag == "N" else flag


def _points(unit: str, values: Sequence[Mapping[str, Any]]) -> tuple[LabPoint, ...]:
    # A value that a person must check, or that is only a bound, would draw a wrong line.
    known = [
        (date.fromisoformat(each["date"]), float(each["number"]), each)
        for each in values
        if each.get("date") and each.get("number") is not None and not each.get("comparator")
        if not each.get("flags")
    ]
    known.sort(key=lambda each: each[0])
    if len({day for day, _, _ in known}) < 2:
        return ()
    first, last = known[0][0], known[-1][0]
    low, high = min(number for _, number, _ in known), max(number for _, number, _ in known)
    wide, tall = WIDTH - 2 * ROOM, HEIGHT - 2 * ROOM
    return tuple(
        LabPoint(
            x=round(ROOM + wide * (day - first).days / (last - first).days, 1),
            y=round(ROOM + (tall * (high - number) / (high - low) if high > low else tall / 2), 1),
            is_flagged=bool(_flag(each)),
            title=f"{day.isoformat()}: {each.get('printed')} {unit} {_flag(each)}".strip(),
        )
        for day, number, each in known
    )
