"""The charts of the service level: axes, ticks, lines and bars lie where their values say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from observability.metrics.sla_trends import Trend, TrendBin, TrendPeriod
from observability.metrics.trend_charts import BOTTOM, LEFT, RIGHT, TOP, view_of

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def a_trend(period: TrendPeriod, target_s: float = 900.0, **named: list[object]) -> Trend:
    """Return a trend that ends at noon; each list holds the values of the last bins."""
    times = [NOON - period.bin * back for back in range(period.bins)][::-1]
    bins = []
    for place, at in enumerate(times):
        back = place - len(times)
        figures = {name: values[back] for name, values in named.items() if -back <= len(values)}
        bins.append(TrendBin(at=at, length=period.bin, hours=1, **figures))  # type: ignore[arg-type]  # the values of a test
    return Trend(priority="urgent", target_s=target_s, bins=bins, until=NOON)


@pytest.mark.parametrize("target_s", [0.05, 1.0, 900.0, 14_400.0, 86_400.0, 31_536_000.0])
@pytest.mark.parametrize("took", [0.001, 2.0, 899.0, 90_000.0, 4e7])
def test_every_time_and_the_target_lie_within_the_axes(target_s: float, took: float) -> None:
    trend = a_trend(TrendPeriod.DAY, target_s, median_s=[took], p95_s=[took * 2], finished=[1])

    chart = view_of(trend, TrendPeriod.DAY).times

    assert chart.target is not None
    heights = [chart.target.at, *(y for _, _, y in chart.dots), *(t.at for t in chart.y_ticks)]
    assert all(TOP <= y <= BOTTOM for y in heights)
    assert [tick.at for tick in chart.y_ticks] == sorted(
        (t.at for t in chart.y_ticks), reverse=True
    )
    assert len(chart.y_ticks) >= 2


def test_a_slower_hour_lies_higher_and_an_hour_without_records_interrupts_the_line() -> None:
    trend = a_trend(
        TrendPeriod.DAY,
        median_s=[60.0, 120.0, None, 30.0, 20.0],
        p95_s=[900.0, 950.0, None, 90, 80],
    )

    chart = view_of(trend, TrendPeriod.DAY).times

    assert chart.target is not None
    p95 = [y for kind, _, y in chart.dots if kind == "p95"]
    assert p95[0] == chart.target.at
    assert p95[1] < p95[0] < p95[2]
    assert [kind for kind, _ in chart.lines] == ["p95", "p95", "p50", "p50"]
    assert chart.words == (
        "Time from submission to end, urgent: p95 at most 16 min; the target is 15 min."
    )


def test_bars_are_stacked_and_a_column_tells_every_value() -> None:
    trend = a_trend(
        TrendPeriod.DAY, finished=[0, 40], met=[0, 30], missed=[0, 10], backlog=[0, 7], late=[0, 2],
        median_s=[None, 60.0], p95_s=[None, 1000.0],
    )  # fmt: skip

    chart = view_of(trend, TrendPeriod.DAY).records

    met, missed = chart.bars
    assert [tick.label for tick in chart.y_ticks] == ["0", "25", "50"]
    assert met.height == pytest.approx(3 * missed.height, abs=0.2)
    assert missed.y + missed.height == pytest.approx(met.y, abs=0.2)
    assert met.x + met.width <= RIGHT
    assert chart.columns[-1].title == (
        "12:00–13:00 UTC: 40 records ended, 30 in time, 10 missed; median 60 s, p95 17 min;"
        " then 7 open, 2 late"
    )


@pytest.mark.parametrize(
    ("period", "labels"),
    [
        (TrendPeriod.DAY, ["18:00", "00:00", "06:00", "12:00"]),
        (TrendPeriod.MONTH, ["Nov 2", "Nov 9", "Nov 16", "Nov 23", "Nov 30"]),
    ],
)
def test_the_axis_of_time_names_hours_or_days(period: TrendPeriod, labels: list[str]) -> None:
    ticks = view_of(a_trend(period), period).times.x_ticks

    assert [tick.label for tick in ticks] == labels
    assert all(LEFT <= tick.at <= RIGHT for tick in ticks)


def test_days_of_a_week_are_named_without_overlap() -> None:
    ticks = view_of(a_trend(TrendPeriod.WEEK), TrendPeriod.WEEK).times.x_ticks
    apart = [b.at - a.at for a, b in pairwise(ticks)]

    assert 3 <= len(ticks) <= 4
    assert min(apart) > 48


def test_no_record_leaves_axes_and_words() -> None:
    trend = a_trend(TrendPeriod.DAY)

    view = view_of(trend, TrendPeriod.DAY)

    assert not view.times.lines
    assert "no record completed" in view.times.words
    assert [tick.label for tick in view.records.y_ticks] == ["0", "1"]
    assert trend.share is None
    assert timedelta(hours=1) == trend.bins[0].length
