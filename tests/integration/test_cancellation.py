"""An operator cancels a job that waits, is parked, or runs."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from pipeline.core.errors import LeaseLostError, UserError
from pipeline.core.states import JobStatus, Step
from pipeline.execution.step_result import (
    SIGTERM,
    StepCompleted,
    StepInterrupted,
    StepResult,
)
from pipeline.models import Batch, Job, ProviderCall, Session, ShellFile, Summary
from pipeline.operations import operator_actions
from pipeline.transitions import Lease, claim, fenced, renew_lease
from pipeline.transitions.recovery import CRASH_LIMIT
from pipeline.workers import run_step
from tests.support import records
from tests.support.rows import a_deadline, a_job, an_encounter
from tests.support.short_records import short_record
from tests.support.workers import until

TOKENS = 7_000


@pytest.mark.parametrize(
    "columns",
    [
        {"status": JobStatus.PENDING},
        {
            "status": JobStatus.PARKED,
            "park_reason": "a test",
            "parked_until": timezone.now() + timedelta(hours=1),
        },
    ],
    ids=["waiting", "parked"],
)
@pytest.mark.django_db
def test_a_waiting_job_is_cancelled_at_once(columns: dict[str, Any]) -> None:
    job = a_job(**columns)

    call_command("cancel", str(job.shell_file_id), reason="a duplicate")

    job.refresh_from_db()
    assert (job.status, job.error_code, job.parked_until) == ("cancelled", "CANCELLED", None)
    assert job.completed_at is not None
    session, summary = Session.objects.get(), Summary.objects.get()
    assert (session.session_status, session.error_code) == ("cancelled", "CANCELLED")
    assert (summary.processing_status, summary.error_code) == ("failed", "CANCELLED")
    (entry,) = (job.error_details or {})["history"]
    assert (entry["event"], entry["reason"]) == ("cancelled", "a duplicate")
    assert claim(Step.PASS1, "w") is None
    with pytest.raises(CommandError, match="is cancelled already"):
        call_command("cancel", str(job.id))


@pytest.mark.django_db
def test_an_ended_job_is_not_cancelled() -> None:
    job = a_job(status=JobStatus.COMPLETED)

    with pytest.raises(UserError, match="is complete; there is nothing to cancel"):
        operator_actions.job_cancel(job.id)


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_running_step_that_is_cancelled_keeps_what_succeeded_and_goes_on_when_retried(
    tmp_path: Path, settings: Any
) -> None:
    settings.PASS1_CONCURRENCY_LIMIT, settings.HEARTBEAT_S = 1, 2
    received = records.submit(short_record(tmp_path / "record.pdf", 24))
    run_step.run_step("pages")
    run_step.run_step("pass05")
    batches = Batch.objects.filter(pass1_encounter_result__shell_file_id=received.shell_file_id)

    def run() -> None:
        run_step.run_step("pass1")
        connection.close()

    with records.through_emulator(latency="0.3/call"):
        step = threading.Thread(target=run)
        step.start()
        until(lambda: batches.filter(status="succeeded").exists())
        told = operator_actions.job_cancel(received.shell_file_id, reason="wrong patient", by="ops")
        told_again = operator_actions.job_cancel(received.job_id)
        step.join()

    job = Job.objects.get(id=received.job_id)
    assert (told.is_ended, told_again.is_ended) == (False, False)
    assert (job.status, job.error_code, job.worker_id) == ("cancelled", "CANCELLED", None)
    assert len((job.error_details or {})["history"]) == 1
    assert Session.objects.get().session_status == "cancelled"
    done = set(batches.filter(status="succeeded").values_list("id", flat=True))
    assert 0 < len(done) < 24
    assert batches.filter(status="pending", attempt_count=0).count() == 24 - len(done)
    assert ShellFile.objects.get().status == "pass05_complete"

    with pytest.raises(UserError, match="the job was cancelled; retry the record"):
        operator_actions.item_retry(batches.filter(status="pending")[0].id, reason="only this")
    operator_actions.record_retry(received.shell_file_id, reason="the right one after all")
    run_step.run_step("pass1")

    assert Job.objects.get().status == JobStatus.COMPLETED
    accepted = ProviderCall.objects.filter(step="pass1", outcome="OK")
    assert accepted.count() == 24
    assert {each.work_item_id for each in accepted} >= done


@pytest.mark.parametrize("result", [StepCompleted(), StepInterrupted(reason=SIGTERM)])
@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_step_that_ends_after_the_cancellation_leaves_no_wake_up(result: StepResult) -> None:
    job = a_job(step=Step.PAGES)
    lease = claim(Step.PAGES, "w")
    assert lease is not None
    assert renew_lease(lease, 60.0) is False

    told = operator_actions.job_cancel(job.id)
    is_cancelling = renew_lease(lease, 60.0)
    run_step._end(lease, a_deadline(), result)

    job.refresh_from_db()
    assert (told.is_ended, is_cancelling, job.status) == (False, True, "cancelled")
    assert claim(Step.PASS05, "w") is None
    record = ShellFile.objects.get()
    assert record.status == (
        "uploaded" if isinstance(result, StepInterrupted) else "pages_complete"
    )


@pytest.mark.django_db
def test_a_reading_of_pages_stops_at_the_cancellation(settings: Any, redis_db: redis.Redis) -> None:
    settings.HEARTBEAT_S = 0.001
    received = records.submit(records.SCAN)
    lease = claim(Step.PAGES, "w")
    assert lease is not None
    operator_actions.job_cancel(received.job_id)

    run_step._end(lease, a_deadline(), run_step._run(lease, a_deadline()))

    assert Job.objects.get().status == JobStatus.CANCELLED
    assert ShellFile.objects.get().pages_read == 0


@pytest.mark.django_db
def test_a_step_whose_worker_is_gone_is_cancelled_at_once_and_its_late_writes_are_refused() -> None:
    job = a_job()
    _, (batch,) = an_encounter(job)
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    Batch.objects.update(status="processing")
    Job.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))

    done = operator_actions.job_cancel(job.id)

    batch.refresh_from_db()
    assert (done.is_ended, batch.status) == (True, "pending")
    with pytest.raises(LeaseLostError), fenced(lease):
        pass


@pytest.mark.parametrize("crashes", [0, CRASH_LIMIT - 1])
@pytest.mark.django_db
@pytest.mark.usefixtures("redis_db")
def test_a_job_whose_worker_dies_after_the_cancellation_request_is_cancelled_at_any_crash(
    crashes: int,
) -> None:
    job = a_job(crash_count=crashes)
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    a_paid_call(lease)
    operator_actions.job_cancel(job.id, reason="a test")
    Job.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))

    tick = operator_actions.jobs_reconcile()

    job.refresh_from_db()
    assert (tick.recovered, tick.dead_lettered) == (1, 0)
    assert (job.status, job.crash_count, job.worker_id) == (JobStatus.CANCELLED, crashes + 1, None)
    assert_its_cost_is_told(job)


@pytest.mark.django_db
def test_a_job_cancelled_after_the_loss_of_its_worker_reports_its_cost() -> None:
    job = a_job()
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    a_paid_call(lease)
    Job.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))

    operator_actions.job_cancel(job.id, reason="a test")

    job.refresh_from_db()
    assert job.status == JobStatus.CANCELLED
    assert_its_cost_is_told(job)


def a_paid_call(lease: Lease) -> None:
    ProviderCall.objects.create(
        processing_session_id=lease.session_id,
        step=lease.step,
        attempt=1,
        outcome="OK",
        provider="gemini",
        model="m",
        prompt_version="1",
        schema_version="1",
        input_tokens=TOKENS,
        lease_gen=lease.gen,
        started_at=timezone.now(),
    )


def assert_its_cost_is_told(job: Job) -> None:
    summary = Summary.objects.get(shell_file_id=job.shell_file_id)
    assert summary.total_tokens_used == TOKENS
    assert [each["event"] for each in summary.business_events] == ["pass1: cancelled"]
