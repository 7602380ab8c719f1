"""Retry, cancel and requeue: the operator's actions on jobs; `operator_actions` re-exports them.

The guard of each action is in the WHERE of its UPDATE, so a second click or a second operator does
no harm. The job's history records who acted, why and when.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from pipeline import transitions
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.states import JobStatus, Step
from pipeline.core.types import Due
from pipeline.models import Job, Session
from pipeline.operations.preview import Ineligible, Preview, RetryCandidate, Selection, preview
from pipeline.operations.reasons import stated, stated_if_given
from pipeline.queueing.queues import enqueue_steps
from pipeline.queueing.record_places import settle_and_wake
from pipeline.transitions.rollup import Leaving

logger = logging.getLogger(__name__)

_TRIES = 5
"""Attempts of a cancellation at a job whose state keeps changing."""
_ENDED: dict[JobStatus, str] = {
    JobStatus.COMPLETED: "is complete; there is nothing to cancel",
    JobStatus.FAILED: "has failed; there is nothing to cancel",
    JobStatus.DEAD: "is a dead letter; there is nothing to cancel",
    JobStatus.CANCELLED: "is cancelled already",
}


@dataclass(frozen=True, kw_only=True)
class Retried:
    """The jobs that a retry has requeued, and those that it has left alone."""

    retried: tuple[RetryCandidate, ...]
    ineligible: tuple[Ineligible, ...]


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """The result of a cancellation."""

    job_id: UUID
    shell_file_id: UUID
    is_ended: bool
    """False if a step is running: the step keeps what succeeds, and the job ends as cancelled
    within a heartbeat and the grace period."""


@dataclass(frozen=True, kw_only=True)
class Requeued:
    """A requeued dead letter."""

    job_id: UUID
    shell_file_id: UUID
    due: Due


def retry_preview(selection: Selection) -> Preview:
    """Preview a retry without changing anything. Raises UserError for an unknown id."""
    return preview(selection)


def work_retry(preview: Preview, *, reason: str, by: str | None = None) -> Retried:
    """Requeue the eligible jobs of a preview with new attempts, each in its own transaction.

    Successful work is never sent again. Raises UserError if there is nothing to retry.
    """
    stated(reason)
    selection = preview.selection
    retried, left = [], list(preview.ineligible)
    for each in preview.eligible:
        if candidate_retry(each, reason=reason, by=by, what=str(selection)):
            retried.append(each)
        else:
            left.append(
                Ineligible(
                    job_id=each.job_id,
                    shell_file_id=each.shell_file_id,
                    reason="the job was retried or cancelled in the meantime",
                )
            )
    if not retried:
        raise UserError(_nothing(selection, left), code=UserErrorCode.STATE_CONFLICT)
    return Retried(retried=tuple(retried), ineligible=tuple(left))


def candidate_retry(
    candidate: RetryCandidate, *, reason: str, by: str | None = None, what: str | None = None
) -> bool:
    """Retry one candidate of a preview; return False if the job is no longer in such a state.

    For callers that process a preview item by item, such as a bulk operation. Raises UserError
    without a reason.
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
    """Retry the failed work of a record. Raises UserError."""
    return work_retry(preview(Selection(record=shell_file_id)), reason=reason, by=by)


def encounter_retry(encounter_id: UUID, *, reason: str, by: str | None = None) -> Retried:
    """Retry the failed work of one encounter. Raises UserError."""
    return work_retry(preview(Selection(encounter=encounter_id)), reason=reason, by=by)


def item_retry(item_id: UUID, *, reason: str, by: str | None = None) -> Retried:
    """Retry one failed work item of any pass. Raises UserError."""
    return work_retry(preview(Selection(item=item_id)), reason=reason, by=by)


def job_cancel(
    job_or_record: UUID, *, reason: str | None = None, by: str | None = None
) -> Cancelled:
    """Cancel a record's job at once if the job waits; otherwise ask its running step to stop.

    Completed work stays. Raises UserError if the job has ended already, or for an unknown id.
    """
    job = _job(job_or_record)
    entry = {"event": "cancelled", "by": by, "reason": stated_if_given(reason)}
    for _ in range(_TRIES):
        with transaction.atomic():
            state = transitions.cancel(job.id, entry=entry)
            if state == JobStatus.CANCELLED:
                # A follower may have waited for this job, and a lost worker may have held a place.
                settle_and_wake([_leaving(job)])
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
        f"record {job.shell_file_id} keeps changing; try again",
        code=UserErrorCode.STATE_CONFLICT,
    )


def job_requeue(
    job_or_record: UUID, *, reason: str | None = None, by: str | None = None
) -> Requeued:
    """Requeue a dead letter with a new budget; its history is kept.

    Raises UserError if the job is no dead letter, or for an unknown id.
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
        step=Step(job.current_step),
        event=f"{job.current_step}: cancelled",
        has_ended=True,
    )


def _cancelled(job: Job, *, is_ended: bool) -> Cancelled:
    return Cancelled(job_id=job.id, shell_file_id=job.shell_file_id, is_ended=is_ended)


def _nothing(selection: object, ineligible_jobs: list[Ineligible]) -> str:
    if not ineligible_jobs:
        return f"nothing to retry: {selection}"
    if len(ineligible_jobs) == 1:
        return f"{selection} cannot be retried: {ineligible_jobs[0].reason}"
    return f"nothing to retry: {len(ineligible_jobs)} found, the first: {ineligible_jobs[0].reason}"


def _log(action: str, job: Job) -> None:
    # Without the reason, because an operator may have typed a patient's name; the row has it.
    logger.warning("%s job=%s", action, job.id, extra={"action": action, "job": str(job.id)})
