"""A step whose end cannot be written ends or continues its job, and never strands the job."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError, OperationalError, connection
from django.utils import timezone

from medproc.timing import scaled
from pipeline import transitions
from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode
from pipeline.core.states import JobStatus, PassStatus, Step, WorkStatus
from pipeline.execution import step_writer
from pipeline.execution.step_result import StepCompleted, StepResult
from pipeline.models import (
    Batch,
    DiscoverySession,
    Entity,
    Job,
    ProviderCall,
    Session,
    ShellFile,
)
from pipeline.operations import operator_actions
from pipeline.stages import registry
from pipeline.stages.pass1 import entity_rows, run
from pipeline.transitions import Failure, Flush, Lease, claim, fail_step, fenced
from pipeline.workers import run_step
from pipeline.workers.refused_steps import requeue_steps_of
from pipeline.workers.shared_step import SHARED_STEP
from tests.support import records
from tests.support.databases import as_owner
from tests.support.rows import a_deadline, a_job, an_encounter


def run_with(monkeypatch: pytest.MonkeyPatch, job: Job, result: StepResult) -> Job:
    monkeypatch.setitem(registry.PASSES, Step(job.current_step), lambda lease, deadline: result)
    run_step.run_step(job.current_step)
    job.refresh_from_db()
    return job


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "code"), [(DataError("PHI"), "DB_ERROR"), (KeyError("PHI"), "INTERNAL_ERROR")]
)
def test_a_pass_that_cannot_be_published_fails_its_job(
    monkeypatch: pytest.MonkeyPatch, redis_db: object, error: Exception, code: str
) -> None:
    def publish() -> None:
        ShellFile.objects.update(language="xx")
        raise error

    job = run_with(monkeypatch, a_job(), StepCompleted(publish=publish))

    assert (job.status, job.error_code) == (JobStatus.FAILED, code)
    assert "PHI" not in str(job.error_details) + str(job.last_error)
    assert not ShellFile.objects.filter(language="xx").exists()


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_the_end_of_a_step_is_written_again_when_its_connection_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[None] = []

    def publish() -> None:
        tries.append(None)
        if len(tries) == 1:
            with as_owner(), connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    job = run_with(monkeypatch, a_job(step=Step.PAGES), StepCompleted(publish=publish))

    assert len(tries) == 2
    assert (job.status, job.current_step) == (JobStatus.PENDING, Step.PASS05)


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_an_end_that_alone_is_refused_fails_its_job_and_is_not_requeued_without_end(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.LEASE_S = 4.0

    def publish() -> None:
        raise OperationalError("temporary file size exceeds temp_file_limit")

    job = run_with(monkeypatch, a_job(), StepCompleted(publish=publish))

    assert (job.status, job.error_code) == (JobStatus.FAILED, "DB_ERROR")
    assert not SHARED_STEP.is_refused


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_the_lease_is_renewed_while_a_step_waits_for_postgresql_and_the_wait_is_no_hang(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.LEASE_S, settings.HEARTBEAT_S = 60.0, 8.0
    runs: list[None] = []

    def begin(lease: Lease, deadline: StepDeadline) -> StepResult:
        runs.append(None)
        if len(runs) < 3:
            # Almost no time is left of the lease and of the step.
            near = timezone.now() + timedelta(seconds=scaled(6.0))
            Job.objects.filter(id=lease.job_id).update(lease_expires_at=near)
            deadline.restart(scaled(1.0))
            raise OperationalError("the server is starting up")
        assert deadline.left_s > 0
        return StepCompleted()

    monkeypatch.setitem(registry.PASSES, Step.PASS1, begin)
    job = a_job()
    run_step.run_step("pass1")

    job.refresh_from_db()
    assert (job.status, job.lease_gen, job.crash_count) == (JobStatus.COMPLETED, 1, 0)
    assert len(runs) == 3


@pytest.mark.usefixtures("cloned_db")
def test_a_worker_that_stops_leaves_no_step_if_postgresql_accepts_writes() -> None:
    job = a_job()
    assert claim(Step.PASS1, "w") is not None

    requeue_steps_of("w", lambda: False)

    job.refresh_from_db()
    assert (job.status, job.crash_count, job.dispatch_no) == (JobStatus.PENDING, 0, 1)


def failed(lease: Lease) -> None:
    with fenced(lease):
        fail_step(lease, Failure(code=ErrorCode.INTERNAL_ERROR, message="broken"))


@pytest.mark.django_db
def test_a_failed_step_leaves_nothing_that_seems_to_run() -> None:
    job = a_job()
    result, (batch,) = an_encounter(job)
    Batch.objects.filter(id=batch.id).update(status=WorkStatus.PROCESSING)
    type(result).objects.filter(id=result.id).update(status=WorkStatus.PROCESSING)
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    Batch.objects.filter(id=batch.id).update(status=WorkStatus.PROCESSING)
    type(result).objects.filter(id=result.id).update(status=WorkStatus.PROCESSING)

    failed(lease)

    batch.refresh_from_db()
    result.refresh_from_db()
    assert (batch.status, result.status) == (WorkStatus.PENDING, WorkStatus.PENDING)


@pytest.mark.django_db
def test_a_claim_requeues_the_items_that_a_dead_worker_had_begun() -> None:
    job = a_job()
    result, (batch,) = an_encounter(job)
    Batch.objects.filter(id=batch.id).update(status=WorkStatus.PROCESSING)
    type(result).objects.filter(id=result.id).update(status=WorkStatus.PROCESSING)

    claim(Step.PASS1, "w")

    batch.refresh_from_db()
    result.refresh_from_db()
    assert (batch.status, result.status) == (WorkStatus.PENDING, WorkStatus.PENDING)


@pytest.mark.django_db
def test_a_discovery_that_breaks_does_not_seem_to_go_on() -> None:
    job = a_job(step=Step.PASS05)
    session = Session.objects.get(shell_file=job.shell_file_id)
    lease = claim(Step.PASS05, "w")
    assert lease is not None
    discovery = DiscoverySession.objects.create(
        shell_file_id=job.shell_file_id,
        processing_session=session,
        total_pages=1,
        total_chunks=1,
        status=PassStatus.PROCESSING,
    )

    failed(lease)

    discovery.refresh_from_db()
    assert (discovery.status, discovery.error_code) == (PassStatus.FAILED, "INTERNAL_ERROR")
    assert discovery.completed_at is not None


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_one_encounter_that_the_database_refuses_stops_no_other() -> None:
    received = records.submit(records.LAB)
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE pass1_entity_detections ADD CONSTRAINT refused"
            " CHECK (page_number > 1) NOT VALID"
        )

    record = records.run_record(received)

    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.error_code) == (JobStatus.FAILED, "DB_ERROR")
    refused = record.encounter_results.filter(status=WorkStatus.FAILED)
    assert 0 < refused.count() < record.encounters.count()
    assert set(refused.values_list("error_code", flat=True)) == {"DB_ERROR"}
    assert not record.encounter_results.exclude(
        status__in=[WorkStatus.FAILED, WorkStatus.SUCCEEDED]
    ).exists()
    assert Entity.objects.filter(shell_file=record).exists()
    kept = Batch.objects.filter(pass1_encounter_result__in=refused)
    assert not kept.filter(output__isnull=True).exists()

    with as_owner(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pass1_entity_detections DROP CONSTRAINT refused")
    operator_actions.record_retry(record.id, reason="a test")
    records.run_record(received)

    job.refresh_from_db()
    assert (job.status, job.error_code) == (JobStatus.COMPLETED, None)
    assert not record.encounters.filter(entities_published_at=None).exists()


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_an_encounter_that_breaks_our_own_code_stops_no_other_and_keeps_its_replies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    received = records.submit(records.LAB)
    real = entity_rows.entity_rows

    def breaks_on_page_one(*arguments: Any) -> list[dict[str, Any]]:
        if arguments[2][0].page_range_start == 1:
            raise KeyError("PHI")
        return real(*arguments)

    monkeypatch.setattr(run, "entity_rows", breaks_on_page_one)
    record = records.run_record(received)

    job = Job.objects.get(id=received.job_id)
    assert (job.status, job.error_code) == (JobStatus.FAILED, "INTERNAL_ERROR")
    broken = record.encounter_results.filter(status=WorkStatus.FAILED)
    assert 0 < broken.count() < record.encounters.count()
    assert Entity.objects.filter(shell_file=record).exists()
    assert not Batch.objects.filter(pass1_encounter_result__in=broken, output=None).exists()


@pytest.mark.usefixtures("cloned_db", "redis_db")
def test_a_last_flush_waits_for_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    received = records.submit(records.LAB)
    real = transitions.write
    refusals = iter(range(5))

    def away(lease: Lease, flush: Flush) -> None:
        if flush and lease.step is Step.PASS1 and next(refusals, None) is not None:
            raise OperationalError("the server is starting up")
        real(lease, flush)

    monkeypatch.setattr(transitions, "write", away)
    monkeypatch.setattr(step_writer, "FLUSH_S", 600.0)
    records.run_record(received)

    assert Job.objects.get(id=received.job_id).status == JobStatus.COMPLETED
    assert ProviderCall.objects.filter(step=Step.PASS1).count() == Batch.objects.count()


@pytest.mark.django_db
def test_a_provider_step_renews_its_lease_before_it_waits_for_calls() -> None:
    job = a_job()
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    nearly_over = timezone.now() + timedelta(seconds=2)
    Job.objects.filter(id=job.id).update(lease_expires_at=nearly_over)

    run.run(lease, a_deadline())

    job.refresh_from_db()
    assert job.lease_expires_at is not None
    assert job.lease_expires_at > nearly_over
