"""Rows of an incident for the console: completed, failed, waiting, running and parked records.

Real steps make most rows. Factories insert the rows that would need an outage of an hour. Needs
`cloned_db` or `module_db`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from pipeline.core.states import JobStatus, Step
from pipeline.models import Incident, IncidentJob, Job, PeriodicTaskRun, ShellFile
from pipeline.operations import schedule
from tests.support import records
from tests.support.incident_rows import OTHER_MODEL, an_incident, calls
from tests.support.rows import a_job


@dataclass(frozen=True, kw_only=True)
class IncidentScenario:
    """The ids of the records and of the incident."""

    failed: UUID
    """Seven batches failed with API_5XX; one succeeded after a retry."""
    broken: UUID
    """One batch failed with PARSE_JSON; a test retries it."""
    completed: UUID
    running: UUID
    incident: UUID


def an_incident_scenario() -> IncidentScenario:
    """Make the rows."""
    failed = records.failed_record(records.LAB)
    completed = records.completed_record(records.LAB)
    broken = records.failed_record(
        records.LAB, [{"fault": "bad-json", "kind": "entities", "page": 5}]
    )
    now = timezone.now()
    # The incident is about a model that the records do not use, so their retry goes through.
    incident = an_incident(
        of=OTHER_MODEL,
        opened_at=now - timedelta(minutes=18),
        first_failure_at=now - timedelta(minutes=19),
        evidence={
            "affected": {"parked": 4, "failed": 1},
            "probes": [(now - timedelta(seconds=1)).isoformat()],
            "total_by_code": {"API_5XX": 212},
        },
    )
    for _ in range(4):
        parked = a_job(
            status=JobStatus.PARKED, park_reason="the provider is down", incident=incident
        )
        IncidentJob.objects.create(incident=incident, job=parked, effect=IncidentJob.PARKED)
    IncidentJob.objects.create(
        incident=incident,
        job=Job.objects.get(shell_file_id=failed.id),
        effect=IncidentJob.FAILED,
    )
    for step in (Step.PAGES, Step.PASS05, Step.PASS1):
        a_job(step=step)
    running = a_job(
        status=JobStatus.PROCESSING,
        worker_id="worker-1-4711-ab12cd34",
        lease_expires_at=now + timedelta(minutes=1),
        heartbeat_at=now,
        step_started_at=now - timedelta(seconds=40),
    )
    a_job(
        status=JobStatus.DEAD,
        error_code="WORKER_LOST",
        last_error="The worker died three times in Pass 1.",
        completed_at=now - timedelta(hours=2),
        crash_count=3,
    )
    a_job(
        step=Step.PAGES,
        status=JobStatus.FAILED,
        error_code="INPUT_ENCRYPTED",
        last_error="The file needs a password. Send the file without a password.",
        completed_at=now - timedelta(minutes=30),
    )
    for minute in range(1, 40):
        calls(parked, "OK", 2 + minute % 7, ago_s=60.0 * minute, duration_ms=4000 + 97 * minute)
    calls(parked, "RATE_LIMIT", 4, ago_s=1200, retry_after_ms=3000)
    calls(parked, "API_5XX", 9, ago_s=900, duration_ms=300, http_status=503)
    for task in schedule.names():
        PeriodicTaskRun.objects.create(
            name=task, started_at=now, finished_at=now, last_ok_at=now, outcome="ok"
        )
    return IncidentScenario(
        failed=failed.id,
        broken=broken.id,
        completed=completed.id,
        running=running.shell_file_id,
        incident=incident.id,
    )


def counts() -> tuple[int, int, int]:
    """Count the records, jobs and incidents, for a test that nothing changes."""
    return ShellFile.objects.count(), Job.objects.count(), Incident.objects.count()
