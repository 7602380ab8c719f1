"""What got worse is told from chance: the newest week of a rule against the weeks before."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from observability.metrics.precision_charts import precision_chart
from pipeline.operations.review.learning import (
    LearnedPrecision,
    PrecisionChange,
    PrecisionTrend,
    wilson_interval,
)

MONDAY = date(2026, 3, 2)


def a_week(number: int, accepted: int, rejected: int = 0, added: int = 0) -> LearnedPrecision:
    """Return the verdicts of one week, counted from `MONDAY`."""
    return LearnedPrecision(
        category="medication",
        engine="local-rules-3",
        rule="med.line.v1",
        prompt_version="3",
        week=MONDAY + timedelta(weeks=number),
        accepted=accepted,
        corrected=0,
        rejected=rejected,
        added=added,
    )


@pytest.mark.parametrize(
    ("right", "total", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_has_the_published_values(
    right: int, total: int, low: float, high: float
) -> None:
    assert wilson_interval(right, total) == pytest.approx((low, high), abs=0.0001)


@pytest.mark.parametrize(
    ("weeks", "change"),
    [
        ([a_week(0, 95, 5), a_week(1, 12, 8)], PrecisionChange.WORSE),
        ([a_week(0, 60, 40), a_week(1, 30)], PrecisionChange.BETTER),
        ([a_week(0, 90, 10), a_week(1, 17, 3)], PrecisionChange.SAME),
        ([a_week(0, 100), a_week(1, 1, 3)], PrecisionChange.UNKNOWN),
        ([a_week(0, 3, 1), a_week(1, 10, 10)], PrecisionChange.UNKNOWN),
        ([a_week(0, 50, 50)], PrecisionChange.UNKNOWN),
        # A week with added entities alone has no precision and is not the newest week.
        ([a_week(0, 95, 5), a_week(1, 12, 8), a_week(2, 0, added=3)], PrecisionChange.WORSE),
        ([a_week(0, 0, added=3)], PrecisionChange.UNKNOWN),
    ],
)
def test_only_a_clear_change_is_named(
    weeks: list[LearnedPrecision], change: PrecisionChange
) -> None:
    assert PrecisionTrend(weeks=weeks).change is change


def test_the_sums_of_the_weeks_make_the_precision() -> None:
    trend = PrecisionTrend(weeks=[a_week(0, 8, 2), a_week(1, 1, 1, added=4)])

    assert (trend.accepted, trend.corrected, trend.rejected, trend.added) == (9, 0, 3, 4)
    assert trend.precision == 0.75
    assert PrecisionTrend(weeks=[a_week(0, 0, added=4)]).precision is None


def test_the_chart_has_a_point_for_each_week_with_a_precision() -> None:
    weeks = [a_week(0, 10), a_week(1, 0, added=1), a_week(2, 5, 5), a_week(4, 0, 10)]

    chart = precision_chart(weeks, MONDAY, MONDAY + timedelta(weeks=4))

    assert chart is not None
    assert [(each.x, each.y) for each in chart.points] == [(5, 5), (80, 20), (155, 35)]
    assert chart.line == "5.0,5.0 80.0,20.0 155.0,35.0"
    assert chart.words == (
        "week of 2026-03-02: 100% of 10; week of 2026-03-16: 50% of 10;"
        " week of 2026-03-30: 0% of 10"
    )
    assert precision_chart([a_week(1, 0, added=1)], MONDAY, MONDAY) is None
