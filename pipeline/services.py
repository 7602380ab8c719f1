"""The operator's verbs, the same for command line, admin and code; the clock's duties among them.

Imports stages, transitions, incidents and queues. Each verb writes in one transaction and enqueues
what it made due when that has committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from pipeline import incidents, transitions
from pipeline.errors import UserError
from pipeline.queues import enqueue_step, enqueue_steps
from pipeline.stages.intake import Received, Submission, receive
from pipeline.states import Step
from pipeline.transitions.holds import RELEASE_LIMIT
from pipeline.types import Due
from pipeline.verbs import (
    Cancelled,
    Preview,
    Requeued,
    Retried,
    Selection,
    batch_retry,
    candidate_retry,
    encounter_retry,
    job_cancel,
    job_requeue,
    record_retry,
    retry_preview,
    work_retry,
)

__all__ = [
    "Cancelled",
    "Preview",
    "Requeued",
    "Resumed",
    "Retried",
    "Selection",
    "batch_retry",
    "candidate_retry",
    "encounter_retry",
    "incidents_detect",
    "job_cancel",
    "job_release",
    "job_requeue",
    "parked_release",
    "provider_pause",
    "provider_resume",
    "queue_pause",
    "queue_resume",
    "record_retry",
    "record_submit",
    "retry_preview",
    "work_retry",
]

logger = logging.getLogger(__name__)

RELEASE_ROUNDS = 20
"""Releases of one tick: 10,000 jobs; the next tick takes the rest."""


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """What a resume ended and let go."""

    pauses: int
    incidents: int
    released: int


def record_submit(submission: Submission) -> Received:
    """Take a file in and wake a worker for it.

    Raises InputError where the bytes cannot be a record, and PipelineError STORAGE_FULL where
    there is no room; nothing is kept then.
    """
    received = receive(submission)
    if received.due is not None:
        enqueue_step(received.job_id, received.due.value, received.dispatch_no)
    return received


def parked_release() -> int:
    """Release every parked job whose time has come, or whose incident or pause is over; count them.

    Two clocks at once release each job once: the row decides.
    """
    released = 0
    for _ in range(RELEASE_ROUNDS):
        due = _released(transitions.release_due)
        released += len(due)
        if len(due) < RELEASE_LIMIT:
            break
    return released


def job_release(job_ids: Sequence[UUID]) -> int:
    """Release these jobs where they are parked, whatever they wait for; count them."""
    return len(_released(lambda: transitions.release(job_ids)))


def incidents_detect() -> incidents.Tick:
    """Look for incidents once, wake their probes, and release what an ended one had parked."""
    with transaction.atomic():
        tick = incidents.tick()
        enqueue_steps(tick.due)
    if tick.closed:
        parked_release()
    return tick


def queue_pause(queue: Step, *, reason: str, by: str | None = None) -> None:
    """Hold a queue: what waits for it is parked, what runs goes on. Raises UserError."""
    transitions.pause_queue(queue, reason=reason, by=by)
    _log("queue_paused", queue)


def queue_resume(queue: Step, *, reason: str, by: str | None = None) -> Resumed:
    """End the hold on a queue. Raises UserError where there is none."""
    ended = transitions.end_pauses(queue=queue, reason=reason, by=by)
    if not ended:
        raise UserError(f"the queue {queue} is not paused")
    _log("queue_resumed", queue)
    return Resumed(pauses=ended, incidents=0, released=parked_release())


def provider_pause(
    provider: str, model: str | None = None, *, reason: str, by: str | None = None
) -> None:
    """Hold the passes that ask a provider, or one model of it. Raises UserError."""
    transitions.pause_provider(provider, model, reason=reason, by=by)
    _log("provider_paused", _name(provider, model))


def provider_resume(
    provider: str, model: str | None = None, *, reason: str, by: str | None = None
) -> Resumed:
    """End the holds on a provider or one model of it: pauses, and incidents that are open.

    Failures from before it open no incident again. Raises UserError where nothing holds.
    """
    with transaction.atomic():
        ended = transitions.end_pauses(provider=provider, model=model, reason=reason, by=by)
        closed = incidents.close_by_hand(provider, model, reason=reason)
    if not ended and not closed:
        raise UserError(f"nothing holds {_name(provider, model)}")
    _log("provider_resumed", _name(provider, model))
    return Resumed(pauses=ended, incidents=len(closed), released=parked_release())


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
    # The reason stands in the row; whoever typed it may have named a patient.
    logger.warning("%s %s", action, target, extra={"action": action})
