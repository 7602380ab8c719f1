"""The health check names a stopped scheduler, missing workers, and work that waits too long."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.core.management import call_command
from django.utils import timezone

from pipeline.core.states import Step
from pipeline.models import Job, PeriodicTaskRun
from pipeline.operations import schedule
from pipeline.operations.health import examine
from pipeline.transitions import claim
from pipeline.transitions.holds import pause_provider, pause_queue
from pipeline.workers import run_step
from tests.support.databases import as_owner
from tests.support.incident_rows import an_incident
from tests.support.rows import a_job

pytestmark = pytest.mark.django_db


def a_running_scheduler(**columns: Any) -> None:
    """Insert a recent run of every periodic task."""
    for task in schedule.names():
        PeriodicTaskRun.objects.create(
            name=task,
            **{
                "started_at": timezone.now(),
                "last_ok_at": timezone.now(),
                "outcome": "ok",
                **columns,
            },
        )


def test_a_stopped_scheduler_is_named_whatever_its_last_run_reported(
    redis_db: redis.Redis,
) -> None:
    a_running_scheduler(started_at=timezone.now() - timedelta(hours=1))

    (problem, *_) = examine().problems

    assert problem.startswith("no scheduler runs: the last task started 36")


def test_a_stopped_scheduler_is_one_problem_before_the_slowest_task_is_late(
    redis_db: redis.Redis,
) -> None:
    a_running_scheduler(started_at=timezone.now() - timedelta(seconds=20))
    assert schedule.alarm_s(schedule.RESET_STALE) > 20

    stopped = examine().problems
    PeriodicTaskRun.objects.filter(name=schedule.RESET_STALE).update(
        outcome="running", started_at=timezone.now() - timedelta(seconds=18)
    )
    held_up = examine().problems

    assert [each for each in stopped if "scheduler" in each] == [
        "no scheduler runs: the last task started 20 s ago; start manage.py rqcron"
    ]
    assert [each for each in held_up if "scheduler" in each] == [
        "the scheduler is at reset_stale_batches for 18 s; the other tasks wait"
    ]


def test_one_task_that_is_not_done_or_fails_is_named(redis_db: redis.Redis) -> None:
    a_running_scheduler()
    PeriodicTaskRun.objects.filter(name="reconcile").update(
        started_at=timezone.now() - timedelta(hours=1)
    )
    PeriodicTaskRun.objects.filter(name="detect_incidents").update(outcome="failed: DataError")

    problems = examine().problems

    assert "the periodic task detect_incidents failed: DataError" in problems
    assert any(p.startswith("the scheduler has not started reconcile for 36") for p in problems)


def test_a_task_that_hangs_and_is_killed_at_each_tick_is_named(redis_db: redis.Redis) -> None:
    a_running_scheduler()
    PeriodicTaskRun.objects.filter(name="reconcile").update(
        outcome="running", last_ok_at=timezone.now() - timedelta(hours=1)
    )

    problems = examine().problems

    assert "the periodic task reconcile starts and never ends; see the scheduler's log" in problems


def test_ages_of_waiting_and_running_work_need_no_scheduler(redis_db: redis.Redis) -> None:
    hour_ago = timezone.now() - timedelta(hours=1)
    a_job(step=Step.PAGES, available_at=hour_ago)
    a_job(step=Step.PAGES, available_at=timezone.now() + timedelta(hours=1))
    a_job(step=Step.PASS1)
    claim(Step.PASS1, "w1")
    Job.objects.filter(current_step="pass1").update(
        step_started_at=hour_ago, lease_expires_at=hour_ago
    )

    health = examine()

    assert health.oldest_waiting_s == pytest.approx(3600, abs=60)
    assert health.oldest_running_s == pytest.approx(3600, abs=60)
    assert (health.steps[Step.PAGES].waiting, health.steps[Step.PASS1].expired) == (1, 1)
    assert any(p.startswith("pages: 1 waiting, the oldest for 36") for p in health.problems)
    assert any(p.startswith("pass1: 1 running, the oldest for 36") for p in health.problems)
    assert any(p.startswith("pass1: 1 held by lost workers") for p in health.problems)


def test_the_command_ends_with_1_where_something_is_wrong(
    redis_db: redis.Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    a_running_scheduler()

    with pytest.raises(SystemExit) as wrong:
        call_command("health", "--json")

    found = json.loads(capsys.readouterr().out)
    assert (wrong.value.code, found["ok"]) == (1, False)
    assert found["problems"] == ["no worker runs; start manage.py rqworker-pool"]
    with pytest.raises(SystemExit):
        call_command("health")
    assert capsys.readouterr().out.startswith("problem: no worker runs")


def test_a_worker_reports_once_a_minute_that_no_scheduler_runs(
    redis_db: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="pipeline.workers.run_step"):
        for _ in range(3):
            run_step.run_step("pass1")

    assert [record.message for record in caplog.records] == [
        "no scheduler runs: no periodic task ever started; start manage.py rqcron"
    ]


def test_a_worker_says_all_that_is_wrong_with_the_scheduler(
    redis_db: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    a_running_scheduler(outcome="failed: DataError")
    with as_owner():
        PeriodicTaskRun.objects.filter(name="reconcile").delete()

    with caplog.at_level(logging.WARNING, logger="pipeline.workers.run_step"):
        run_step.run_step("pass1")

    (record,) = caplog.records
    assert "detect_incidents failed: DataError; " in record.message
    assert "the scheduler has never started reconcile" in record.message


def test_an_open_incident_and_a_pause_are_notices_and_no_problem(
    redis_db: redis.Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    a_running_scheduler()
    incident = an_incident()
    pause_queue(Step.PASS1, reason="a test")
    pause_provider("gemini", "gemini-x", reason="a test")

    found = examine()
    with suppress(SystemExit):
        call_command("health")
    said = capsys.readouterr().out

    opened, queue, provider = found.notices
    assert opened.startswith(f"an incident is open: outage of gemini {incident.model} since ")
    assert opened.endswith(f"see manage.py explain {incident.id}")
    assert "manage.py resume pass1 --reason" in queue
    assert "manage.py resume --provider gemini --model gemini-x --reason" in provider
    assert not [each for each in found.problems if "incident" in each or "paused" in each]
    assert f"notice: {opened}\n" in said
    assert "all is well" not in said
