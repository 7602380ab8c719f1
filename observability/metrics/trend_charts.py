"""The charts of a trend as plain figures: axes, ticks, lines and bars. Pure.

Templates draw the figures as SVG with attributes only. The axis of times is logarithmic, so a
target of a day and records of seconds are readable on one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from math import log
from typing import ClassVar

from django.utils.safestring import SafeString

from observability.metrics.charts import Bar, rects
from observability.metrics.sla_trends import Trend, TrendBin, TrendPeriod
from pipeline.core.labels import counted, duration

WIDTH, HEIGHT = 360, 140
LEFT, RIGHT, TOP, BOTTOM = 48, 342, 16, 118
"""The edges of the plot, within `WIDTH` and `HEIGHT`; the rest holds the labels."""
TIMES = {
    1.0: "1 s", 10.0: "10 s", 60.0: "1 min", 600.0: "10 min", 3600.0: "1 h", 21_600.0: "6 h",
    86_400.0: "1 d", 604_800.0: "7 d", 2_592_000.0: "30 d", 31_536_000.0: "1 y",
}  # fmt: skip
"""The ticks of an axis of times, in seconds."""
_Part = Callable[[TrendBin], float | None]


@dataclass(frozen=True, kw_only=True)
class AxisTick:
    """A labelled place on an axis."""

    at: float
    label: str


@dataclass(frozen=True, kw_only=True)
class TrendChart:
    """A chart with both axes; y grows downwards."""

    width: ClassVar[int] = WIDTH
    height: ClassVar[int] = HEIGHT
    left: ClassVar[int] = LEFT
    right: ClassVar[int] = RIGHT
    top: ClassVar[int] = TOP
    bottom: ClassVar[int] = BOTTOM
    x_ticks: Sequence[AxisTick]
    y_ticks: Sequence[AxisTick]
    words: str
    """The chart in words."""
    bars: Sequence[Bar] = ()
    lines: Sequence[tuple[str, str]] = ()
    """Kind and `points` of each line; a bin without records interrupts a line."""
    dots: Sequence[tuple[str, float, float]] = ()
    """Kind and place of each value."""
    target: AxisTick | None = None
    columns: Sequence[Bar] = ()
    """The area of each bin, whose title tells the values."""

    @property
    def rects(self) -> SafeString:
        """The bars as SVG."""
        return rects(self.bars)

    @property
    def column_rects(self) -> SafeString:
        """The columns as SVG."""
        return rects(self.columns, "s-column")


@dataclass(frozen=True, kw_only=True)
class TrendView:
    """What the overview shows of one class of priority."""

    trend: Trend
    times: TrendChart
    records: TrendChart
    rows: Sequence[tuple[str, TrendBin]]
    """The bins with a snapshot and their names, newest first."""


def view_of(trend: Trend, period: TrendPeriod) -> TrendView:
    """Return both charts and the table of a trend."""
    names = [_name(each, period) for each in trend.bins]
    columns = _columns(trend, names)
    x_ticks = _x_ticks(trend, period)
    return TrendView(
        trend=trend,
        times=_times(trend, x_ticks, columns),
        records=_records(trend, x_ticks, columns),
        rows=[(name, each) for name, each in zip(names, trend.bins, strict=True) if each.hours][
            ::-1
        ],
    )


def _times(trend: Trend, x_ticks: Sequence[AxisTick], columns: Sequence[Bar]) -> TrendChart:
    parts: tuple[tuple[str, _Part], ...] = (
        ("p95", lambda each: each.p95_s),
        ("p50", lambda each: each.median_s),
    )
    known = [value for _, part in parts for each in trend.bins if (value := part(each)) is not None]
    axis = _time_axis([*known, trend.target_s])
    x_of, y_of = _x_of(trend), _log_scale(axis)
    lines, dots = [], []
    for kind, part in parts:
        placed = [
            (x_of(n + 0.5), None if (value := part(each)) is None else y_of(value))
            for n, each in enumerate(trend.bins)
        ]
        for is_known, run in groupby(placed, key=lambda place: place[1] is not None):
            if is_known:
                points = [(x, y) for x, y in run if y is not None]
                dots += [(kind, x, y) for x, y in points]
                lines.append((kind, " ".join(f"{x},{y}" for x, y in points)))
    slowest = max((each.p95_s for each in trend.bins if each.p95_s is not None), default=None)
    words = "no record completed" if slowest is None else f"p95 at most {duration(slowest)}"
    return TrendChart(
        x_ticks=x_ticks,
        y_ticks=[AxisTick(at=y_of(each), label=TIMES[each]) for each in axis],
        lines=[line for line in lines if " " in line[1]],
        dots=dots,
        target=AxisTick(at=y_of(trend.target_s), label=f"target {duration(trend.target_s)}"),
        columns=columns,
        words=f"Time from submission to end, {trend.priority}: {words};"
        f" the target is {duration(trend.target_s)}.",
    )


def _records(trend: Trend, x_ticks: Sequence[AxisTick], columns: Sequence[Bar]) -> TrendChart:
    top = _nice(max((each.finished for each in trend.bins), default=0))
    x_of = _x_of(trend)
    tall = BOTTOM - TOP
    bars = []
    for n, each in enumerate(trend.bins):
        floor = float(BOTTOM)
        for kind, number in (("ok", each.met), ("failed", each.missed)):
            if number:
                height = max(1.0, tall * number / top)
                floor -= height
                bars.append(
                    Bar(
                        x=round(x_of(n) + 1, 1), y=round(floor, 1), height=round(height, 1),
                        width=round(x_of(1) - x_of(0) - 2, 1), kind=kind,
                    )
                )  # fmt: skip
    ticks = sorted({0, top // 2 if top % 2 == 0 else 0, top})
    return TrendChart(
        x_ticks=x_ticks,
        y_ticks=[
            AxisTick(at=round(BOTTOM - tall * each / top, 1), label=f"{each:,}") for each in ticks
        ],
        bars=bars,
        columns=columns,
        words=f"Records that ended, {trend.priority}: {trend.met} of {trend.finished} in time.",
    )


def _columns(trend: Trend, names: Sequence[str]) -> list[Bar]:
    x_of = _x_of(trend)
    return [
        Bar(
            x=x_of(n), y=TOP, width=round(x_of(1) - x_of(0), 1), height=BOTTOM - TOP,
            title=f"{name} UTC: {_told(each)}",
        )
        for n, (name, each) in enumerate(zip(names, trend.bins, strict=True))
    ]  # fmt: skip


def _told(each: TrendBin) -> str:
    if not each.hours:
        return "no snapshot"
    found = [f"{counted(each.finished, 'record')} ended, {each.met} in time, {each.missed} missed"]
    if each.median_s is not None and each.p95_s is not None:
        found.append(f"median {duration(each.median_s)}, p95 {duration(each.p95_s)}")
    return "; ".join([*found, f"then {each.backlog} open, {each.late} late"])


def _x_of(trend: Trend) -> Callable[[float], float]:
    wide = (RIGHT - LEFT) / len(trend.bins)
    return lambda number: round(LEFT + wide * number, 1)


def _x_ticks(trend: Trend, period: TrendPeriod) -> list[AxisTick]:
    """Return a tick every 6 hours, every second day, or every week up to the last day."""
    x_of, last = _x_of(trend), len(trend.bins) - 1
    is_marked: dict[TrendPeriod, Callable[[int, datetime], bool]] = {
        TrendPeriod.DAY: lambda _, at: at.hour % 6 == 0,
        TrendPeriod.WEEK: lambda _, at: at.hour == 0 and at.toordinal() % 2 == 0,
        TrendPeriod.MONTH: lambda n, _: (last - n) % 7 == 0,
    }
    return [
        AxisTick(at=x_of(n), label=f"{each.at:%H:%M}" if period is TrendPeriod.DAY else _day(each))
        for n, each in enumerate(trend.bins)
        if is_marked[period](n, each.at)
    ]


def _name(each: TrendBin, period: TrendPeriod) -> str:
    if period is TrendPeriod.MONTH:
        return _day(each)
    span = f"{each.at:%H:%M}–{each.at + each.length:%H:%M}"
    return span if period is TrendPeriod.DAY else f"{_day(each)} {span}"


def _day(each: TrendBin) -> str:
    return f"{each.at:%b} {each.at.day}"


def _time_axis(values: Sequence[float]) -> list[float]:
    """Return the ticks around all values."""
    ticks = list(TIMES)
    low = max((n for n, tick in enumerate(ticks) if tick <= min(values)), default=0)
    high = min((n for n, tick in enumerate(ticks) if tick >= max(values)), default=len(ticks) - 1)
    # The label of the target needs room above its line.
    high = max(1, min(high + (ticks[high] == max(values)), len(ticks) - 1))
    return ticks[min(low, high - 1) : high + 1]


def _log_scale(axis: Sequence[float]) -> Callable[[float], float]:
    low, high = axis[0], axis[-1]

    def y_of(value: float) -> float:
        part = log(min(max(value, low), high) / low) / log(high / low)
        return round(BOTTOM - (BOTTOM - TOP) * part, 1)

    return y_of


def _nice(number: int) -> int:
    """Return the least of 1, 2, 5, 10, 20, 50 … that is not below the number."""
    ten = 10 ** max(0, len(str(number)) - 1)
    found: int = next(factor * ten for factor in (1, 2, 5, 10) if factor * ten >= number)
    return found
