"""Every place of a record batch that becomes free is given on, and only such a place."""

from __future__ import annotations

from datetime import timedelta

import pytest
import redis
from django.db import transaction
from django.utils import timezone

from pipeline.core.states import Step
from pipeline.models import Job, RecordBatch
from pipeline.models.fields import ClockTimestamp
from pipeline.operations import operator_actions
from pipeline.operations.job_actions import job_cancel
from pipeline.queueing.queues import entry_id, push, queue_depths
from pipeline.queueing.record_places import settle_and_wake
from pipeline.transitions import Lease, claim, complete_step, fenced
from pipeline.transitions.rollup import Leaving
from tests.support.rows import a_job

pytestmark = pytest.mark.usefixtures("cloned_db", "redis_db")
LONG_AGO = timedelta(minutes=5)


def a_batch(most: int, records: int) -> list[Job]:
    """Insert records of one batch, whose wake-ups were sent long ago."""
    batch = RecordBatch.objects.create(max_concurrent_tasks=most)
    then = timezone.now() - LONG_AGO
    jobs = [a_job(record_batch=batch, available_at=then) for _ in range(records)]
    Job.objects.filter(record_batch=batch).update(updated_at=then)
    return jobs


def claimed(worker: str) -> Lease:
    lease = claim(Step.PASS1, worker)
    assert lease is not None
    return lease


def end(lease: Lease) -> None:
    """Complete the job of a lease, as `run_step` does."""
    with fenced(lease):
        complete_step(lease, None)
        settle_and_wake([Leaving.by(lease, "a test", has_ended=True)])


def spend(redis_db: redis.Redis) -> int:
    """Let the workers take all wake-ups of the pass, and find the batch full; return how many."""
    entries = queue_depths()["pass1"]
    redis_db.delete("rq:queue:pass1")
    return entries


def test_two_places_that_become_free_one_after_the_other_wake_two_records(
    redis_db: redis.Redis,
) -> None:
    a_batch(2, 6)
    first, second = claimed("w1"), claimed("w2")
    assert claim(Step.PASS1, "w3") is None

    end(first)
    end(second)

    assert spend(redis_db) == 2
    third, fourth = claimed("w1"), claimed("w2")
    end(third)
    end(fourth)
    assert spend(redis_db) == 2


def test_a_queue_with_an_entry_per_waiting_record_gets_no_more(redis_db: redis.Redis) -> None:
    jobs = a_batch(10, 5)
    push("pass1", *(entry_id(job.id, "pass1", 0) for job in jobs[1:]))

    end(claimed("w1"))

    assert queue_depths()["pass1"] == 4


def test_a_place_is_given_on_after_the_commit(redis_db: redis.Redis) -> None:
    a_batch(1, 2)
    lease = claimed("w1")

    with transaction.atomic():
        end(lease)
        assert queue_depths()["pass1"] == 0

    assert queue_depths()["pass1"] == 1


def test_a_tick_wakes_no_record_that_only_waits_for_its_batch(redis_db: redis.Redis) -> None:
    a_batch(2, 20)
    other = a_job(available_at=timezone.now() - LONG_AGO)
    Job.objects.filter(id=other.id).update(updated_at=timezone.now() - LONG_AGO)
    lease = claimed("w1")
    assert lease.record_batch_id is not None

    woken = [operator_actions.jobs_reconcile().woken]
    spend(redis_db)
    claimed("w2")
    Job.objects.update(updated_at=timezone.now() - LONG_AGO)
    woken.append(operator_actions.jobs_reconcile().woken)
    spend(redis_db)
    claim(Step.PASS1, "w3")
    Job.objects.update(updated_at=timezone.now() - LONG_AGO)
    woken.append(operator_actions.jobs_reconcile().woken)

    # One place and the other record; then the other record; then nothing.
    assert woken == [2, 1, 0]


def test_a_cancellation_gives_the_place_of_a_lost_worker_on(redis_db: redis.Redis) -> None:
    a_batch(1, 2)
    lease = claimed("w1")
    Job.objects.filter(id=lease.job_id).update(lease_expires_at=ClockTimestamp())

    cancelled = job_cancel(lease.job_id, reason="a test")

    assert cancelled.is_ended
    assert queue_depths()["pass1"] == 1
