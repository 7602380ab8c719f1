"""Retry, cancel and requeue: the operator's verbs about jobs; `services` offers them.

Imports `preview`, transitions and queues. The guard of each is in the WHERE of its UPDATE, so that
a second click, or a second operator, does no harm. Who, why and when join the job's history.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from pipeline import transitions
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.states import JobStatus
from pipeline.core.types import Due
from pipeline.models import Job, Session
from pipeline.operations.preview import Candidate, Ineligible, Preview, Selection, preview
from pipeline.operations.reasons import stated, stated_if_given
from pipeline.queueing.queues import enqueue_steps
from pipeline.transitions.rollup import Leaving, settle

logger = logging.getLogger(__name__)

_TRIES = 5
"""How often a cancellation looks again at a job that moves on meanwhile."""


@dataclass(frozen=True, kw_only=True)
class Retried:
    """What a retry has put back in line, and what it has left."""

    retried: tuple[Candidate, ...]
    ineligible: tuple[Ineligible, ...]


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """What a cancellation has done."""

    job_id: UUID
    shell_file_id: UUID
    is_ended: bool
    """False where a step runs: it keeps what succeeds, and ends as cancelled within a heartbeat
    and the grace period."""


@dataclass(frozen=True, kw_only=True)
class Requeued:
    """A dead letter that is back in line."""

    job_id: UUID
    shell_file_id: UUID
    due: Due


def retry_preview(selection: Selection) -> Preview:
    """Say what a retry would do; changes nothing. Raises UserError where an id names nothing."""
    return preview(selection)


def work_retry(found: Preview, *, reason: str, by: str | None = None) -> Retried:
    """Put what a preview found eligible back in line with new attempts, each by itself.

    What succeeded is never asked again. Raises UserError where there is nothing to retry.
    """
    stated(reason)
    selection = found.selection
    retried, left = [], list(found.ineligible)
    for each in found.eligible:
        if candidate_retry(each, reason=reason, by=by, what=str(selection)):
            retried.append(each)
        else:
            left.append(
                Ineligible(
                    job_id=each.job_id,
                    shell_file_id=each.shell_file_id,
                    reason="somebody else has retried or cancelled it meanwhile",
                )
            )
    if not retried:
        raise UserError(_nothing(selection, left), code=UserErrorCode.STATE_CONFLICT)
    return Retried(retried=tuple(retried), ineligible=tuple(left))


def candidate_retry(
    candidate: Candidate, *, reason: str, by: str | None = None, what: str | None = None
) -> bool:
    """Retry one candidate of a preview; False where it is in no such state any more.

    For who goes through a preview item by item, as a bulk operation does. Raises UserError without
    a reason.
    """
    entry = {"event": "retried", "by": by, "reason": stated(reason), "what": what}
    with transaction.atomic():
        due = transitions.retry_job(candidate.job_id, candidate.scope, entry=entry)
        if due is not None:
            enqueue_steps([due])
    if due is None:
        return False
    logger.info(
        "job_retried job=%s step=%s dispatch_no=%s",
        due.job_id,
        due.step.value,
        due.dispatch_no,
        extra={"action": "job_retried", "job": str(due.job_id)},
    )
    return True


def record_retry(shell_file_id: UUID, *, reason: str, by: str | None = None) -> Retried:
    """Retry what failed of a record. Raises UserError."""
    return work_retry(preview(Selection(record=shell_file_id)), reason=reason, by=by)


def encounter_retry(encounter_id: UUID, *, reason: str, by: str | None = None) -> Retried:
    """Retry what failed of one encounter. Raises UserError."""
    return work_retry(preview(Selection(encounter=encounter_id)), reason=reason, by=by)


def batch_retry(batch_id: UUID, *, reason: str, by: str | None = None) -> Retried:
    """Retry one failed batch or chunk. Raises UserError."""
    return work_retry(preview(Selection(batch=batch_id)), reason=reason, by=by)


def job_cancel(
    job_or_record: UUID, *, reason: str | None = None, by: str | None = None
) -> Cancelled:
    """Cancel a record's job: at once where it waits, else its running step is told.

    What is complete stays. Raises UserError where it has ended already, or the id names nothing.
    """
    job = _job(job_or_record)
    entry = {"event": "cancelled", "by": by, "reason": stated_if_given(reason)}
    for _ in range(_TRIES):
        with transaction.atomic():
            state = transitions.cancel(job.id, entry=entry)
            if state == JobStatus.CANCELLED:
                # It held no place in its batch of records, so nobody has to be woken.
                settle([_leaving(job)])
        job = _job(job_or_record)
        if state is not None:
            _log("job_cancelled" if state == JobStatus.CANCELLED else "job_cancel_asked", job)
            return _cancelled(job, is_ended=state == JobStatus.CANCELLED)
        if job.status == JobStatus.PROCESSING and job.cancel_requested_at is not None:
            return _cancelled(job, is_ended=False)
        if job.status in _ENDED:
            raise UserError(
                f"record {job.shell_file_id} {_ENDED[JobStatus(job.status)]}",
                code=UserErrorCode.STATE_CONFLICT,
            )
    raise UserError(
        f"record {job.shell_file_id} moves on too fast; try again",
        code=UserErrorCode.STATE_CONFLICT,
    )


def job_requeue(
    job_or_record: UUID, *, reason: str | None = None, by: str | None = None
) -> Requeued:
    """Put a dead letter back in line with a new budget; its history is kept.

    Raises UserError where it is no dead letter, or the id names nothing.
    """
    job = _job(job_or_record)
    entry = {
        "event": "requeued",
        "by": by,
        "reason": stated_if_given(reason),
        "crash_count": job.crash_count,
        "dead_letter_at": job.dead_letter_at.isoformat() if job.dead_letter_at else None,
    }
    with transaction.atomic():
        due = transitions.retry_job(job.id, dead=True, entry=entry)
        if due is not None:
            enqueue_steps([due])
    if due is None:
        use = "; use retry" if job.status in {JobStatus.FAILED, JobStatus.CANCELLED} else ""
        raise UserError(
            f"record {job.shell_file_id} is no dead letter but {job.status}{use}",
            code=UserErrorCode.STATE_CONFLICT,
        )
    _log("job_requeued", job)
    return Requeued(job_id=job.id, shell_file_id=job.shell_file_id, due=due)


_ENDED: dict[JobStatus, str] = {
    JobStatus.COMPLETED: "is complete; there is nothing to cancel",
    JobStatus.FAILED: "has failed; there is nothing to cancel",
    JobStatus.DEAD: "is a dead letter; there is nothing to cancel",
    JobStatus.CANCELLED: "is cancelled already",
}


def _job(job_or_record: UUID) -> Job:
    found = Job.objects.filter(Q(id=job_or_record) | Q(shell_file_id=job_or_record))
    job = found.order_by("-created_at").first()
    if job is None:
        raise UserError(f"there is no record or job {job_or_record}", code=UserErrorCode.NOT_FOUND)
    return job


def _leaving(job: Job) -> Leaving:
    session_id = Session.objects.values_list("id", flat=True).get(shell_file_id=job.shell_file_id)
    return Leaving(
        job_id=job.id,
        shell_file_id=job.shell_file_id,
        session_id=session_id,
        record_batch_id=job.record_batch_id,
        event=f"{job.current_step}: cancelled",
        has_ended=True,
    )


def _cancelled(job: Job, *, is_ended: bool) -> Cancelled:
    return Cancelled(job_id=job.id, shell_file_id=job.shell_file_id, is_ended=is_ended)


def _nothing(selection: object, left: list[Ineligible]) -> str:
    if not left:
        return f"nothing to retry: {selection}"
    if len(left) == 1:
        return f"{selection} cannot be retried: {left[0].reason}"
    return f"nothing to retry: {len(left)} found, the first: {left[0].reason}"


def _log(action: str, job: Job) -> None:
    # The reason stands in the row; whoever typed it may have named a patient.
    logger.warning("%s job=%s", action, job.id, extra={"action": action, "job": str(job.id)})
