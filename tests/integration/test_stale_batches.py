"""A stale batch is reset by its age, but only if no live worker holds its lease."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
import redis
from django.core.management import CommandError, call_command
from django.utils import timezone

from pipeline.core.errors import LeaseLostError
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import Batch, Chunk, DiscoverySession, EncounterResult, Job, Session
from pipeline.operations import schedule, scheduler
from pipeline.transitions import Lease, claim, fenced
from tests.support.rows import a_job, an_encounter, crashes_of

pytestmark = pytest.mark.django_db


def a_slow_batch(*, minutes: float = 11, lease_expired: bool = True) -> tuple[Lease, Batch]:
    """Insert a batch that has been processing for so long, and the lease of its worker."""
    job = a_job()
    result, (batch,) = an_encounter(job)
    lease = claim(Step.PASS1, "host-1")
    assert lease is not None
    now = timezone.now()
    if lease_expired:
        Job.objects.filter(id=job.id).update(
            lease_expires_at=now - timedelta(seconds=60), heartbeat_at=now - timedelta(seconds=120)
        )
    EncounterResult.objects.filter(id=result.id).update(status=WorkStatus.PROCESSING)
    Batch.objects.filter(id=batch.id).update(
        status=WorkStatus.PROCESSING, attempt_count=2, started_at=now - timedelta(minutes=minutes)
    )
    return lease, batch


def status_of(batch: Batch) -> str:
    batch.refresh_from_db()
    return str(batch.status)


def reset(*arguments: str) -> dict[str, Any]:
    """Run the command, and return its output."""
    out = StringIO()
    call_command("reset_stale_batches", "--json", *arguments, stdout=out)
    return dict(json.loads(out.getvalue()))


def test_a_batch_whose_lease_has_expired_goes_back_with_its_attempts(
    redis_db: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    lease, batch = a_slow_batch()

    (row,) = reset("--older-than", "10m")["rows"]

    assert status_of(batch) == WorkStatus.PENDING
    assert batch.attempt_count == 2
    assert EncounterResult.objects.get().status == WorkStatus.PENDING
    assert (row["kind"], UUID(row["id"]), row["worker_id"]) == ("batch", batch.id, "host-1")
    assert row["heartbeat_age_s"] >= 120
    assert row["lease_expired_s"] >= 60
    assert row["processing_s"] >= 660
    (crash,) = crashes_of(Job.objects.get())
    assert (crash["worker_id"], crash["lease_gen"]) == ("host-1", lease.gen)
    assert [r.getMessage().split()[0] for r in caplog.records if "stale" in r.getMessage()] == [
        "stale_reset"
    ]
    with pytest.raises(LeaseLostError), fenced(lease):
        pass


def test_the_scheduler_leaves_expired_leases_to_live_workers_after_a_refusal(
    redis_db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, batch = a_slow_batch()
    monkeypatch.setattr(scheduler, "_after_refusal", True)
    (task,) = (t for t in scheduler.periodic_tasks() if t.name == schedule.RESET_STALE)

    task.run()

    assert status_of(batch) == WorkStatus.PROCESSING
    with fenced(lease):
        pass


def test_a_slow_batch_of_a_live_worker_is_left_alone() -> None:
    lease, batch = a_slow_batch(minutes=600, lease_expired=False)

    found = reset("--older-than", "10m")

    assert found["count"] == 0
    assert status_of(batch) == WorkStatus.PROCESSING
    with fenced(lease):
        pass


def test_a_batch_that_is_not_old_enough_is_left_alone() -> None:
    _, batch = a_slow_batch(minutes=9)

    assert reset("--older-than", "10m")["count"] == 0
    assert reset("--older-than", "500s")["count"] == 1
    assert status_of(batch) == WorkStatus.PENDING


def test_a_dry_run_shows_the_same_and_changes_nothing() -> None:
    lease, batch = a_slow_batch()

    found = reset("--older-than", "10m", "--dry-run")

    assert (found["dry_run"], found["count"]) == (True, 1)
    assert status_of(batch) == WorkStatus.PROCESSING
    with fenced(lease):
        pass


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.FAILED, JobStatus.CANCELLED])
def test_items_in_processing_of_a_job_that_does_not_run_are_reset(status: JobStatus) -> None:
    _, batch = a_slow_batch(lease_expired=False)
    Job.objects.update(status=status, worker_id=None, lease_expires_at=None)

    reset("--older-than", "10m")

    assert status_of(batch) == WorkStatus.PENDING


def test_chunks_go_back_as_batches_do() -> None:
    job = a_job(step=Step.PASS05)
    session = Session.objects.get(shell_file_id=job.shell_file_id)
    discovery = DiscoverySession.objects.create(
        shell_file_id=job.shell_file_id,
        processing_session=session,
        total_pages=1,
        total_chunks=1,
    )
    chunk = Chunk.objects.create(
        discovery_session=discovery,
        processing_session=session,
        chunk_index=0,
        page_range_start=1,
        page_range_end=1,
        status=WorkStatus.PROCESSING,
        started_at=timezone.now() - timedelta(minutes=11),
    )

    (row,) = reset("--older-than", "10m")["rows"]

    chunk.refresh_from_db()
    assert (row["kind"], chunk.status) == ("chunk", WorkStatus.PENDING)


def test_an_age_that_is_none_is_refused() -> None:
    with pytest.raises(CommandError, match="not an age"):
        call_command("reset_stale_batches", "--older-than", "soon")
