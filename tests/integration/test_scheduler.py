"""The scheduler process survives killed children, hung tasks, and other schedulers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

import psycopg
import pytest
import redis
from django.utils import timezone

from medproc.env import PROJECT_ROOT
from pipeline.core.states import JobStatus, Step
from pipeline.models import Job, PeriodicTaskRun
from pipeline.operations.scheduler import LOCK
from pipeline.queueing.queues import entry_id
from pipeline.transitions import claim
from tests.support.rows import a_job
from tests.support.workers import children, until

WITH_A_HUNG_TASK = """
import threading
import django
django.setup()
from pipeline.operations.scheduler import PeriodicScheduler, PeriodicTask
PeriodicScheduler(
    [
        PeriodicTask(name="hangs", interval_s=1.0, run=lambda: threading.Event().wait() or ""),
        PeriodicTask(name="fails", interval_s=1.0, run=lambda: 1 / 0),
        PeriodicTask(name="works", interval_s=1.0, run=lambda: ""),
    ],
    deadline_s=0.5,
).run()
"""

WITH_A_TASK_THAT_NEEDS_REDIS = """
import django
django.setup()
import redis
from pipeline.operations import schedule, scheduler

def ask():
    raise redis.ConnectionError("away")

(reconcile,) = (t for t in scheduler.periodic_tasks() if t.name == schedule.RECONCILE)
asks = scheduler.PeriodicTask(name="asks", interval_s=0.1, run=ask)
scheduler.PeriodicScheduler([asks, reconcile]).run()
"""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start_scheduler(cloned_db: str, redis_db: redis.Redis) -> Iterator[Start]:
    """Provide a function that starts schedulers on the test's database."""
    started: list[subprocess.Popen[str]] = []

    def start(*command: str) -> subprocess.Popen[str]:
        scheduler = subprocess.Popen(
            [sys.executable, *(command or ("manage.py", "rqcron"))],
            cwd=PROJECT_ROOT,
            env=dict(os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(scheduler)
        return scheduler

    yield start
    for scheduler in started:
        for pid in children(scheduler.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        scheduler.kill()
        scheduler.communicate()


@contextmanager
def _tasks_stuck(url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Block every task with a table lock, and provide another database session."""
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as looker:
        holder.execute("LOCK TABLE job_queue, incidents IN ACCESS EXCLUSIVE MODE")
        yield looker
        holder.rollback()


def _stuck(looker: psycopg.Connection[tuple[object, ...]]) -> list[object]:
    found = looker.execute(
        "SELECT DISTINCT a.pid FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
        " WHERE l.locktype = 'advisory' AND l.granted AND a.wait_event_type = 'Lock'"
    )
    return [row[0] for row in found]


def _works(after: datetime | None = None) -> bool:
    ticks = PeriodicTaskRun.objects.filter(outcome="ok", name__in=["reconcile", "detect_incidents"])
    return (ticks if after is None else ticks.filter(started_at__gt=after)).count() == 2


def test_a_scheduler_ticks_and_releases_what_is_due(
    start_scheduler: Start, redis_db: redis.Redis
) -> None:
    job = a_job(
        status=JobStatus.PARKED,
        park_reason="a test",
        parked_until=timezone.now() - timedelta(seconds=1),
    )

    scheduler = start_scheduler()

    until(lambda: Job.objects.get(id=job.id).status == JobStatus.PENDING)
    until(_works)
    until(lambda: redis_db.llen("rq:queue:pass1"))
    assert redis_db.lrange("rq:queue:pass1", 0, -1) == [entry_id(job.id, "pass1", 1).encode()]
    scheduler.terminate()
    assert scheduler.wait(timeout=120) == 0


def test_a_child_that_is_killed_in_its_task_leaves_the_next_tick_alone(
    start_scheduler: Start, cloned_db: str
) -> None:
    scheduler = start_scheduler()
    until(_works)
    with _tasks_stuck(cloned_db) as looker:
        (first,) = until(lambda: _stuck(looker))
        (child,) = children(scheduler.pid)

        os.kill(child, signal.SIGKILL)

        # The session and the lock of the dead child end while its statement still waits.
        until(lambda: _stuck(looker) not in ([], [first]))
    killed_at = timezone.now()
    until(lambda: _works(killed_at))
    assert scheduler.poll() is None


def test_one_of_two_schedulers_works_and_the_other_takes_over(
    start_scheduler: Start, cloned_db: str
) -> None:
    schedulers = [start_scheduler(), start_scheduler()]
    until(_works)
    with _tasks_stuck(cloned_db) as looker:
        until(lambda: _stuck(looker))
        working = until(lambda: [c for c in schedulers if children(c.pid)])
        assert len(_stuck(looker)) == 1

        for pid in [p for c in working[:1] for p in (*children(c.pid), c.pid)]:
            os.kill(pid, signal.SIGKILL)

    killed_at = timezone.now()
    until(lambda: _works(killed_at))
    assert [c.poll() is None for c in schedulers].count(True) == 1


def test_a_task_that_hangs_or_fails_stops_no_other(start_scheduler: Start) -> None:
    scheduler = start_scheduler("-c", WITH_A_HUNG_TASK)
    until(lambda: PeriodicTaskRun.objects.filter(name="works", outcome="ok").exists())
    first = timezone.now()

    until(lambda: PeriodicTaskRun.objects.get(name="works").started_at > first)
    until(lambda: PeriodicTaskRun.objects.get(name="fails").outcome == "failed: ZeroDivisionError")

    assert PeriodicTaskRun.objects.get(name="hangs").finished_at is None
    scheduler.terminate()
    said, _ = scheduler.communicate(timeout=120)
    assert "hangs took more than" in said
    assert "ZeroDivisionError" in said


def test_a_redis_that_refuses_keeps_no_job_from_its_recovery(start_scheduler: Start) -> None:
    job = a_job()
    assert claim(Step.PASS1, "w") is not None
    Job.objects.filter(id=job.id).update(lease_expires_at=timezone.now())

    start_scheduler("-c", WITH_A_TASK_THAT_NEEDS_REDIS)

    until(lambda: Job.objects.get(id=job.id).status == JobStatus.PENDING)


def test_a_hung_task_of_a_killed_scheduler_does_not_keep_the_lock(
    start_scheduler: Start, cloned_db: str
) -> None:
    scheduler = start_scheduler("-c", WITH_A_HUNG_TASK.replace("deadline_s=0.5", "deadline_s=2"))
    until(lambda: PeriodicTaskRun.objects.filter(name="hangs", outcome="running").exists())

    scheduler.kill()

    with psycopg.connect(cloned_db, autocommit=True) as other:
        took = "SELECT pg_try_advisory_lock(%s)"
        assert other.execute(took, [LOCK]).fetchone() == (False,)
        until(lambda: other.execute(took, [LOCK]).fetchone() == (True,))


def test_a_scheduler_waits_for_a_postgresql_that_is_away(start_scheduler: Start) -> None:
    good, os.environ["DATABASE_URL"] = os.environ["DATABASE_URL"], "postgresql://x@127.0.0.1:9/x"
    try:
        scheduler = start_scheduler()
    finally:
        os.environ["DATABASE_URL"] = good

    assert scheduler.stdout is not None
    line = next(line for line in scheduler.stdout if "no periodic task runs" in line)

    assert "(POSTGRES_AWAY)" in line
    assert scheduler.poll() is None
