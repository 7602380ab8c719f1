"""The six-hour history caches finished intervals, and reads only the newest one at each poll."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from observability.metrics.history import QUARTER_HOURS, fifteen_minute_history
from observability.views.overview import calls_chart, latency_chart
from pipeline.models import ProviderCall
from tests.support.databases import rewriting
from tests.support.incident_rows import calls
from tests.support.rows import a_job

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 28, 3, 20, tzinfo=UTC)


def made(outcome: str, at: datetime, *durations_ms: int) -> None:
    """Insert calls that ended at this time."""
    job = a_job()
    for duration_ms in durations_ms:
        calls(job, outcome, duration_ms=duration_ms)
    with rewriting():
        ProviderCall.objects.filter(processing_session__shell_file=job.shell_file_id).update(
            created_at=at
        )


def test_each_interval_has_its_calls_and_the_duration_of_answers() -> None:
    made("OK", NOW - timedelta(hours=2), 1000, 2000, 3000)
    made("RATE_LIMIT", NOW - timedelta(hours=2), 100)
    made("API_5XX", NOW, 100)
    made("OK", NOW - timedelta(hours=7), 9000)

    found = fifteen_minute_history(NOW)

    assert len(found) == QUARTER_HOURS
    assert found[-1].at == NOW.replace(minute=15)
    busy = [(each.at, each.answered, each.limited, each.failed) for each in found if each.calls]
    assert busy == [
        (NOW.replace(hour=1, minute=15), 3, 1, 0),
        (NOW.replace(minute=15), 0, 0, 1),
    ]
    (of,) = [each for each in found if each.answered]
    assert (of.p50_ms, of.p95_ms) == (2000.0, 2900.0)


def test_a_poll_reads_only_the_newest_intervals_and_keeps_the_others() -> None:
    made("OK", NOW - timedelta(hours=2), 1000)
    first = fifteen_minute_history(NOW)

    made("OK", NOW - timedelta(hours=2), 1000)
    made("OK", NOW, 1000)
    with CaptureQueriesContext(connection) as captured:
        second = fifteen_minute_history(NOW)

    assert second[:-1] == first[:-1]
    assert (first[-1].answered, second[-1].answered) == (0, 1)
    (read,) = captured
    assert "2026-11-28 03:15:00" in read["sql"]


def test_an_interval_is_cached_only_after_its_last_calls_are_written() -> None:
    just_over = NOW.replace(minute=31)
    fifteen_minute_history(just_over)

    made("OK", NOW.replace(minute=29), 1000)

    assert fifteen_minute_history(just_over)[-2].answered == 1
    assert fifteen_minute_history(NOW.replace(minute=33))[-2].answered == 1


def test_the_charts_say_in_words_what_they_draw() -> None:
    made("OK", NOW - timedelta(hours=2), 1000, 2000, 3000)
    made("API_5XX", NOW - timedelta(hours=2), 100)
    found = fifteen_minute_history(NOW)

    by_quarter_hour, times = calls_chart(found), latency_chart(found)

    assert by_quarter_hour.words == "4 calls, 0 limited and 1 failed; most at 01:15–01:30: 4."
    assert [bar.kind for bar in by_quarter_hour.bars] == ["ok", "failed"]
    assert times.words.startswith("01:15–01:30 p50 2.0 s, p95 2.9 s")
    assert [bar.kind for bar in times.bars] == ["p50", "p95"]
