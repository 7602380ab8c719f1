"""The precision of a rule or a prompt by week, as a small chart. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from pipeline.operations.review.learning import LearnedPrecision

WIDTH, HEIGHT, ROOM = 160, 40, 5
"""Units of the chart; `ROOM` is the free space on each side."""


@dataclass(frozen=True, kw_only=True)
class PrecisionPoint:
    """The precision of one week on the chart; y grows downwards."""

    x: float
    y: float
    title: str


@dataclass(frozen=True, kw_only=True)
class PrecisionChart:
    """The precision of the weeks with a verdict, on a scale of 0 to 100 %."""

    points: tuple[PrecisionPoint, ...]
    words: str
    """The chart in words."""

    @property
    def line(self) -> str:
        """The `points` of the SVG line; empty for a single week."""
        return " ".join(f"{each.x},{each.y}" for each in self.points) if self.points[1:] else ""


def precision_chart(
    weeks: Sequence[LearnedPrecision], first: date, last: date
) -> PrecisionChart | None:
    """Return the chart of the weeks from the Monday `first` to `last`; None without a verdict."""
    span = max(1, (last - first) // timedelta(days=7))
    points = []
    for week in weeks:
        if week.precision is None or week.week is None:
            continue
        place = (week.week - first) / timedelta(days=7) / span
        judged = week.accepted + week.corrected + week.rejected
        points.append(
            PrecisionPoint(
                x=round(ROOM + (WIDTH - 2 * ROOM) * min(1.0, max(0.0, place)), 1),
                y=round(ROOM + (HEIGHT - 2 * ROOM) * (1 - week.precision), 1),
                title=f"week of {week.week.isoformat()}: {week.precision:.0%} of {judged}",
            )
        )
    if not points:
        return None
    return PrecisionChart(points=tuple(points), words="; ".join(each.title for each in points))
