"""A step that hangs is ended with its lease, and its record never blocks the workers of a pass."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from pipeline.core.states import JobStatus, Step
from pipeline.models import Job, Session
from pipeline.operations import operator_actions
from pipeline.queueing import queues
from pipeline.queueing.queues import StepEntry, WorkersBeside, entry_id, workers_beside
from pipeline.transitions import (
    Lease,
    claim,
    complete_step,
    fenced,
    mark_hung,
    should_preempt,
    take_expired,
)
from pipeline.workers.horse_watch import STALL_S
from pipeline.workers.rq_worker import LOOK_S
from tests.support.databases import no_connections
from tests.support.jobs import HOLDS_THE_INTERPRETER, PAUSES, STOPS
from tests.support.rows import a_job
from tests.support.workers import WorkerCommand, is_alive, lasting, until

StartWorker = Callable[..., WorkerCommand]
LEASE_S = 2.0
HEALTHY = 6
SHORT = {"LEASE_S": 40.0, "HEARTBEAT_S": 4.0}
"""A lease of `LEASE_S` and a heartbeat of 0.2 s at the scale of the tests."""


@pytest.fixture(autouse=True)
def _steps_are_fixtures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "start_worker" in request.fixturenames:
        request.getfixturevalue("redis_db")
        monkeypatch.setattr(StepEntry, "entry_point", "tests.support.jobs.run_step")


def submit(storage_key: str = "records/none", **columns: Any) -> Job:
    """Insert a waiting record of Pass 1, and wake a worker for it."""
    job = a_job(storage_key=storage_key, **columns)
    queues.push("pass1", entry_id(job.id, "pass1", 0))
    return job


def reload(job: Job) -> Job:
    return Job.objects.get(id=job.id)


def reconciled_until(condition: Callable[[], bool]) -> None:
    """Run the reconciler until the condition is true."""

    def look() -> bool:
        expired = Job.objects.filter(status=JobStatus.PROCESSING, lease_expires_at__lte=Now())
        # The worker notes a hang before the lease ends. On a busy machine the note can be late.
        if not expired.exclude(hung_at__gte=F("step_started_at")).exists():
            operator_actions.jobs_reconcile()
        return condition()

    until(look)


@pytest.mark.usefixtures("cloned_db")
@pytest.mark.parametrize("poison", [STOPS, HOLDS_THE_INTERPRETER])
def test_a_horse_that_hangs_is_ended_with_its_lease_and_its_worker_is_free_again(
    poison: str, start_worker: StartWorker
) -> None:
    job = submit(poison)
    worker = start_worker("claim_and_run", "rqworker", "pass1", settings=SHORT)
    (claimed,) = worker.wait_for("claimed")
    healthy = submit()

    until(lambda: reload(job).hung_at)
    until(lambda: reload(healthy).status == JobStatus.COMPLETED)

    assert not is_alive(claimed["pid"])
    ended_after_s = (reload(job).hung_at - reload(job).step_started_at).total_seconds()
    # The last sign of life is the claim, a moment before the step's start is written.
    assert 0.8 * LEASE_S < ended_after_s < 5 * LEASE_S
    assert "the horse gives no sign of life" in worker.printed()
    assert worker.stop() == 0


@pytest.mark.usefixtures("cloned_db")
def test_a_silent_step_is_no_hang_while_postgresql_refuses(start_worker: StartWorker) -> None:
    job = submit(STOPS)
    worker = start_worker("claim_and_run", "rqworker", "pass1", settings=SHORT)
    worker.wait_for("claimed")

    with no_connections():
        until(lambda: "a hang was not noted" in worker.printed())

    until(lambda: reload(job).status == JobStatus.PENDING)
    assert (reload(job).crash_count, reload(job).hung_at) == (0, None)
    assert worker.stop() == 0


@pytest.mark.usefixtures("cloned_db")
def test_a_step_is_no_hang_after_a_pause_of_its_host_that_outlasts_its_deadline(
    start_worker: StartWorker,
) -> None:
    times = {"LEASE_S": 2400.0, "HEARTBEAT_S": 60.0}
    times |= {"STEP_DEADLINE_MIN_S": 20.0, "CALL_DEADLINE_S": 20.0}  # 1 s at the scale of tests.
    job = submit(PAUSES)
    worker = start_worker("claim_and_run", "rqworker", "pass1", settings=times)
    (claimed,) = worker.wait_for("claimed")

    os.kill(worker.pid, signal.SIGSTOP)
    lasting(1.0 + STALL_S)  # The worker ends a step one second after its deadline.
    os.kill(worker.pid, signal.SIGCONT)
    lasting(LOOK_S)  # The worker looks at its step once, and must not end the step.
    os.kill(claimed["pid"], signal.SIGCONT)

    until(lambda: reload(job).status != JobStatus.PROCESSING)
    assert (reload(job).status, reload(job).crash_count) == (JobStatus.COMPLETED, 0)
    assert worker.stop() == 0


@pytest.mark.slow(reason="a step hangs three times: 7 s")
@pytest.mark.usefixtures("cloned_db")
def test_a_step_that_hangs_three_times_is_dead_with_the_code_of_a_hang(
    start_worker: StartWorker,
) -> None:
    job = submit(STOPS)
    worker = start_worker("claim_and_run", "rqworker", "pass1", settings=SHORT)

    reconciled_until(lambda: reload(job).status == JobStatus.DEAD)

    job = reload(job)
    assert (job.error_code, job.crash_count, job.retry_count) == ("DEADLINE_EXCEEDED", 3, 0)
    assert job.last_error == "this step hung 3 times, and its process was ended each time"
    assert job.error_details is not None
    history = job.error_details["attempt_history"]
    assert [each["error_code"] for each in history] == ["DEADLINE_EXCEEDED"] * 3
    assert Session.objects.get(shell_file_id=job.shell_file_id).error_code == "DEADLINE_EXCEEDED"
    assert len(worker.seen("claimed")) == 3
    assert worker.stop() == 0


@pytest.mark.slow(reason="two records hang three times each, one after the other: 15 s")
@pytest.mark.usefixtures("cloned_db")
def test_poison_records_never_take_all_workers_again(start_worker: StartWorker) -> None:
    poison = [submit(STOPS), submit(STOPS)]
    pool = start_worker(
        "claim_and_run", "rqworker-pool", "--queues", "pass1", "--workers", "2", settings=SHORT
    )
    pool.wait_for("claimed", 2)
    # Neither record was known as poison, so both hang at once, and this once only.
    reconciled_until(lambda: all(reload(job).hung_at for job in poison))

    healthy: list[Job] = []

    def has_ended() -> bool:
        has_room = len(healthy) < HEALTHY
        if has_room and all(reload(job).status == JobStatus.COMPLETED for job in healthy):
            healthy.append(submit())
        hung_running = Job.objects.filter(status=JobStatus.PROCESSING, hung_at__isnull=False)
        assert hung_running.count() <= 1
        return {reload(job).status for job in poison} == {JobStatus.DEAD}

    reconciled_until(has_ended)

    assert len(healthy) == HEALTHY
    assert {reload(job).status for job in healthy} == {JobStatus.COMPLETED}
    assert {reload(job).error_code for job in poison} == {"DEADLINE_EXCEEDED"}
    assert pool.stop() == 0


@pytest.mark.usefixtures("cloned_db")
def test_workers_that_are_alive_and_idle_are_counted_beside_a_worker(
    start_worker: StartWorker, redis_db: redis.Redis
) -> None:
    start_worker("drain", "rqworker", "pass1")
    start_worker("drain", "rqworker", "pass1")
    until(lambda: redis_db.scard("rq:workers") == 2)
    names = [key.decode().rpartition(":")[2] for key in redis_db.smembers("rq:workers")]  # type: ignore[union-attr]

    until(lambda: workers_beside("pass1", "x") == WorkersBeside(alive=2, idle=2))
    alone = workers_beside("pass1", names[0])
    elsewhere = workers_beside("pages", "x")
    queues.push("pass1", "an-entry")

    assert alone == WorkersBeside(alive=1, idle=1)
    assert elsewhere == WorkersBeside(alive=0, idle=0)
    until(lambda: workers_beside("pass1", "x") == WorkersBeside(alive=2, idle=1))


def hang(step: Step = Step.PASS1, worker: str = "w") -> Lease:
    """Claim the best job, end its horse as hung, and requeue the job."""
    lease = claim(step, worker)
    assert lease is not None
    assert mark_hung(lease.job_id, lease.gen, worker)
    (taken,) = take_expired(job_id=lease.job_id)
    assert taken.lease.job_id == lease.job_id
    return lease


@pytest.mark.django_db
def test_a_job_that_hung_is_claimed_after_all_others_and_only_with_a_worker_to_spare() -> None:
    first = a_job(priority=5)
    hang()
    second = a_job()

    order = [claim(Step.PASS1, f"w{n}", has_room=lambda _: False) for n in range(2)]
    last = claim(Step.PASS1, "w2", has_room=lambda _: True)

    assert [lease.job_id if lease else None for lease in order] == [second.id, None]
    assert last is not None
    assert last.job_id == first.id


@pytest.mark.django_db
def test_a_job_that_hung_in_another_pass_of_the_worker_is_found_too() -> None:
    job = a_job(step=Step.PASS05)
    hang(Step.PASS05)

    lease = claim(Step.PASS1, "w", others=["pass05"])

    assert lease is not None
    assert (lease.job_id, lease.step) == (job.id, Step.PASS05)


@pytest.mark.django_db
def test_of_the_jobs_that_hung_one_runs_at_a_time() -> None:
    for _ in range(2):
        a_job()
    hang()
    hang()

    first, second = claim(Step.PASS1, "w1"), claim(Step.PASS1, "w2")

    assert first is not None
    assert second is None


@pytest.mark.django_db
@pytest.mark.parametrize("has_room", [True, False])
def test_a_job_that_hung_leaves_the_last_free_worker_however_long_the_job_waits(
    has_room: bool,
) -> None:
    job = a_job(priority=5)
    hang()
    a_job()
    assert claim(Step.PASS1, "busy") is not None
    Job.objects.filter(id=job.id).update(available_at=timezone.now() - timedelta(days=1))

    lease = claim(Step.PASS1, "w", has_room=lambda _: has_room)

    assert (lease.job_id if lease else None) == (job.id if has_room else None)


@pytest.mark.django_db
def test_no_running_record_is_preempted_for_a_job_that_hung() -> None:
    small = a_job()
    hang()
    Job.objects.filter(id=small.id).update(available_at=timezone.now() - timedelta(minutes=1))
    large = a_job(size_class=2)
    assert claim(Step.PASS1, "w", has_room=lambda _: False) is not None

    assert not should_preempt(large.id, Step.PASS1)


@pytest.mark.django_db
def test_a_completed_step_clears_the_hang() -> None:
    job = a_job(step=Step.PASS05)
    hang(Step.PASS05)
    lease = claim(Step.PASS05, "w")
    assert lease is not None

    with fenced(lease):
        complete_step(lease, Step.PASS1)

    assert reload(job).hung_at is None


@pytest.mark.django_db
def test_a_hang_that_is_noted_after_the_recovery_is_not_the_loss_of_a_worker() -> None:
    job = a_job()
    for n in range(3):
        lease = claim(Step.PASS1, f"w{n}")
        assert lease is not None
        if n == 2:
            mark_hung(lease.job_id, lease.gen, "w2")
        Job.objects.filter(id=job.id).update(lease_expires_at=timezone.now())
        take_expired()
        if n < 2:
            mark_hung(lease.job_id, lease.gen, f"w{n}")

    assert reload(job).error_code == "DEADLINE_EXCEEDED"


@pytest.mark.django_db
def test_a_hang_does_not_touch_the_lease_of_the_next_worker() -> None:
    job = a_job()
    old = claim(Step.PASS1, "w1")
    assert old is not None
    Job.objects.filter(id=job.id).update(lease_expires_at=timezone.now())
    take_expired()
    new = claim(Step.PASS1, "w2")
    assert new is not None

    mark_hung(old.job_id, old.gen, "w1")

    assert take_expired() == []
    with fenced(new):
        assert reload(job).hung_at is not None
