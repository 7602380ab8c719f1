"""A daily quota and a spend limit have a known time of return."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipeline.ratelimit.quota_reset import LAG_S, SPEND_PAUSE_S, day_ends_at, resets_at

PER_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"


@pytest.mark.parametrize(
    ("now", "midnight"),
    [
        ("2026-01-15T12:00", "2026-01-16T08:00"),
        ("2026-01-15T07:59", "2026-01-15T08:00"),
        ("2026-01-15T08:00", "2026-01-16T08:00"),
        ("2026-07-15T12:00", "2026-07-16T07:00"),
        ("2026-03-08T12:00", "2026-03-09T07:00"),
        ("2026-11-01T12:00", "2026-11-02T08:00"),
    ],
)
def test_a_day_ends_at_midnight_in_california_in_summer_and_winter(now: str, midnight: str) -> None:
    ends = day_ends_at(datetime.fromisoformat(now).replace(tzinfo=UTC))

    assert ends == datetime.fromisoformat(midnight).replace(tzinfo=UTC)


def test_the_hint_that_comes_with_a_days_quota_is_not_believed() -> None:
    now = datetime(2026, 1, 15, 12, tzinfo=UTC)

    assert resets_at(PER_DAY, 5.0, now) == day_ends_at(now)


@pytest.mark.parametrize("after_s", [0.0, 0.2, LAG_S - 1])
def test_a_refusal_right_after_midnight_does_not_close_the_new_day(after_s: float) -> None:
    now = datetime(2026, 1, 15, 8, tzinfo=UTC) + timedelta(seconds=after_s)

    assert resets_at(PER_DAY, None, now) == now + timedelta(seconds=LAG_S)
    assert resets_at(PER_DAY, None, now + timedelta(seconds=LAG_S)) == day_ends_at(now)


@pytest.mark.parametrize(("hint_s", "seconds"), [(None, SPEND_PAUSE_S), (5.0, 600), (900.0, 900)])
def test_a_spend_limit_is_waited_out_for_ten_minutes_or_its_hint(
    hint_s: float | None, seconds: float
) -> None:
    now = datetime(2026, 1, 15, 12, tzinfo=UTC)

    assert resets_at("SpendLimit", hint_s, now) == now + timedelta(seconds=seconds)
