"""The jobs and the work that a retry includes, and the reasons why other jobs are excluded.

This module only reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, UUIDField, Value, When
from django.db.models.fields.json import KT

from pipeline.core.errors import ErrorCode, UserError, UserErrorCode
from pipeline.core.states import JobStatus, Step, WorkStatus
from pipeline.models import (
    OUTCOME_OK,
    IncidentJob,
    Job,
    ProviderCall,
)
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES, WorkTable, encounter_parents
from pipeline.operations.preview.types import JOBS_LIMIT, Ineligible, Selection
from pipeline.transitions import ALL, Scope

_LEFT: dict[JobStatus, str] = {
    JobStatus.COMPLETED: "the job is complete already",
    JobStatus.PENDING: "the job is waiting for a worker already",
    JobStatus.PROCESSING: "the job is running",
    JobStatus.DEAD: "the job is a dead letter; use requeue",
    JobStatus.CANCELLED: "the job was cancelled; retry the record",
}
"""The reason for excluding a job, by its state."""


class ShortJob(NamedTuple):
    """The columns of a job that a preview needs; a job's history is long.

    A tuple, because a preview makes 10,000 of them.
    """

    id: UUID
    shell_file_id: UUID
    status: str
    current_step: str
    error_code: str | None
    underlying: str | None
    """The code behind MAX_RETRIES_EXCEEDED."""
    park_reason: str | None
    incident_id: UUID | None
    pause_id: UUID | None


class SelectedJob(NamedTuple):
    job: ShortJob
    scope: Scope


Chosen = tuple[list[SelectedJob], list[Ineligible], bool]
"""Included jobs, excluded jobs, and whether more jobs exist than were read."""


def in_short(jobs: QuerySet[Job, Job], limit: int) -> list[ShortJob]:
    """Read the first jobs in short."""
    rows = jobs.annotate(underlying=KT("error_details__underlying_error"))
    return list(map(ShortJob._make, rows.values_list(*ShortJob._fields)[:limit]))


def oldest(
    jobs: QuerySet[Job, Job], first: frozenset[JobStatus] = frozenset()
) -> tuple[list[ShortJob], bool]:
    """Return the oldest jobs up to the limit, jobs in `first` before others; whether more exist."""
    # Included jobs come first, so that excluded jobs never fill the limit on every preview.
    order = [Case(When(status__in=first, then=0), default=1)] if first else []
    rows = in_short(jobs.order_by(*order, "created_at", "id"), JOBS_LIMIT + 1)
    return rows[:JOBS_LIMIT], len(rows) > JOBS_LIMIT


_RETRIED = frozenset({JobStatus.FAILED, JobStatus.PARKED})
"""The job states that a retry by code or incident includes."""


def found_by(selection: Selection) -> Chosen:
    if selection.error_code is not None:
        return _by_code(selection, selection.error_code)
    if selection.incident is not None:
        of_it = IncidentJob.objects.filter(
            incident_id=selection.incident, effect=IncidentJob.FAILED
        )
        return _whole(Job.objects.filter(id__in=of_it.values("job_id")))
    if selection.jobs is not None:
        return _whole(Job.objects.filter(id__in=selection.jobs))
    job, scope, failed = _by_id(selection)
    reason = why_not_retried(job, part=None if scope.is_all else failed)
    if reason is not None:
        return [], [_left(job, reason)], False
    return [SelectedJob(job=job, scope=scope)], [], False


def _by_id(selection: Selection) -> tuple[ShortJob, Scope, str]:
    """Return the job of an id, the included part of its work, and the state of that part."""
    jobs = Job.objects.order_by("-created_at")
    if selection.record is not None:
        return _one(jobs.filter(shell_file_id=selection.record), selection), Scope(), ""
    if selection.job is not None:
        return _one(jobs.filter(id=selection.job), selection), Scope(), ""
    if selection.encounter is not None:
        encounter, parent = _encounter(selection, selection.encounter)
        job = _one(jobs.filter(shell_file_id=parent.shell_file_id), selection)
        return job, Scope(encounters=(encounter,)), _encounter_status(job, encounter, parent)
    record, item = _work_item(selection)
    encounters = () if item.encounter_id is None else (item.encounter_id,)
    scope = Scope(encounters=encounters, items=(item.pk,))
    return _one(jobs.filter(shell_file_id=record), selection), scope, item.status


def _encounter(selection: Selection, given: UUID) -> tuple[UUID, Any]:
    """Return the id of an encounter and its parent of the latest pass, from the id of either."""
    for parent in reversed(encounter_parents()):
        column = f"{parent.encounter}_id"
        row = parent.rows.filter(Q(pk=given) | Q(**{column: given})).first()
        if row is not None:
            return getattr(row, column), row
    raise _unknown(selection)


def _encounter_status(job: ShortJob, encounter: UUID, parent: Any) -> str:
    """Return the status of an encounter in the pass of its job."""
    table = WORK_TABLES.get(Step(job.current_step))
    if table and table.has_encounters_alone:
        # A failed work item is the failure of its encounter.
        failed = table.rows.filter(status=WorkStatus.FAILED, **{f"{table.encounter}_id": encounter})
        return WorkStatus.FAILED if failed.exists() else str(parent.status)
    return str(parent.status)


def _work_item(selection: Selection) -> tuple[UUID, WorkItem]:
    """Return the work item of an id, in any pass, and the id of its record."""
    ids = [selection.item] if selection.item else []
    for table in reversed(WORK_TABLES.values()):
        item = table.rows.filter(pk__in=ids).annotate(record=F(table.record)).first()
        if item is not None:
            return item.record, item
    raise _unknown(selection)


def _whole(jobs: QuerySet[Job, Job]) -> Chosen:
    """Return the jobs among these that are retried as a whole."""
    rows, is_capped = oldest(jobs, _RETRIED)
    found, left = [], []
    for job in rows:
        reason = why_not_retried(job)
        if reason is None:
            found.append(SelectedJob(job, ALL))
        else:
            left.append(_left(job, reason))
    return found, left, is_capped


def _by_code(selection: Selection, code: ErrorCode) -> Chosen:
    failed = Q(status=WorkStatus.FAILED) & (
        Q(error_code=code) | Q(error_context__final_underlying_error=code)
    )
    has_failed = reduce(
        or_,
        (
            Q(Exists(table.rows.filter(failed, **{table.record: OuterRef("shell_file_id")})))
            for table in WORK_TABLES.values()
        ),
    )
    own = Q(error_details__error_code=code) | Q(error_details__underlying_error=code)
    is_failed = Q(status=JobStatus.FAILED)
    with_code = Q(own) | (is_failed & has_failed)
    jobs = Job.objects.filter(with_code)
    if selection.step is not None:
        jobs = jobs.filter(current_step=selection.step)
    rows, is_capped = oldest(jobs.filter(_when(selection, code)), _RETRIED)
    scopes = _scopes_of_code([job.shell_file_id for job in rows], code, failed)
    found, left = [], []
    for job in rows:
        meant = scopes.get(job.shell_file_id, ALL)
        scope = meant if job.status == JobStatus.FAILED else ALL
        reason = _LEFT[JobStatus.CANCELLED] if job.status == JobStatus.CANCELLED else None
        reason = reason or why_not_retried(job, part=None if scope.is_all else WorkStatus.FAILED)
        if reason is None:
            found.append(SelectedJob(job=job, scope=scope))
        else:
            left.append(_left(job, reason))
    return found, left, is_capped


def _when(selection: Selection, code: ErrorCode) -> Q:
    """Limit jobs by the selection's model and times, in the same way as the list of failures.

    The limit applies to the failed calls, or to the end of a job that failed without a call.
    """
    # A job that is parked for its retry has no end; its failure is the time of the parking.
    since, until = Q(), Q()
    if selection.since is not None:
        # A job without an end matches a code by its details only, and most jobs have none.
        since = Q(completed_at__gte=selection.since) | (
            Q(completed_at=None, updated_at__gte=selection.since)
            & (Q(error_details__isnull=False) | Q(status=JobStatus.FAILED))
        )
    if selection.until is not None:
        until = Q(completed_at__lte=selection.until) | Q(
            completed_at=None, updated_at__lte=selection.until
        )
    if selection.since is None and not selection.model:
        return until
    # The same condition as the partial index; the planner uses the index only then.
    calls = ProviderCall.objects.exclude(outcome=OUTCOME_OK).filter(outcome=code)
    meant = calls
    if selection.since is not None:
        meant = meant.filter(created_at__gte=selection.since)
    if selection.model:
        meant = meant.filter(model=selection.model)
    called = Q(shell_file_id__in=meant.values("processing_session__shell_file_id"))
    if selection.model:
        return until & called
    own = calls.filter(processing_session__shell_file_id=OuterRef("shell_file_id"))
    # A union, so that each half uses its index; a joint condition would be checked for every job.
    either = Job.objects.filter(called).values("id").union(Job.objects.filter(since).values("id"))
    return until & Q(id__in=either) & (called | Q(~Exists(own)))


def _scopes_of_code(records: Sequence[UUID], code: ErrorCode, failed: Q) -> dict[UUID, Scope]:
    """Return the part of each record that failed with a code; fully failed records are left out."""
    found: defaultdict[UUID, _Parts] = defaultdict(_Parts)
    for table in WORK_TABLES.values():
        encounter = f"{table.encounter}_id" if table.encounter else ""
        rows = table.rows.filter(status=WorkStatus.FAILED, **of_records(table, records))
        for record, item, of, is_meant in _judged(rows, failed, table.record, "id", encounter):
            found[record].add(item, of, is_meant=is_meant)
    for parent in encounter_parents():
        if parent.failed_item is None:
            continue
        # Encounters that have all their replies but could not be published.
        refused = parent.rows.filter(
            status=WorkStatus.FAILED, shell_file_id__in=records, **{parent.failed_item: None}
        )
        columns = ("shell_file_id", "", f"{parent.encounter}_id")
        for record, _, of, is_meant in _judged(refused, Q(error_code=code), *columns):
            found[record].add(None, of, is_meant=is_meant)
    return {record: parts.scope for record, parts in found.items() if parts.is_any and parts.others}


def of_records(table: WorkTable, records: Collection[UUID]) -> dict[str, Any]:
    return {f"{table.record}__in": list(records)}


@dataclass
class _Parts:
    """The part of a record that failed with a code, and whether other parts failed too."""

    items: list[UUID] = field(default_factory=list)
    encounters: set[UUID] = field(default_factory=set)
    others: bool = False

    def add(self, item: UUID | None, encounter: UUID | None, *, is_meant: bool) -> None:
        """Add a failed work item, or an encounter that failed without a failed item."""
        if not is_meant:
            self.others = True
            return
        if item is not None:
            self.items.append(item)
        if encounter is not None:
            self.encounters.add(encounter)

    @property
    def is_any(self) -> bool:
        """Whether any part failed with the code."""
        return bool(self.items or self.encounters)

    @property
    def scope(self) -> Scope:
        """The part that a retry includes."""
        return Scope(encounters=tuple(self.encounters), items=tuple(self.items) or None)


_Judged = tuple[UUID, UUID | None, UUID | None, bool]
"""Record, work item, encounter, and whether the row failed with the code in question."""


def _judged(
    rows: QuerySet[Any], with_code: Q, record: str, item: str, encounter: str
) -> Iterable[_Judged]:
    nothing = Value(None, output_field=UUIDField())
    judged: Iterable[_Judged] = rows.annotate(
        is_meant=Case(When(with_code, then=True), default=False),
        of_item=F(item) if item else nothing,
        of_encounter=F(encounter) if encounter else nothing,
    ).values_list(record, "of_item", "of_encounter", "is_meant")
    return judged


def why_not_retried(job: Job | ShortJob, *, part: str | None = None) -> str | None:
    """Return why a retry excludes a job, or a part with the status `part`; None: it is included.

    This is the only rule. The preview, the retry and the record's page all use it.
    """
    status = JobStatus(job.status)
    if status == JobStatus.FAILED:
        is_meant = part is None or part == WorkStatus.FAILED
        return None if is_meant else f"this part has not failed: it is {part}"
    if status == JobStatus.CANCELLED and part is None:
        return None
    if status == JobStatus.PARKED:
        if not waits_for_retry(job):
            return f"the job is parked and continues by itself: {job.park_reason}"
        return None if part is None else "the job is parked for its retry; retry the record"
    return _LEFT[status]


def waits_for_retry(job: Job | ShortJob) -> bool:
    """Return whether a job is parked because it failed and waits for its automatic retry."""
    return bool(
        job.status == JobStatus.PARKED
        and job.error_code
        and job.incident_id is None
        and job.pause_id is None
    )


def _left(job: ShortJob, reason: str) -> Ineligible:
    return Ineligible(job_id=job.id, shell_file_id=job.shell_file_id, reason=reason)


def _one(jobs: QuerySet[Job, Job], selection: Selection) -> ShortJob:
    rows = in_short(jobs, 1)
    if not rows:
        raise _unknown(selection)
    return rows[0]


def _unknown(selection: Selection) -> UserError:
    return UserError(f"there is no {selection}", code=UserErrorCode.NOT_FOUND)
