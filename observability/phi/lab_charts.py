"""A laboratory series as a table and a small chart. Pure.

One group holds the results of one unit. The chart is drawn only from numbers with a day, and only
if there are two of them: a comparator (`<0.01`) and a text (`Negative`) stay in the table. A long
group is shown in parts; its last part comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from observability.phi.attribute_words import unit_words
from observability.phi.portions import Portion, portion
from pipeline.clinical.enrichment_flags import in_words

RESULTS_SHOWN = 8
"""Results of a group that the page shows at a time."""
CHARTED = 24
"""The most results in a chart: those before the end of the shown part."""
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
    """The unit as people write it."""
    results: tuple[LabResult, ...]
    shown: Portion[LabResult]
    points: tuple[LabPoint, ...]
    """Empty without a chart."""
    words: str
    """The chart in words."""
    left_out: int
    """Numbers with a day that the chart does not draw, because the group is long."""
    to_review: int
    """Results outside the shown part that a person must check."""
    to_review_at: str
    """The address of the first of them."""

    @property
    def line(self) -> str:
        """The `points` of the SVG line."""
        return " ".join(f"{each.x},{each.y}" for each in self.points)


def lab_groups(
    summary: Mapping[str, Any], *, address: str = "", chosen: int | None = None
) -> tuple[LabGroup, ...]:
    """Return the groups of a series (`clinical.record_lists.lab_series`).

    `address` is the address of the series; result 3 has the address `<address>-3`. The group that
    contains the result `chosen` (1-based) shows the part with this result, and the others their
    last part.
    """
    found, number = [], 0
    for group in summary.get("groups", ()):
        values = group.get("values", ())
        addresses = [f"{address}-{number + n}" for n in range(1, len(values) + 1)]
        at = chosen - number - 1 if chosen else -1
        at = at if 0 <= at < len(values) else len(values) - 1
        found.append(_group(unit_words(str(group.get("unit") or "")), values, addresses, at))
        number += len(values)
    return tuple(found)


def _group(
    unit: str, values: Sequence[Mapping[str, Any]], addresses: Sequence[str], at: int
) -> LabGroup:
    results = tuple(_result(each) for each in values)
    shown = portion(results, addresses, at, RESULTS_SHOWN, from_end=True)
    hidden = [
        where
        for number, (each, where) in enumerate(zip(results, addresses, strict=True), start=1)
        if each.reasons and not shown.first <= number <= shown.last
    ]
    known = _known(values)
    drawn = _known(values[: shown.last])[-CHARTED:]
    points = _points(unit, drawn)
    return LabGroup(
        unit=unit,
        results=results,
        shown=shown,
        points=points,
        words="; ".join(each.title for each in points),
        left_out=len(known) - len(drawn) if points else 0,
        to_review=len(hidden),
        to_review_at=hidden[0] if hidden else "",
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


_Known = tuple[date, float, Mapping[str, Any]]


def _known(values: Sequence[Mapping[str, Any]]) -> list[_Known]:
    # A value that a person must check, or that is only a bound, would draw a wrong line.
    return [
        (date.fromisoformat(each["date"]), float(each["number"]), each)
        for each in values
        if each.get("date") and each.get("number") is not None and not each.get("comparator")
        if not each.get("flags")
    ]


def _points(unit: str, drawn: Sequence[_Known]) -> tuple[LabPoint, ...]:
    known = sorted(drawn, key=lambda each: each[0])
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
