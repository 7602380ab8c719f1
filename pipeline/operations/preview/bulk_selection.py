"""The jobs of a bulk cancel, requeue, release or reset, and the work that belongs to them.

This module only reads. Each item is later changed by the action on a single job, which has its own
guard in its UPDATE.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import islice
from uuid import UUID

from django.utils import timezone

from pipeline import transitions
from pipeline.core.states import JobStatus, Step
from pipeline.models import Job
from pipeline.models.work_tables import WORK_TABLES
from pipeline.operations.preview import JOBS_LIMIT, Ineligible, Preview, RetryCandidate, costed
from pipeline.operations.preview.estimates import quota_minutes
from pipeline.operations.preview.selection import SelectedJob, ShortJob, oldest
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import named_provider
from pipeline.transitions import ALL
from pipeline.transitions.stale import STALE_S, Stale

OPEN_TO: dict[str, frozenset[JobStatus]] = {
    "cancel": frozenset({JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.PARKED}),
    "requeue": frozenset({JobStatus.DEAD}),
    "release": frozenset({JobStatus.PARKED}),
}
"""The job states that each action applies to."""


@dataclass(frozen=True, kw_only=True)
class BulkSelection:
    """Jobs selected by their state; fields that are not given do not narrow the selection."""

    action: str
    job: UUID | None = None
    status: JobStatus | None = None
    step: Step | None = None
    error_code: str | None = None
    incident: UUID | None = None
    until: datetime | None = None
    """Jobs that are submitted later are excluded."""
    older_s: float = STALE_S
    """For a reset: the least time in seconds without any work on the job."""

    def __str__(self) -> str:
        return f"jobs to {self.action}"


def bulk_preview(selection: BulkSelection) -> Preview:
    """Preview a bulk action without changing anything."""
    if selection.action == "reset":
        return _reset(selection)
    states = OPEN_TO[selection.action]
    jobs = Job.objects.all()
    if selection.job is not None:
        jobs = jobs.filter(id=selection.job)
    else:
        jobs = jobs.filter(status__in=states & {selection.status} if selection.status else states)
    if selection.step is not None:
        jobs = jobs.filter(current_step=selection.step)
    if selection.error_code is not None:
        jobs = jobs.filter(error_code=selection.error_code)
    if selection.incident is not None:
        jobs = jobs.filter(incident_id=selection.incident)
    if selection.until is not None:
        jobs = jobs.filter(created_at__lte=selection.until)
    rows, is_capped = oldest(jobs)
    found, left = [], []
    for job in rows:
        if job.status in states:
            found.append(SelectedJob(job, ALL))
        else:
            left.append(_left(job, f"the job is {job.status}"))
    return costed(selection, found, left, is_capped)


def _reset(selection: BulkSelection) -> Preview:
    # Each job is reset separately, so no more than one job is locked at a time.
    stale = transitions.find_stale(selection.older_s, JOBS_LIMIT + 1, job_id=selection.job)
    by_job: defaultdict[UUID, list[Stale]] = defaultdict(list)
    for row in stale:
        by_job[row.job_id].append(row)
    is_capped = len(by_job) > JOBS_LIMIT
    records = dict(Job.objects.filter(id__in=by_job).values_list("id", "shell_file_id"))
    # Only items with a stated estimate count, because the preview of a reset promises no cost.
    items = {
        item.pk: (item, table.estimate_of(item))
        for table in WORK_TABLES.values()
        if table.estimate
        for item in table.rows.filter(pk__in=[row.id for row in stale]).only(
            "page_range_start", "page_range_end", table.estimate
        )
    }
    eligible = []
    for job_id, rows in islice(by_job.items(), JOBS_LIMIT):
        own = [items[row.id] for row in rows if row.id in items]
        eligible.append(
            RetryCandidate(
                job_id=job_id,
                shell_file_id=records[job_id],
                step=rows[0].step,
                scope=ALL,
                encounters=0,
                calls=len(rows),
                pages=sum(item.page_range_end - item.page_range_start + 1 for item, _ in own),
                input_tokens=sum(tokens for _, tokens in own),
            )
        )
    calls = sum(each.calls for each in eligible)
    tokens = sum(each.input_tokens for each in eligible)
    return Preview(
        selection=selection,
        eligible=tuple(eligible),
        ineligible=(),
        output_tokens=0,
        cost_usd=Decimal(0),
        quota_minutes=quota_minutes(named_provider(ProviderConfig.of_settings()), calls, tokens),
        same_versions=None,
        taken_at=timezone.now(),
        is_capped=is_capped,
    )


def _left(job: ShortJob, reason: str) -> Ineligible:
    return Ineligible(job_id=job.id, shell_file_id=job.shell_file_id, reason=reason)
