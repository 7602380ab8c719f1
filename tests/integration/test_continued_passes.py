"""A horse goes on with the next pass of a record, unless other work is due first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from pipeline.core.states import JobStatus, Step
from pipeline.models import Job, Pause, RecordBatch
from pipeline.operations import operator_actions
from pipeline.queueing import queues
from pipeline.queueing.queues import StepEntry, entry_id, queue_depths
from pipeline.transitions import claim, complete_step, fenced
from pipeline.workers import run_step
from pipeline.workers.continuation import GoingOn
from tests.support.rows import a_job
from tests.support.workers import WorkerCommand, until

pytestmark = pytest.mark.usefixtures("cloned_db", "redis_db")
StartWorker = Callable[..., WorkerCommand]
ALL_PASSES = {"SKIPPED_PASSES": ()}
PASSES = ["pass05", "pass1", "pass1_5", "pass2", "pass3"]


@pytest.fixture(autouse=True)
def _steps_are_fixtures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepEntry, "entry_point", "tests.support.jobs.run_step")


def submit(step: Step = Step.PASS05, **columns: Any) -> Job:
    """Insert a waiting record, and wake a worker for it."""
    job = a_job(step=step, **columns)
    queues.push(step.value, entry_id(job.id, step.value, 0))
    return job


def status_of(job: Job) -> str:
    return str(Job.objects.get(id=job.id).status)


def steps(worker: WorkerCommand, event: str) -> list[str]:
    return [each["step"] for each in worker.seen(event)]


def test_one_horse_and_one_wake_up_lead_a_record_through_all_passes(
    start_worker: StartWorker,
) -> None:
    job = submit()
    worker = start_worker("pass_on", "rqworker", settings=ALL_PASSES)

    until(lambda: status_of(job) == JobStatus.COMPLETED)

    assert worker.stop() == 0
    assert steps(worker, "began") == ["pass05"]
    assert steps(worker, "ran") == PASSES
    assert len({each["pid"] for each in worker.seen("ran")}) == 1
    job.refresh_from_db()
    assert (job.lease_gen, job.crash_count) == (len(PASSES), 0)


def test_a_worker_goes_on_only_with_a_pass_that_it_serves(start_worker: StartWorker) -> None:
    job = submit()
    worker = start_worker("pass_on", "rqworker", "pass05", "pass1", settings=ALL_PASSES)

    until(lambda: queue_depths()["pass1_5"] == 1)

    assert worker.stop() == 0
    assert steps(worker, "ran") == ["pass05", "pass1"]
    assert status_of(job) == JobStatus.PENDING


@pytest.mark.parametrize(
    ("does", "next_entry"), [("be_overtaken", "pass3"), ("leave_a_call", "pass1")]
)
def test_a_horse_ends_where_preferred_work_waits_or_a_thread_is_left(
    start_worker: StartWorker, does: str, next_entry: str
) -> None:
    job = submit()
    worker = start_worker(does, "rqworker", settings=ALL_PASSES)

    until(lambda: status_of(job) == JobStatus.COMPLETED)

    assert worker.stop() == 0
    assert steps(worker, "began")[:2] == ["pass05", next_entry]
    assert steps(worker, "ran") == PASSES
    first, second = worker.seen("ran")[:2]
    assert first["pid"] != second["pid"]


def test_each_pass_of_a_larger_record_has_a_horse_of_its_own(start_worker: StartWorker) -> None:
    job = submit(size_class=1)
    worker = start_worker("pass_on", "rqworker", settings=ALL_PASSES)

    until(lambda: status_of(job) == JobStatus.COMPLETED)

    assert worker.stop() == 0
    assert steps(worker, "began") == steps(worker, "ran") == PASSES
    assert len({each["pid"] for each in worker.seen("ran")}) == len(PASSES)


@pytest.mark.parametrize("does", ["be_suspended", "be_stopped"])
def test_a_horse_begins_nothing_after_a_suspension_or_a_stop(
    start_worker: StartWorker, does: str
) -> None:
    job = submit()
    worker = start_worker(does, "rqworker", "--burst", settings=ALL_PASSES)

    until(lambda: Job.objects.get(id=job.id).current_step == Step.PASS1)
    if does == "be_suspended":
        until(lambda: queue_depths()["pass1"] == 1)
        assert steps(worker, "ran") == ["pass05"]
        queues.resume()

    until(lambda: status_of(job) == JobStatus.COMPLETED)
    assert worker.finish() == 0
    assert steps(worker, "began") == ["pass05", "pass1"]


def test_a_connection_that_is_lost_after_the_work_repeats_no_pass(
    start_worker: StartWorker,
) -> None:
    job = submit()
    worker = start_worker("lose_the_connection", "rqworker", settings=ALL_PASSES)

    until(lambda: status_of(job) == JobStatus.COMPLETED)

    assert worker.stop() == 0
    assert steps(worker, "ran") == PASSES
    # The second pass has a horse of its own, because the question about it had no answer.
    assert steps(worker, "began") == ["pass05", "pass1"]


def test_a_horse_that_finds_nothing_to_go_on_with_sends_the_wake_ups_that_it_left_out() -> None:
    batch = RecordBatch.objects.create(max_concurrent_tasks=1)
    begun, waits = (a_job(step=Step.PASS05, record_batch=batch) for _ in range(2))
    lease = claim(Step.PASS05, "w1")
    assert lease is not None
    with fenced(lease):
        complete_step(lease, Step.PASS1)
    going_on = GoingOn.after(lease, Step.PASS1)
    Pause.objects.create(queue=Step.PASS1, reason="a test")

    assert run_step._go_on(going_on, may_continue=True) is None

    assert {lease.job_id} <= {begun.id, waits.id}
    assert queue_depths()["pass1"] == 1
    assert queue_depths()["pass05"] == 1


def test_a_kill_between_two_passes_costs_a_wait_and_nothing_else(start_worker: StartWorker) -> None:
    job = submit()
    worker = start_worker("die_between_passes", "rqworker", "--burst", settings=ALL_PASSES)
    worker.wait_for("continues", 1)
    assert worker.finish() == 0

    job.refresh_from_db()
    assert (job.current_step, job.status, job.crash_count) == ("pass1", JobStatus.PENDING, 0)
    assert queue_depths()["pass1"] == 0
    long_ago = timezone.now() - timedelta(minutes=1)
    Job.objects.update(available_at=long_ago, updated_at=long_ago)
    operator_actions.jobs_reconcile()

    assert queue_depths()["pass1"] == 1
    again = start_worker("pass_on", "rqworker", "--burst", settings=ALL_PASSES)
    assert again.finish() == 0
    assert status_of(job) == JobStatus.COMPLETED
    assert steps(again, "ran") == PASSES[1:]
