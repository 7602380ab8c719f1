"""Hourly snapshots: each hour is one row per priority and one file, and neither gets lost."""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import redis
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from medproc import private
from observability.actions import retention
from observability.metrics import sla_files, sla_snapshots
from observability.metrics.sla_files import PATTERN
from observability.metrics.sla_snapshots import HOUR, snapshot, write_hours
from observability.metrics.sla_trends import TrendPeriod, trends
from observability.models import SlaSnapshot
from observability.permissions import Role
from pipeline.core.states import JobStatus
from pipeline.models import Job
from pipeline.models.sla import PRIORITIES
from pipeline.operations import health
from pipeline.operations.scheduler import periodic_tasks
from tests.integration.test_storage_full import no_room
from tests.support.databases import rewriting
from tests.support.rows import a_job
from tests.support.users import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("metrics")]

ENDED = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD, JobStatus.CANCELLED)
STATEMENTS = 8
"""Two look for missing hours, three make the forecast, one writes, and two are of the files."""


@pytest.fixture(autouse=True)
def _files(redis_db: redis.Redis, settings: Any, tmp_path: Path) -> None:
    """Give each test a data folder of its own, and the documented times."""
    settings.MEDPROC_DATA_DIR = tmp_path
    settings.TIME_SCALE = 1.0
    settings.MEDPROC_PROVIDER, settings.GEMINI_API_KEY = "gemini", "none"


def this_hour() -> datetime:
    return timezone.now().replace(minute=0, second=0, microsecond=0)


def a_past_job(submitted: datetime, ended: datetime | None, **columns: Any) -> Job:
    """Insert a job of an earlier time; with an end, it has completed."""
    status = JobStatus.COMPLETED if ended else JobStatus.PENDING
    job = a_job(**{"status": status, **columns})
    Job.objects.filter(id=job.id).update(created_at=submitted, completed_at=ended)
    return job


def rows(hour: datetime) -> dict[str, SlaSnapshot]:
    return {row.priority: row for row in SlaSnapshot.objects.filter(hour=hour)}


def names() -> set[str]:
    return {path.name for path in sla_files.folder().iterdir()}


def test_a_row_counts_ends_and_what_was_left_at_the_end_of_the_hour() -> None:
    hour = this_hour() - 4 * HOUR
    minute = timedelta(minutes=1)
    for took in (4, 8, 12):
        a_past_job(hour, hour + took * minute, priority=1)
    a_past_job(hour - HOUR, hour + minute, priority=1)
    a_past_job(hour, hour + 2 * minute, priority=1, status=JobStatus.FAILED)
    a_past_job(hour, hour + 3 * minute, priority=1, status=JobStatus.CANCELLED)
    # Open at the end of the hour: one is late, one is not, one came later.
    a_past_job(hour + 30 * minute, hour + 70 * minute, priority=1)
    a_past_job(hour + 50 * minute, None, priority=1)
    a_past_job(hour + 90 * minute, None, priority=1)
    a_past_job(hour, hour + 5 * minute, priority=-1)

    snapshot()

    urgent, normal, low = (rows(hour)[name] for name in PRIORITIES)
    assert (urgent.finished, urgent.met, urgent.missed) == (5, 3, 2)
    # Completed after 4, 8, 12 and 61 minutes.
    assert urgent.median_s == pytest.approx(600)
    assert urgent.p95_s == pytest.approx((12 + 0.85 * 49) * 60)
    assert (urgent.backlog, urgent.late, urgent.target_s) == (2, 1, 900)
    assert (normal.finished, normal.backlog, normal.median_s) == (0, 0, None)
    assert (low.finished, low.met, low.target_s) == (1, 1, 86_400)


def test_a_missed_hour_is_filled_in_and_a_repeated_hour_changes_nothing() -> None:
    oldest = this_hour() - 40 * HOUR
    a_past_job(oldest, oldest + timedelta(minutes=10))
    a_past_job(this_hour() - HOUR, None)

    said = snapshot()
    whole = set(SlaSnapshot.objects.values_list("hour", flat=True))
    gap = this_hour() - 20 * HOUR
    SlaSnapshot.objects.filter(hour=gap).delete()
    before = list(SlaSnapshot.objects.order_by("id").values())
    again = write_hours([(oldest, False)])
    snapshot()

    assert oldest in whole
    assert gap in whole
    assert len(whole) in {39, 40}
    assert said == f"{len(whole)} missed hours of the service level filled in"
    assert again == 0
    assert len(rows(gap)) == len(PRIORITIES)
    assert [row for row in SlaSnapshot.objects.order_by("id").values() if row["hour"] != gap] == (
        before
    )
    assert snapshot() == ""


def test_only_the_hour_that_has_just_ended_has_a_forecast(settings: Any) -> None:
    settings.TIME_SCALE = 0.0001
    a_past_job(this_hour() - 3 * HOUR, None)

    snapshot()

    ends = dict(
        SlaSnapshot.objects.filter(priority="normal").values_list("hour", "backlog_ends_at")
    )
    newest = max(ends)
    assert newest == this_hour() - HOUR
    assert ends[newest] is not None
    assert {ends[hour] for hour in ends if hour != newest} == {None}


def test_pruned_hours_do_not_come_back_and_their_files_go(settings: Any) -> None:
    settings.SLA_SNAPSHOT_RETENTION_DAYS = 31
    hour = this_hour() - 30 * HOUR
    a_past_job(hour, hour + timedelta(minutes=1))
    snapshot()
    assert hour.strftime(PATTERN) in names()

    (pruned,) = retention.prune_audited("scheduler", {"sla_snapshots": 1})
    snapshot()

    assert pruned.removed in {3 * 6, 3 * 7}
    assert retention.due_rules()["sla_snapshots"] == 31
    assert hour.strftime(PATTERN) not in names()
    assert not rows(hour)
    assert names() == {
        each.strftime(PATTERN) for each in SlaSnapshot.objects.values_list("hour", flat=True)
    }


def test_a_file_has_the_figures_of_its_row_and_is_written_again_if_it_is_lost() -> None:
    hour = this_hour() - 3 * HOUR
    a_past_job(hour, hour + timedelta(minutes=10), priority=1)
    old, young = (sla_files.folder() / f"{private.DRAFT}sla.json.{n}" for n in (1, 2))
    snapshot()
    path = sla_files.folder() / hour.strftime(PATTERN)
    first = path.read_bytes()
    path.unlink()
    for draft in (old, young):
        draft.touch()
    os.utime(old, (0, 0))
    private_mode = sla_files.folder().stat().st_mode & 0o777

    snapshot()

    figures = json.loads(first)
    assert figures["hour"] == hour.isoformat().replace("+00:00", "Z")
    assert list(figures["priorities"]) == ["low", "normal", "urgent"]
    assert figures["priorities"]["urgent"] == {
        "target_s": 900, "finished": 1, "met": 1, "missed": 0, "median_s": 600, "p95_s": 600,
        "backlog": 0, "late": 0, "backlog_ends_at": None,
    }  # fmt: skip
    assert path.read_bytes() == first
    # The draft of a killed writer goes; another process may still write the young one.
    assert (old.exists(), young.exists()) == (False, True)
    assert (path.stat().st_mode & 0o777, private_mode) == (0o600, 0o700)


@pytest.fixture
def _a_file_in_place_of_the_folder(tmp_path: Path) -> Iterator[None]:
    (tmp_path / "metrics").touch()
    yield
    (tmp_path / "metrics").unlink()


@pytest.mark.usefixtures("_a_file_in_place_of_the_folder")
def test_a_folder_that_cannot_be_written_is_one_line_and_a_finding_and_keeps_the_rows(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    hour = this_hour() - 3 * HOUR
    a_past_job(hour, hour + timedelta(minutes=10))

    with caplog.at_level(logging.ERROR):
        snapshot()
    with rewriting():
        SlaSnapshot.objects.update(created_at=timezone.now() - timedelta(hours=1))

    (line,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
    assert line.startswith(f"the hourly snapshots cannot be written to {tmp_path}/metrics: ")
    assert "Let the user of the scheduler write there" in line
    assert len(rows(hour)) == len(PRIORITIES)
    assert any("hourly snapshots not in" in problem for problem in health.examine().problems)


def test_a_full_disk_leaves_no_half_file_and_the_next_run_writes_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hour = this_hour() - 3 * HOUR
    a_past_job(hour, hour + timedelta(minutes=10))

    with no_room(), caplog.at_level(logging.ERROR):
        snapshot()
    after = names()
    lines = [each.getMessage() for each in caplog.records if "snapshots" in each.getMessage()]
    output = io.StringIO()
    call_command("snapshot_metrics", json=True, stdout=output)

    assert after == set()
    assert len(lines) == 1
    assert "the disk is full (STORAGE_FULL)" in lines[0]
    assert hour.strftime(PATTERN) in names()
    assert json.loads(output.getvalue())["files_missing"] == 0
    assert sla_files.problems() == []


def test_a_tick_has_the_same_few_statements_for_one_and_for_many_records() -> None:
    (task,) = [task for task in periodic_tasks() if task.name == "snapshot_metrics"]
    hour = this_hour() - 3 * HOUR

    def run() -> int:
        SlaSnapshot.objects.all().delete()
        shutil.rmtree(sla_files.folder(), ignore_errors=True)
        with CaptureQueriesContext(connection) as captured:
            task.run()
        return len(captured)

    a_past_job(hour, hour + timedelta(minutes=10))
    few = run()
    for minute in range(20):
        a_past_job(hour, hour + timedelta(minutes=minute), priority=minute % 3 - 1)
        a_past_job(hour, None)
    many = run()

    assert few == many <= STATEMENTS
    assert task.interval_s == 300


def test_the_figures_of_an_hour_come_from_indexes() -> None:
    hour = this_hour() - 3 * HOUR
    a_past_job(hour, hour + timedelta(minutes=10))
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off")
        cursor.execute(
            f"EXPLAIN (FORMAT JSON) {sla_snapshots._WRITE}",
            {"hours": [hour], "newest": None, "ends_at": None} | dict.fromkeys(PRIORITIES, 900.0),
        )
        plan = json.dumps(cursor.fetchone()[0])

    assert '"Relation Name": "job_queue"' in plan
    assert '"Seq Scan"' not in plan
    assert "idx_job_queue_completed" in plan


def test_a_point_of_a_week_joins_six_hours_by_the_records_of_each() -> None:
    now = timezone.now()
    newest = now - HOUR
    newest = newest.replace(hour=newest.hour // 6 * 6, minute=0, second=0, microsecond=0)
    at = newest - 6 * HOUR
    for hour, met, missed, median_s, p95_s, backlog, late in (
        (at, 1, 0, 60.0, 100.0, 5, 2),
        (at + HOUR, 2, 1, 100.0, 90.0, 7, 1),
        (at + 2 * HOUR, 0, 1, None, None, 4, 3),
        (at + 6 * HOUR, 0, 0, None, None, 1, 0),
    ):
        SlaSnapshot.objects.create(
            hour=hour, priority="urgent", target_s=900.0, finished=met + missed, met=met,
            missed=missed, median_s=median_s, p95_s=p95_s, backlog=backlog, late=late,
        )  # fmt: skip

    urgent = next(each for each in trends(TrendPeriod.WEEK, now) if each.priority == "urgent")

    found = urgent.bins[-2]
    assert (found.at, found.hours) == (at, 3)
    assert (found.finished, found.met, found.missed) == (5, 3, 2)
    # The third hour has no median, so its record has no weight.
    assert found.median_s == pytest.approx((60 + 3 * 100) / 4)
    assert found.p95_s == 100
    assert (found.backlog, found.late) == (4, 3)
    assert urgent.newest is urgent.bins[-1]
    assert urgent.until == newest + HOUR


def test_the_overview_shows_the_trends_of_the_chosen_period_in_one_more_statement() -> None:
    cache.clear()
    client = client_of(Role.VIEWER)
    url = reverse("admin:overview")
    empty = client.get(url).content.decode()
    hour = this_hour() - 30 * HOUR
    a_past_job(hour, hour + timedelta(minutes=10), priority=1)
    a_past_job(hour + 25 * HOUR, hour + 26 * HOUR, priority=1)
    snapshot()

    def statements(**named: Any) -> tuple[str, int]:
        with CaptureQueriesContext(connection) as captured:
            answer = client.get(url, **named)
        assert answer.status_code == HTTPStatus.OK
        return answer.content.decode(), len(captured)

    client.get(url)
    day, of_page = statements()
    week, _ = statements(data={"sla": "7d"})
    odd, _ = statements(data={"sla": "x"})
    polled, of_poll = statements(headers={"HX-Request": "true", "HX-Target": "live"})

    assert "No snapshot within this period" in empty
    assert "Records that ended, urgent: 0 of 1 in time." in day
    assert "Records that ended, urgent: 1 of 2 in time." in week
    assert "target 15 min" in day
    assert "<b>50 %</b> in time" in week
    assert 'href="?sla=24h#trends" aria-current="true"' in odd
    assert 'id="trends"' not in polled
    assert of_page == of_poll + 1
    assert len(day) < 150_000
