"""A claim takes the right job at any table size, within batch limits, and after a preemption."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from pipeline.core.errors import ErrorCode
from pipeline.core.states import JobStatus, Step
from pipeline.models import Job, Pause, RecordBatch
from pipeline.operations import operator_actions
from pipeline.transitions import (
    Failure,
    Lease,
    claim,
    close_record_batch,
    complete_step,
    fail_step,
    fenced,
    next_of_record_batch,
    open_record_batch,
    requeue_interrupted,
    settle_record_batches,
    should_preempt,
)
from pipeline.transitions.claim_order import BEST_WAITING, parameters
from pipeline.transitions.rollup import Leaving, settle
from pipeline.workers.stuck_steps import leases_of
from tests.support.databases import as_owner
from tests.support.rows import a_job

LARGE, SMALL = 2, 0
RACES = 40

_SEED = """
WITH patients AS (
  INSERT INTO user_profiles (id, pseudonym)
  SELECT gen_random_uuid(), gen_random_uuid()::text RETURNING id
), records AS (
  INSERT INTO shell_files (id, patient_id, sha256, size_bytes, media_type, storage_key)
  SELECT gen_random_uuid(), patients.id, repeat('0', 64), 1, 'application/pdf', 'records/none'
  FROM patients, generate_series(1, %(waiting)s + 1)
  RETURNING id, patient_id
), numbered AS (
  SELECT id, patient_id, row_number() OVER () AS n FROM records
), sessions AS (
  INSERT INTO ai_processing_sessions (id, shell_file_id, patient_id)
  SELECT gen_random_uuid(), id, patient_id FROM numbered
), batches AS (
  INSERT INTO record_batches (id) SELECT gen_random_uuid() RETURNING id
), ended AS (
  INSERT INTO job_queue (id, shell_file_id, status, current_step, completed_at, record_batch_id)
  SELECT gen_random_uuid(), numbered.id, 'completed', 'pass1', now(), batches.id
  FROM batches, numbered, generate_series(1, %(ended)s) AS n(n) WHERE numbered.n = 1
)
INSERT INTO job_queue (id, shell_file_id, status, current_step, size_class, priority, available_at)
SELECT gen_random_uuid(), id, 'pending', 'pass1', n %% 3, n %% 5, now() - n * interval '10 ms'
FROM numbered WHERE n > 1
"""


def seed(*, ended: int, waiting: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SEED, {"ended": ended, "waiting": waiting})
        with as_owner():
            cursor.execute("ANALYZE job_queue")


def explained() -> tuple[dict[str, Any], int]:
    """Return the plan of the claim's search, and the number of database pages read."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {BEST_WAITING}", parameters(Step.PASS1)
        )
        (found,) = cursor.fetchone() or ("[]",)
    plan = (found if isinstance(found, list) else json.loads(found))[0]["Plan"]
    return plan, plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


@pytest.mark.usefixtures("cloned_db")
def test_claiming_reads_a_thousand_pages_at_most_however_large_the_table() -> None:
    seed(ended=200_000, waiting=3_000)

    plan, pages = explained()

    run = [node for node in nodes(plan) if node["Actual Loops"]]
    assert not [node for node in run if node["Node Type"] == "Seq Scan"]
    assert "idx_job_queue_waiting" in {node.get("Index Name") for node in run}
    # The search reads 64 candidates per class by index and key; the table has 5,000 rows.
    assert pages < 3 * 64 * 5
    assert claim(Step.PASS1, "w") is not None


@contextmanager
def a_connection() -> Iterator[None]:
    try:
        yield
    finally:
        connection.close()


@pytest.mark.usefixtures("cloned_db")
def test_ten_claims_at_once_of_a_batch_that_allows_three_take_three() -> None:
    batch = RecordBatch.objects.create(max_concurrent_tasks=3)
    other = a_job(priority=-1)
    for _ in range(10):
        a_job(record_batch=batch)

    def take(number: int) -> UUID | None:
        with a_connection():
            lease = claim(Step.PASS1, f"w{number}")
            return lease.job_id if lease else None

    with ThreadPoolExecutor(10) as workers:
        taken = [job_id for job_id in workers.map(take, range(10)) if job_id]

    assert Job.objects.filter(record_batch=batch, status=JobStatus.PROCESSING).count() == 3
    assert sorted(map(str, taken)) == sorted(
        str(id_)
        for id_ in Job.objects.filter(status=JobStatus.PROCESSING).values_list("id", flat=True)
    )
    assert other.id in taken


@pytest.mark.django_db
def test_a_record_that_leaves_a_full_batch_names_who_is_next() -> None:
    batch = RecordBatch.objects.create(max_concurrent_tasks=1)
    for _ in range(3):
        a_job(record_batch=batch)
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    assert claim(Step.PASS1, "w2") is None

    with fenced(lease):
        requeue_interrupted(lease)
        due = [each.due for each in next_of_record_batch(batch.id, but=lease.job_id)]

    assert [each.step for each in due] == [Step.PASS1]
    assert due[0].job_id != lease.job_id


@pytest.mark.django_db
def test_a_batch_ends_with_its_last_record_and_failed_where_one_has() -> None:
    batch_id = open_record_batch()
    for _ in range(2):
        a_job(record_batch_id=batch_id)
    close_record_batch(batch_id, 2)
    states = []

    for number in range(2):
        lease = claim(Step.PASS1, f"w{number}")
        assert lease is not None
        with fenced(lease):
            if number:
                complete_step(lease, None)
            else:
                fail_step(lease, Failure(code=ErrorCode.PARSE_JSON, message="test"))
            settle([Leaving.by(lease, "test", has_ended=True)])
        batch = RecordBatch.objects.get(id=batch_id)
        states.append((batch.status, batch.records_completed, batch.records_failed))

    assert states == [("processing", 0, 0), ("failed", 1, 1)]


@pytest.mark.django_db
def test_a_batch_whose_last_record_ended_unheard_is_ended_by_the_scheduler() -> None:
    batch_id = open_record_batch()
    job = a_job(record_batch_id=batch_id)
    close_record_batch(batch_id, 1)
    Job.objects.filter(id=job.id).update(status=JobStatus.CANCELLED)

    settled = settle_record_batches(), settle_record_batches()

    batch = RecordBatch.objects.get(id=batch_id)
    assert settled == (1, 0)
    assert (batch.status, batch.records_cancelled) == ("failed", 1)


@pytest.mark.usefixtures("redis_db")
@pytest.mark.django_db
def test_the_totals_of_a_batch_follow_a_record_that_is_retried_and_cancelled() -> None:
    batch_id = open_record_batch()
    job = a_job(record_batch_id=batch_id)
    close_record_batch(batch_id, 1)
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    with fenced(lease):
        fail_step(lease, Failure(code=ErrorCode.PARSE_JSON, message="test"))
        settle([Leaving.by(lease, "test", has_ended=True)])
    operator_actions.record_retry(job.shell_file_id, reason="a test")

    operator_actions.job_cancel(job.id, reason="a test")

    batch = RecordBatch.objects.get(id=batch_id)
    assert (batch.records_failed, batch.records_cancelled) == (0, 1)


def _large_and_small(**small: Any) -> tuple[Job, Job]:
    """Return a large job that runs Pass 1, and a small job that has waited for Pass 0.5."""
    large = a_job(size_class=LARGE)
    assert claim(Step.PASS1, "w") is not None
    columns = {"available_at": timezone.now() - timedelta(minutes=1), "size_class": SMALL}
    return large, a_job(step=Step.PASS05, **{**columns, **small})


@pytest.mark.django_db
def test_a_large_step_makes_room_for_smaller_work_of_any_pass() -> None:
    large, _ = _large_and_small()

    assert should_preempt(large.id, Step.PASS1)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "small",
    [
        {"size_class": LARGE},
        {"priority": -1},
        {"available_at": timezone.now() + timedelta(hours=1)},
        {"step": Step.PAGES},
    ],
    ids=["as large", "of lower priority", "not due", "read by other workers"],
)
def test_a_large_step_makes_room_for_nothing_else(small: dict[str, Any]) -> None:
    large = a_job(size_class=LARGE)
    claim(Step.PASS1, "w")
    waits = {"step": Step.PASS05, "available_at": timezone.now() - timedelta(minutes=1)}
    a_job(**{**waits, **small})

    assert not should_preempt(large.id, Step.PASS1)


@pytest.mark.django_db
def test_no_step_makes_room_for_a_queue_that_is_paused() -> None:
    large, _ = _large_and_small()
    Pause.objects.create(queue=Step.PASS05, reason="test")

    assert not should_preempt(large.id, Step.PASS1)


@pytest.mark.django_db
def test_as_many_steps_make_room_as_small_records_wait_for_it() -> None:
    large, _ = _large_and_small()
    second = a_job(size_class=LARGE)
    claim(Step.PASS1, "w2")

    assert [should_preempt(job.id, Step.PASS1) for job in (large, second)] == [True, False]


@pytest.mark.django_db
def test_a_preempted_job_is_claimed_directly_after_the_smaller_work() -> None:
    large, small = _large_and_small()
    held = Job.objects.get(id=large.id)
    lease = _lease_of(held)
    with fenced(lease):
        requeue_interrupted(lease, preempted=True)

    # The wake-up of Pass 1 of the preempted job starts the small job.
    first = claim(Step.PASS1, "w", others=["pass05"])
    # The wake-up of Pass 0.5 of the small job starts the preempted job.
    second = claim(Step.PASS05, "w2", others=["pass1"])

    assert [each.job_id for each in (first, second) if each] == [small.id, large.id]
    held.refresh_from_db()
    assert held.preempted_at is None


@pytest.mark.django_db
def test_a_preempted_job_is_not_held_back_without_limit() -> None:
    large, _ = _large_and_small()
    lease = _lease_of(Job.objects.get(id=large.id))
    with fenced(lease):
        requeue_interrupted(lease, preempted=True)
    Job.objects.filter(id=large.id).update(available_at=timezone.now() - timedelta(hours=1))

    taken = claim(Step.PASS1, "w", others=["pass05"])

    assert taken is not None
    assert taken.job_id == large.id


@pytest.mark.usefixtures("cloned_db")
def test_no_wake_up_is_wasted_when_workers_claim_the_jobs_that_preempted_a_large_one() -> None:
    for _ in range(RACES):
        large = a_job(size_class=LARGE)
        lease = claim(Step.PASS1, "first")
        assert lease is not None
        smalls = [a_job(size_class=SMALL, step=step) for step in (Step.PASS1, Step.PASS05)]
        with fenced(lease):
            requeue_interrupted(lease, preempted=True)
        together = Barrier(3)

        def work(step: Step, together: Barrier = together) -> UUID | None:
            together.wait()
            other = Step.PASS05 if step is Step.PASS1 else Step.PASS1
            taken = claim(step, "w", others=[other.value])
            connection.close()
            return taken.job_id if taken else None

        with ThreadPoolExecutor(3) as pool:
            claimed = list(pool.map(work, [Step.PASS1, Step.PASS1, Step.PASS05]))

        assert set(claimed) == {large.id, *(each.id for each in smalls)}


def _lease_of(job: Job) -> Lease:
    (lease,) = [each for each in leases_of(job.worker_id or "") if each.job_id == job.id]
    return lease
