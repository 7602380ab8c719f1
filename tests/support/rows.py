"""Factories of rows, for tests that need a state without the steps that lead to it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from pipeline.core.deadline import StepDeadline
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import (
    Batch,
    Encounter,
    EncounterResult,
    Job,
    Patient,
    Session,
    ShellFile,
    Summary,
)


def a_deadline() -> StepDeadline:
    """Return a step an hour, which no test uses up."""
    return StepDeadline(3600.0)


def a_job(*, step: Step = Step.PASS1, storage_key: str = "records/none", **columns: Any) -> Job:
    """Insert a record with its session, its summary and a waiting job."""
    patient = Patient.objects.create()
    shell_file = ShellFile.objects.create(
        patient=patient,
        sha256="0" * 64,
        size_bytes=1,
        media_type="application/pdf",
        storage_key=storage_key,
    )
    Session.objects.create(patient=patient, shell_file=shell_file)
    Summary.objects.create(profile=patient, shell_file=shell_file)
    columns.setdefault("max_retries", settings.JOB_MAX_RETRIES)
    return Job.objects.create(shell_file=shell_file, current_step=step, **columns)


def an_encounter(
    job: Job, *, batches: int = 1, index: int = 1
) -> tuple[EncounterResult, list[Batch]]:
    """Insert an encounter with its result and planned batches of one page each."""
    shell_file = ShellFile.objects.get(id=job.shell_file_id)
    session_id: UUID = Session.objects.get(shell_file=shell_file).id
    encounter = Encounter.objects.create(
        shell_file=shell_file,
        patient_id=shell_file.patient_id,
        encounter_index=index,
        encounter_type="office_visit",
        page_start=1,
        page_end=batches,
        page_count=batches,
        character_count=10 * batches,
    )
    result = EncounterResult.objects.create(
        shell_file=shell_file,
        healthcare_encounter=encounter,
        processing_session_id=session_id,
        patient_id=shell_file.patient_id,
        page_count=batches,
        batches_total=batches,
    )
    made = [
        Batch.objects.create(
            healthcare_encounter=encounter,
            pass1_encounter_result=result,
            processing_session_id=session_id,
            batch_index=n,
            page_range_start=n + 1,
            page_range_end=n + 1,
            spans=[[n + 1, 0, 10]],
        )
        for n in range(batches)
    ]
    return result, made


def columns(row: object, *names: str) -> dict[str, Any]:
    """Return the columns of a row by name, so that a failed comparison names the wrong column."""
    return {name: getattr(row, name) for name in names}


def crashes_of(job: Job) -> list[dict[str, Any]]:
    """Return the crashes in a job's history, oldest first."""
    history = (job.error_details or {}).get("history", ())
    return [each for each in history if each["event"] == "crashed"]


def a_stale_job() -> Job:
    """Insert a job whose worker is gone, with two batches that the worker began."""
    job = a_job()
    _, batches = an_encounter(job, batches=2)
    now = timezone.now()
    Job.objects.filter(id=job.id).update(
        status=JobStatus.PROCESSING,
        worker_id="worker-1-4711-ab12cd34",
        lease_gen=4,
        lease_expires_at=now - timedelta(minutes=12),
        heartbeat_at=now - timedelta(minutes=13),
    )
    Batch.objects.filter(id__in=[each.id for each in batches]).update(
        status=WorkStatus.PROCESSING, started_at=now - timedelta(minutes=15), attempt_count=1
    )
    return job
