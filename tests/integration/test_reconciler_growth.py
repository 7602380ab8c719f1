"""A tick costs the same for any number of waiting and parked jobs, and no wake-up stays lost."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest
import redis
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from pipeline.core.states import JobStatus, Step
from pipeline.models import Job, Pause
from pipeline.operations import operator_actions
from pipeline.queueing.queues import entry_id, push
from pipeline.queueing.reconciler import ROWS_LIMIT, WAKE_LIMIT
from pipeline.transitions import holds
from tests.support.incident_rows import an_incident
from tests.support.plans import analyzed, rows_read
from tests.support.waiting_rows import many_jobs

QUEUE = "rq:queue:pass1"


def _rows_of_a_tick() -> tuple[int, int]:
    """Run a tick; return the waiting jobs that its look reads, and the number of woken jobs."""
    with CaptureQueriesContext(connection) as asked:
        tick = operator_actions.jobs_reconcile()
    looks = [
        q["sql"] for q in asked if q["sql"].lstrip().startswith("SELECT") and "LATERAL" in q["sql"]
    ]
    assert looks
    return sum(rows_read(look)["job_queue"] for look in looks), tick.woken


def test_a_tick_reads_a_thousand_waiting_rows_of_a_pass_at_most(
    cloned_db: str, redis_db: redis.Redis
) -> None:
    found = []
    for more in (6_000, 12_000):
        many_jobs(more)
        analyzed("job_queue")
        redis_db.flushdb()
        found.append([_rows_of_a_tick(), _rows_of_a_tick()])
        assert redis_db.llen(QUEUE) == ROWS_LIMIT

    # The first tick sends the wake-ups, the second one only counts.
    assert found == [[(ROWS_LIMIT, WAKE_LIMIT), (ROWS_LIMIT, 0)]] * 2


def _work(redis_db: Any, entries: int) -> int:
    """Pop entries as workers do: each whole entry takes the best waiting row. Count the rows."""
    popped = redis_db.lpop(QUEUE, entries) or []
    whole = sum(bool(redis_db.exists(f"rq:job:{entry.decode()}")) for entry in popped)
    due = Job.objects.filter(status=JobStatus.PENDING).values("id")[:whole]
    return Job.objects.filter(id__in=due).update(status=JobStatus.COMPLETED)


def test_every_waiting_job_is_woken_whatever_is_lost_and_however_many_wait(
    cloned_db: str, redis_db: Any
) -> None:
    many_jobs(2_600)
    jobs = Job.objects.values_list("id", flat=True)
    push("pass1", *(entry_id(job, "pass1", 0) for job in jobs))
    random = Random(7)
    ticks = 0
    while waiting := Job.objects.filter(status=JobStatus.PENDING).count():
        ids = [entry.decode() for entry in redis_db.lrange(QUEUE, 0, -1)]
        # In turn: hashes behind the part that a tick reads, hashes in front, entries, and all.
        lost = [ids[1_200:], ids[:300], [], ids][ticks % 4]
        if lost:
            redis_db.delete(*(f"rq:job:{entry}" for entry in lost))
        if ticks % 4 == 2:
            redis_db.ltrim(QUEUE, random.randrange(500), -1)
        long_ago = timezone.now() - timedelta(minutes=1)
        Job.objects.update(updated_at=long_ago)

        operator_actions.jobs_reconcile()
        ticks += 1

        done = _work(redis_db, 5_000) if ticks % 2 else _work(redis_db, 700)
        assert done or redis_db.llen(QUEUE) == 0, "the queue has only broken entries"
        assert ticks < 30, f"{waiting} rows still wait"

    assert operator_actions.jobs_reconcile().woken == 0


@pytest.mark.django_db
def test_a_release_reads_no_parked_job_whose_hold_lasts() -> None:
    incident = an_incident()
    pause = Pause.objects.create(queue=Step.PASS1, reason="a test")
    later = timezone.now() + timedelta(hours=1)
    statement = holds._RELEASE.format(condition=holds._IS_DUE, incident="")
    read = []
    for more in (1_000, 3_000):
        many_jobs(more, "parked", incident=incident.id)
        many_jobs(more, "parked", pause=pause.id)
        many_jobs(more, "parked", until=later)
        analyzed("job_queue")
        read.append(rows_read(statement, {"limit": 500})["job_queue"])

    # One row of each hold, to find the next hold behind it.
    assert read[0] == read[1] <= 4
    Pause.objects.update(ended_at=timezone.now())
    assert len(holds.release_due(limit=5_000)) == 4_000
