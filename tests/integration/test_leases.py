"""At most one worker holds a lease, and the fence refuses the writes of every other worker."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connections, transaction
from django.utils import timezone

from pipeline.core.errors import ErrorCode, LeaseLostError
from pipeline.core.states import JobStatus, PassStatus, Step, WorkStatus
from pipeline.models import Batch, Job, Session, ShellFile
from pipeline.transitions import (
    Failure,
    claim,
    complete_step,
    fail_step,
    fenced,
    renew_lease,
    requeue_interrupted,
)
from pipeline.transitions.rollup import Leaving, settle
from tests.support.rows import a_job, an_encounter


@pytest.mark.django_db
def test_nothing_is_claimed_where_nothing_waits() -> None:
    a_job(step=Step.PAGES)

    assert claim(Step.PASS1, "w1") is None


@pytest.mark.django_db
def test_a_claim_names_its_worker_and_bumps_the_generation() -> None:
    job = a_job()

    lease = claim(Step.PASS1, "w1")

    job.refresh_from_db()
    assert lease is not None
    assert (lease.job_id, lease.gen, lease.worker_id) == (job.id, 1, "w1")
    assert (job.status, job.lease_gen, job.worker_id) == (JobStatus.PROCESSING, 1, "w1")
    assert job.lease_expires_at > timezone.now()
    assert Session.objects.get(id=lease.session_id).pass1_status == PassStatus.PROCESSING


@pytest.mark.django_db
def test_a_claimed_job_is_not_claimed_again() -> None:
    a_job()

    first, second = claim(Step.PASS1, "w1"), claim(Step.PASS1, "w2")

    assert first is not None
    assert second is None


@pytest.mark.django_db
def test_priority_goes_before_size_and_size_before_age() -> None:
    large_old = a_job(size_class=2)
    small_new = a_job(size_class=0)
    urgent = a_job(size_class=2, priority=5)

    order = [claim(Step.PASS1, "w") for _ in range(3)]

    assert [lease.job_id for lease in order if lease] == [urgent.id, small_new.id, large_old.id]


@pytest.mark.django_db
def test_a_long_wait_raises_the_size_class() -> None:
    large = a_job(size_class=2)
    Job.objects.filter(id=large.id).update(available_at=timezone.now() - timedelta(hours=1))
    a_job(size_class=0)

    lease = claim(Step.PASS1, "w")

    assert lease is not None
    assert lease.job_id == large.id


@pytest.mark.django_db
def test_a_job_that_is_not_due_yet_is_left_alone() -> None:
    a_job(available_at=timezone.now() + timedelta(minutes=5))

    assert claim(Step.PASS1, "w") is None


@pytest.mark.django_db
def test_a_claim_requeues_the_items_that_a_dead_worker_left_in_flight() -> None:
    job = a_job()
    _, batches = an_encounter(job, batches=3)
    Batch.objects.filter(id=batches[0].id).update(
        status=WorkStatus.SUCCEEDED, completed_at=timezone.now()
    )
    Batch.objects.filter(id=batches[1].id).update(status=WorkStatus.PROCESSING, attempt_count=2)

    claim(Step.PASS1, "w")

    states = list(Batch.objects.order_by("batch_index").values_list("status", "attempt_count"))
    assert states == [("succeeded", 0), ("pending", 2), ("pending", 0)]


@pytest.mark.django_db
def test_a_worker_whose_lease_was_taken_cannot_write() -> None:
    job = a_job()
    old = claim(Step.PASS1, "w1")
    assert old is not None
    Job.objects.filter(id=job.id).update(status=JobStatus.PENDING, worker_id=None)
    new = claim(Step.PASS1, "w2")
    assert new is not None

    with pytest.raises(LeaseLostError), fenced(old):
        ShellFile.objects.filter(id=job.shell_file_id).update(language="xx")

    assert ShellFile.objects.get(id=job.shell_file_id).language is None
    with fenced(new):
        ShellFile.objects.filter(id=job.shell_file_id).update(language="en")


@pytest.mark.django_db
def test_a_heartbeat_renews_the_lease_and_a_late_one_loses_it() -> None:
    job = a_job()
    lease = claim(Step.PASS1, "w1")
    assert lease is not None
    before = Job.objects.get(id=job.id).lease_expires_at

    renew_lease(lease, 60.0)

    assert Job.objects.get(id=job.id).lease_expires_at > before
    Job.objects.filter(id=job.id).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(LeaseLostError):
        renew_lease(lease, 60.0)


@pytest.mark.usefixtures("cloned_db")
def test_two_workers_that_claim_at_once_get_two_jobs() -> None:
    a_job()
    a_job()

    with transaction.atomic():
        first = claim(Step.PASS1, "w1")
        other = connections["default"].copy("other")
        try:
            with other.cursor() as cursor:
                cursor.execute(
                    "SELECT count(*) FROM (SELECT id FROM job_queue WHERE status = 'pending'"
                    " AND current_step = 'pass1' FOR NO KEY UPDATE SKIP LOCKED) AS free"
                )
                (free,) = cursor.fetchone() or (0,)
        finally:
            other.close()

    assert first is not None
    assert free == 1


@pytest.mark.django_db
def test_a_completed_step_moves_the_record_and_wakes_the_next_pass() -> None:
    job = a_job(step=Step.PASS05)
    lease = claim(Step.PASS05, "w")
    assert lease is not None

    with fenced(lease):
        dispatch_no = complete_step(lease, Step.PASS1)

    job.refresh_from_db()
    assert dispatch_no == job.dispatch_no == 1
    assert (job.status, job.current_step) == (JobStatus.PENDING, Step.PASS1)
    assert (job.worker_id, job.lease_expires_at) == (None, None)
    assert ShellFile.objects.get(id=job.shell_file_id).status == "pass05_complete"
    session = Session.objects.get(id=lease.session_id)
    assert (session.pass05_status, session.workflow_step) == ("completed", "entity_detection")


@pytest.mark.django_db
def test_the_last_step_completes_job_session_and_report_card() -> None:
    job = a_job()
    lease = claim(Step.PASS1, "w")
    assert lease is not None

    with fenced(lease):
        assert complete_step(lease, None) is None
        settle([Leaving.by(lease, "pass1: completed", has_ended=True)])

    job.refresh_from_db()
    session = Session.objects.get(id=lease.session_id)
    assert job.status == JobStatus.COMPLETED
    assert session.session_status == "completed"
    assert [session.pass1_status, session.pass1_5_status, session.pass3_status] == [
        "completed",
        "skipped",
        "skipped",
    ]
    assert session.total_processing_time is not None
    assert job.shell_file.summary.processing_status == "pass1_only"
    assert job.shell_file.summary.overall_success


@pytest.mark.django_db
def test_a_failed_step_leaves_the_record_at_its_last_completed_pass() -> None:
    job = a_job()
    ShellFile.objects.filter(id=job.shell_file_id).update(status="pass05_complete")
    lease = claim(Step.PASS1, "w")
    assert lease is not None

    with fenced(lease):
        fail_step(
            lease,
            Failure(
                code=ErrorCode.MAX_RETRIES_EXCEEDED,
                message="Batch failed",
                batch_index=3,
                underlying=ErrorCode.API_5XX,
            ),
        )

    job.refresh_from_db()
    assert (job.status, job.error_code) == (JobStatus.FAILED, "MAX_RETRIES_EXCEEDED")
    assert job.error_details is not None
    assert job.error_details["underlying_error"] == "API_5XX"
    assert job.error_details["stage"] == "pass1"
    assert job.shell_file.status == "pass05_complete"
    assert job.shell_file.summary.failure_batch_index == 3
    assert Session.objects.get(id=lease.session_id).failure_pass == "pass1"


@pytest.mark.django_db
def test_an_interrupted_step_waits_again_under_a_new_dispatch_number() -> None:
    job = a_job()
    _, batches = an_encounter(job)
    lease = claim(Step.PASS1, "w")
    assert lease is not None
    Batch.objects.filter(id=batches[0].id).update(status=WorkStatus.PROCESSING)

    with fenced(lease):
        requeue_interrupted(lease)

    job.refresh_from_db()
    assert (job.status, job.dispatch_no, job.retry_count) == (JobStatus.PENDING, 1, 0)
    assert Batch.objects.get(id=batches[0].id).status == WorkStatus.PENDING
