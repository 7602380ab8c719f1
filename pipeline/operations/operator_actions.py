"""The actions of operators and of the scheduler, for command line, console and code.

Each action writes in one transaction, except releases and the scheduler's actions, which use one
transaction per portion. After the commit, the jobs that became claimable get their wake-ups.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import transaction

from pipeline import transitions
from pipeline.core.errors import UserError, UserErrorCode
from pipeline.core.states import Step
from pipeline.core.types import Due
from pipeline.execution.step_trace import trace_lost_pass
from pipeline.incidents import detector, lifecycle
from pipeline.operations.job_actions import (
    Cancelled,
    Requeued,
    Retried,
    candidate_retry,
    encounter_retry,
    item_retry,
    job_cancel,
    job_requeue,
    record_retry,
    retry_preview,
    work_retry,
)
from pipeline.operations.preview import Preview, Selection
from pipeline.operations.preview.bulk_selection import BulkSelection, bulk_preview
from pipeline.operations.reasons import stated
from pipeline.providers.factory import NAMES
from pipeline.queueing import reconciler
from pipeline.queueing.queues import enqueue_step, enqueue_steps
from pipeline.ratelimit.operator_controls import pause_limiters, resume_limiters
from pipeline.stages.intake import (
    Received,
    StoredSubmission,
    Submission,
    create,
    stored_submission,
)
from pipeline.transitions.holds import RELEASE_LIMIT
from pipeline.transitions.stale import JOBS_LIMIT as STALE_JOBS_LIMIT

__all__ = [
    "BulkSelection",
    "Cancelled",
    "Preview",
    "Requeued",
    "Resumed",
    "Retried",
    "Selection",
    "bulk_preview",
    "candidate_retry",
    "encounter_retry",
    "incidents_detect",
    "item_retry",
    "job_cancel",
    "job_release",
    "job_requeue",
    "jobs_reconcile",
    "parked_release",
    "provider_pause",
    "provider_resume",
    "queue_pause",
    "queue_resume",
    "record_batch_close",
    "record_batch_open",
    "record_batches_settle",
    "record_create",
    "record_retry",
    "record_submit",
    "retry_preview",
    "stale_batches_reset",
    "work_retry",
]

logger = logging.getLogger(__name__)

RELEASE_ROUNDS = 20
"""Releases per tick: 10,000 jobs; the next tick takes the rest."""


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """The holds that a resume ended, and the number of jobs that it released."""

    pauses: int
    incidents: int
    released: int


def record_submit(submission: Submission) -> Received:
    """Submit a file as a record and wake a worker for it.

    Raises InputError if the bytes cannot be a record, and PipelineError STORAGE_FULL if the disk
    is full; nothing is kept then.
    """
    with stored_submission(submission) as stored:
        return record_create(stored)


def record_create(stored: StoredSubmission, *, savepoint: bool = True) -> Received:
    """Create the record of a stored file, and wake a worker when the transaction commits."""
    received = create(stored, savepoint=savepoint)
    if received.due is not None:
        enqueue_step(received.job_id, received.due.value, received.dispatch_no)
    return received


def record_batch_open(max_concurrent_tasks: int | None = None) -> UUID:
    """Open a batch of records with a limit of records that run at once (default 10)."""
    return transitions.open_record_batch(max_concurrent_tasks)


def record_batch_close(batch_id: UUID, records: int) -> None:
    """End the submission of a batch with `records` records; its totals follow when all end."""
    transitions.close_record_batch(batch_id, records)


def record_batches_settle() -> int:
    """Write the totals of ended batches that no event has settled yet; count them."""
    return transitions.settle_record_batches()


def parked_release() -> int:
    """Release every parked job whose time has come, or whose hold has ended; count them.

    Two schedulers at once release each job once, because the row decides.
    """
    released = 0
    for _ in range(RELEASE_ROUNDS):
        due = _released(transitions.release_due)
        released += len(due)
        if len(due) < RELEASE_LIMIT:
            break
    return released


def jobs_reconcile(*, spares_expired: bool = False) -> reconciler.ReconcilerTick:
    """Recover jobs with an expired lease, release parked jobs, and make wake-ups and rows agree.

    With `spares_expired`, leases that have expired are left until the next tick.

    The rows come first, also without Redis; a later tick then sends the wake-ups. Several calls at
    once do each repair once.
    """
    taken = [] if spares_expired else reconciler.recover_expired()
    for each in taken:
        trace_lost_pass(each)
    released = parked_release()
    return replace(
        reconciler.match_wakeups(),
        recovered=sum(not each.is_dead for each in taken),
        dead_lettered=sum(each.is_dead for each in taken),
        released=released,
    )


def stale_batches_reset(
    older_than_s: float,
    *,
    dry_run: bool = False,
    job_id: UUID | None = None,
    jobs: int = STALE_JOBS_LIMIT,
) -> list[transitions.Stale]:
    """Reset batches and chunks to `pending` that were untouched for `older_than_s` seconds.

    Covers one job, or all jobs; only jobs that are not running or whose lease has expired.
    Attempts are kept. A dry run returns what would be reset. At most `jobs` jobs at a time, oldest
    first.
    """
    found = transitions.find_stale(older_than_s, jobs, job_id=job_id)
    if dry_run or not found:
        return found
    # Recovery alone takes expired leases, because it counts the crash. It resets their rows too.
    reconciler.recover_expired(job_id)
    reset = transitions.reset_stale(found)
    for row in reset:
        logger.warning(
            "stale_reset %s=%s job=%s attempts=%s processing_s=%.0f worker=%s heartbeat_age_s=%s",
            row.kind,
            row.id,
            row.job_id,
            row.attempt_count,
            row.processing_s,
            row.worker_id,
            row.heartbeat_age_s,
            extra={"action": "stale_reset", "job": str(row.job_id)},
        )
    return reset


def job_release(job_ids: Sequence[UUID]) -> int:
    """Release these jobs if they are parked, whatever they wait for; count them."""
    return len(_released(lambda: transitions.release(job_ids)))


def incidents_detect() -> detector.DetectorTick:
    """Detect incidents once, wake their probes, and release the jobs of ended incidents."""
    with transaction.atomic():
        tick = detector.tick()
        enqueue_steps(tick.due)
    if tick.closed:
        parked_release()
    return tick


def queue_pause(queue: Step, *, reason: str, by: str | None = None) -> None:
    """Pause a queue: waiting jobs are parked, running jobs continue. Raises UserError."""
    transitions.pause_queue(queue, reason=stated(reason), by=by)
    _log("queue_paused", queue)


def queue_resume(queue: Step, *, reason: str, by: str | None = None) -> Resumed:
    """End the pause of a queue. Raises UserError if the queue is not paused."""
    ended = transitions.end_pauses(queue=queue, reason=stated(reason), by=by)
    if not ended:
        raise UserError(f"the queue {queue} is not paused", code=UserErrorCode.STATE_CONFLICT)
    _log("queue_resumed", queue)
    return Resumed(pauses=ended, incidents=0, released=parked_release())


def provider_pause(
    provider: str, model: str | None = None, *, reason: str, by: str | None = None
) -> None:
    """Pause all passes that call a provider, or one of its models.

    Running steps start no more calls. Raises UserError.
    """
    if provider not in NAMES:
        raise UserError(
            f"no provider has that name; there are {', '.join(NAMES)}",
            code=UserErrorCode.VALUE_INVALID,
        )
    words = stated(reason)
    with transaction.atomic():
        transitions.pause_provider(provider, model, reason=words, by=by)
        # After the commit, because a step whose rate limiter is paused reads the pause's row.
        _tell(lambda: pause_limiters(provider, model), provider, model)
    _log("provider_paused", _name(provider, model))


def provider_resume(
    provider: str, model: str | None = None, *, reason: str, by: str | None = None
) -> Resumed:
    """End the pauses and open incidents of a provider, or of one of its models.

    Earlier failures do not open an incident again. Raises UserError if there is no hold.
    """
    words = stated(reason)
    with transaction.atomic():
        ended = transitions.end_pauses(provider=provider, model=model, reason=words, by=by)
        closed = lifecycle.close_by_hand(provider, model, reason=words)
        if not ended and not closed:
            raise UserError(
                f"{_name(provider, model)} is not on hold", code=UserErrorCode.STATE_CONFLICT
            )
        _tell(lambda: resume_limiters(provider, model), provider, model)
    _log("provider_resumed", _name(provider, model))
    return Resumed(pauses=ended, incidents=len(closed), released=parked_release())


def _tell(act: Callable[[], bool], provider: str, model: str | None) -> None:
    def told() -> None:
        if not act():
            logger.warning(
                "Redis does not answer; running steps of %s do not learn of this change",
                _name(provider, model),
                extra={"action": "limiter_not_told"},
            )

    transaction.on_commit(told, robust=True)


def _released(release: Callable[[], list[Due]]) -> list[Due]:
    with transaction.atomic():
        due = release()
        enqueue_steps(due)
    for each in due:
        logger.info(
            "job_released job=%s step=%s dispatch_no=%s",
            each.job_id,
            each.step.value,
            each.dispatch_no,
            extra={"action": "job_released", "job": str(each.job_id)},
        )
    return due


def _name(provider: str, model: str | None) -> str:
    return f"{provider} {model}" if model else provider


def _log(action: str, target: str) -> None:
    # Without the reason, because an operator may have typed a patient's name; the row has it.
    logger.warning("%s %s", action, target, extra={"action": action})
