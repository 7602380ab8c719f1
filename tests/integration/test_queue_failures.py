"""The queues survive known failures of Redis queues: floods, losses, long steps, no Redis."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import redis
from django.db import connections
from django.db.models import F
from django.utils import timezone
from redis.backoff import NoBackoff
from redis.retry import Retry

from pipeline.core.errors import ErrorCode, UserError
from pipeline.core.states import JobStatus, Step
from pipeline.execution.step_result import StepCompleted, StepFailed
from pipeline.models import Job, Patient
from pipeline.operations import operator_actions
from pipeline.operations.operator_actions import Selection
from pipeline.queueing import queues
from pipeline.queueing.queues import entry_id, push
from pipeline.transitions import Failure, Lease, claim, renew_lease
from pipeline.workers import run_step
from tests.support import records
from tests.support.rows import a_deadline, a_job
from tests.support.short_records import short_record
from tests.support.workers import until

PATIENCE_S = 600.0
FAILED = StepFailed(failure=Failure(code=ErrorCode.INPUT_INVALID, message="a test"))


class _WorkerThreads:
    """Threads that claim jobs, record start and end, and fail the step, beside other threads."""

    def __init__(self) -> None:
        self.noted: defaultdict[UUID, list[tuple[str, int]]] = defaultdict(list)
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def work(self, name: str) -> None:
        while not self._stop.wait(0.01):
            lease = claim(Step.PAGES, name)
            if lease is not None:
                self.noted[lease.job_id].append(("began", lease.gen))
                renew_lease(lease, 60.0)
                self.noted[lease.job_id].append(("ended", lease.gen))
                run_step._end(lease, a_deadline(), FAILED)

    def reconcile(self) -> None:
        while not self._stop.wait(0.1):
            operator_actions.jobs_reconcile()

    @contextmanager
    def running(self) -> Iterator[None]:
        targets = [(self.work, (f"w{number}",)) for number in range(3)]
        self._threads = [threading.Thread(target=_closing, args=(t, *a)) for t, a in targets]
        self._threads.append(threading.Thread(target=_closing, args=(self.reconcile,)))
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()


def _closing(act: Any, *arguments: Any) -> None:
    try:
        act(*arguments)
    finally:
        connections.close_all()


def at_once(count: int, act: Any) -> None:
    """Call a function in so many threads at the same moment."""
    together = threading.Barrier(count)

    def one() -> None:
        together.wait()
        act()

    threads = [threading.Thread(target=_closing, args=(one,)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_identical_uploads_and_retries_at_once_make_attempts_that_are_strictly_serial(
    cloned_db: str, redis_db: redis.Redis, tmp_path: Path, settings: Any
) -> None:
    settings.LEASE_S = PATIENCE_S
    path = short_record(tmp_path / "same.pdf", 1)
    workers = _WorkerThreads()
    refused: list[str] = []

    def retry() -> None:
        try:
            operator_actions.record_retry(again.shell_file_id, reason="quick")
        except UserError as error:
            refused.append(str(error))

    with workers.running():
        at_once(20, lambda: records.submit(path, patient_reference="one"))
        at_once(20, lambda: records.submit(path, idempotency_key="the same upload"))
        until(lambda: Job.objects.filter(status=JobStatus.FAILED).count() == 21)
        again = Job.objects.earliest("created_at")
        at_once(50, retry)
        until(lambda: Job.objects.filter(status=JobStatus.FAILED).count() == 21)

    rows = list(Job.objects.all())
    assert (len(rows), Patient.objects.filter(reference="one").count()) == (21, 1)
    assert {row.crash_count for row in rows} == {0}
    for row in rows:
        # A submission that arrives after a failed attempt starts another attempt.
        attempts = 1 if row.id != again.id else 1 + 50 - len(refused)
        assert row.lease_gen == attempts
        assert workers.noted[row.id] == [
            (event, gen) for gen in range(1, attempts + 1) for event in ("began", "ended")
        ]
    assert len(refused) < 50
    operator_actions.jobs_reconcile()
    assert redis_db.llen("rq:queue:pages") == 0


def test_a_step_of_three_leases_whose_worker_is_heard_of_runs_once(
    cloned_db: str, redis_db: redis.Redis, settings: Any
) -> None:
    settings.TIME_SCALE = 1.0
    job = a_job()
    push("pass1", entry_id(job.id, "pass1", 0), entry_id(job.id, "pass1", 1))
    lease = claim(Step.PASS1, "w1")
    assert lease is not None

    for _ in range(9):
        _let_pass(settings.LEASE_S / 3)
        renew_lease(lease, 60.0)
        assert operator_actions.jobs_reconcile().recovered == 0
        assert claim(Step.PASS1, "w2") is None

    job.refresh_from_db()
    assert (job.lease_gen, job.worker_id, job.crash_count) == (1, "w1", 0)
    assert redis_db.llen("rq:queue:pass1") == 0


def _let_pass(seconds: float) -> None:
    by = timedelta(seconds=seconds)
    Job.objects.update(
        lease_expires_at=F("lease_expires_at") - by,
        heartbeat_at=F("heartbeat_at") - by,
        step_started_at=F("step_started_at") - by,
    )


def test_retrying_all_that_failed_needs_nothing_of_what_redis_has_lost(
    cloned_db: str, redis_db: Any
) -> None:
    failed = [
        a_job(
            status=JobStatus.FAILED,
            error_code=ErrorCode.DB_ERROR,
            error_details={"error_code": ErrorCode.DB_ERROR},
            completed_at=timezone.now(),
        )
        for _ in range(30)
    ]
    push("pass1", *(entry_id(job.id, "pass1", 0) for job in failed))
    for job in failed[::3]:
        redis_db.delete(f"rq:job:{entry_id(job.id, 'pass1', 0)}")

    done = operator_actions.work_retry(
        operator_actions.retry_preview(Selection(error_code=ErrorCode.DB_ERROR)),
        reason="all of them",
    )

    assert (len(done.retried), done.ineligible) == (30, ())
    operator_actions.jobs_reconcile()
    line = [entry.decode() for entry in redis_db.lrange("rq:queue:pass1", 0, -1)]
    assert sorted(line) == sorted(entry_id(job.id, "pass1", 1) for job in failed)


@pytest.fixture
def redis_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stop Redis for a while."""
    nowhere = redis.Redis(unix_socket_path="/nonexistent", retry=Retry(NoBackoff(), 0))
    with monkeypatch.context() as patch:
        patch.setattr(queues, "producer", lambda: nowhere)
        yield


@pytest.mark.usefixtures("cloned_db", "redis_db", "redis_away")
def test_a_step_whose_next_wake_up_cannot_be_sent_ends_and_its_worker_goes_on() -> None:
    first, second = a_job(step=Step.PASS05, priority=1), a_job(step=Step.PASS05)
    ended: list[Lease] = []

    for _ in range(2):
        lease = claim(Step.PASS05, "w")
        assert lease is not None
        run_step._end(lease, a_deadline(), StepCompleted())
        ended.append(lease)

    assert [lease.job_id for lease in ended] == [first.id, second.id]
    rows = Job.objects.values_list("status", "current_step", "dispatch_no")
    assert set(rows) == {(JobStatus.PENDING, "pass1", 1)}
