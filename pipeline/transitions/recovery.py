"""Recovery of jobs whose step lost its process, with the crash counted; the lease alone decides.

A worker that sees its horse die expires the lease at once (`leases.expire_leases`). Lock order:
jobs, oldest lease first and with SKIP LOCKED, then encounters, then batches and chunks.
`lease_gen` is increased before any other write, so that the old worker can write no more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from pipeline.core.states import JobStatus, Step
from pipeline.core.types import Due
from pipeline.transitions.cancellation import cancel_asked
from pipeline.transitions.history import CRASHED, crashes, noted_sql
from pipeline.transitions.in_flight import requeue_in_flight
from pipeline.transitions.leases import Lease
from pipeline.transitions.metric_counts import CounterPart, add_counts
from pipeline.transitions.run_time import RUN_UNTIL_LOST
from pipeline.transitions.steps import Failure, dead_letter_step

CRASH_LIMIT = 3
"""Crashes of one step after which its job is dead."""
TAKE_LIMIT = 100
"""Expired jobs that one transaction locks."""


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """A job whose lease expired and was taken from its worker."""

    lease: Lease
    """The expired lease, but with the new `gen`."""
    crashes: int
    """Crashes of this step, including this one."""
    heartbeat_at: datetime | None
    step_started_at: datetime | None
    """When the lost worker claimed the job."""
    due: Due | None
    """The wake-up to enqueue; None for a job that has ended."""
    is_dead: bool
    """False without `due` means: the job was cancelled, as an operator had asked."""


# SKIP LOCKED passes over a job whose worker is writing right now or whose lease another reconciler
# takes. `OF j` leaves the session unlocked.
_LOCK_EXPIRED = """
SELECT j.id, s.id, j.worker_id, j.heartbeat_at, j.record_batch_id, j.step_started_at
FROM job_queue j JOIN ai_processing_sessions s ON s.shell_file_id = j.shell_file_id
WHERE j.status = 'processing' AND j.lease_expires_at <= clock_timestamp()
  AND (%(job)s::uuid IS NULL OR j.id = %(job)s)
ORDER BY j.lease_expires_at, j.id
LIMIT %(limit)s FOR NO KEY UPDATE OF j SKIP LOCKED
"""

_CRASHED = f"""jsonb_build_object('event', '{CRASHED}', 'step', j.current_step,
    'worker_id', j.worker_id, 'lease_gen', j.lease_gen, 'heartbeat_at', j.heartbeat_at,
    'lease_expired_at', j.lease_expires_at)"""

# A job that becomes dead stays `processing` here; `dead_letter_step` moves the job, as for a failed
# job, together with the session and the summary. A job with a cancel request never becomes dead.
_GOES_ON = "(j.crash_count + 1 < %(crashes)s OR j.cancel_requested_at IS NOT NULL)"
_TAKE = f"""
UPDATE job_queue j SET
  lease_gen = j.lease_gen + 1, crash_count = j.crash_count + 1,
  error_details = {noted_sql("j.error_details", _CRASHED)},
  status = CASE WHEN {_GOES_ON} THEN 'pending' ELSE j.status END,
  dispatch_no = j.dispatch_no + {_GOES_ON}::int,
  available_at = clock_timestamp(), step_deadline_at = NULL, incident_id = NULL,
  {RUN_UNTIL_LOST},
  worker_id = CASE WHEN {_GOES_ON} THEN NULL ELSE j.worker_id END,
  lease_expires_at = CASE WHEN {_GOES_ON} THEN NULL ELSE j.lease_expires_at END,
  updated_at = clock_timestamp()
WHERE j.id = ANY(%(ids)s) AND j.status = 'processing'
RETURNING j.id, j.shell_file_id, j.current_step, j.lease_gen, j.dispatch_no, j.crash_count,
  j.status, j.error_details -> 'history', j.cancel_requested_at IS NOT NULL
"""  # noqa: S608 - constants of ours, values are parameters

# `seen` is the jobs as the caller read them. `due` is those that have not changed since, locked in
# a fixed order; MATERIALIZED, so that the UPDATE cannot evaluate the locking again.
_REDISPATCH = """
WITH due AS MATERIALIZED (
  SELECT j.id FROM job_queue j
  JOIN unnest(%(ids)s::uuid[], %(dispatch_nos)s::int[]) AS seen (id, dispatch_no)
    ON seen.id = j.id AND seen.dispatch_no = j.dispatch_no
  WHERE j.status = 'pending'
  ORDER BY j.created_at, j.id FOR NO KEY UPDATE OF j SKIP LOCKED
)
UPDATE job_queue j SET dispatch_no = j.dispatch_no + 1, updated_at = clock_timestamp()
FROM due WHERE j.id = due.id AND j.status = 'pending'
RETURNING j.id, j.current_step, j.dispatch_no
"""


def take_expired(limit: int = TAKE_LIMIT, *, job_id: UUID | None = None) -> list[Recovered]:
    """Take one job, or all jobs, with an expired lease from their workers, oldest lease first.

    Each job is requeued with its crash counted. At the third crash of one step the job is dead; a
    job with a cancel request is cancelled. Retries are not counted. Four statements, plus some
    for each ended job. Call this in a transaction of its own. The caller enqueues what is `due`
    and rolls up the cost of dead jobs.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_EXPIRED, {"limit": limit, "job": job_id})
        expired = {row[0]: row[1:] for row in cursor.fetchall()}
        if not expired:
            return []
        cursor.execute(_TAKE, {"ids": list(expired), "crashes": CRASH_LIMIT})
        taken = {row[0]: row[1:] for row in cursor.fetchall()}
        requeue_in_flight([expired[job_id][0] for job_id in taken])
        add_counts(CounterPart(name="crashes", labels={"step": row[1]}) for row in taken.values())
        return [_recovered(job_id, expired[job_id], taken[job_id]) for job_id in expired]


def _recovered(job_id: UUID, had: Sequence[Any], taken: Sequence[Any]) -> Recovered:
    session_id, worker_id, heartbeat_at, record_batch_id, step_started_at = had
    shell_file_id, current_step, lease_gen, dispatch_no, times, status, noted, to_cancel = taken
    lease = Lease(
        job_id=job_id,
        shell_file_id=shell_file_id,
        session_id=session_id,
        step=Step(current_step),
        gen=lease_gen,
        worker_id=worker_id,
        record_batch_id=record_batch_id,
    )
    due = None
    is_dead = status != JobStatus.PENDING
    if is_dead:
        _dead_letter(lease, times, _loaded(noted))
    elif not (to_cancel and cancel_asked(lease)):
        due = Due(job_id=job_id, step=lease.step, dispatch_no=dispatch_no)
    return Recovered(
        lease=lease,
        crashes=times,
        heartbeat_at=heartbeat_at,
        step_started_at=step_started_at,
        due=due,
        is_dead=is_dead,
    )


def _dead_letter(lease: Lease, times: int, noted: list[dict[str, Any]]) -> None:
    """End a job with the code of its last crash: a hang is not the loss of a worker."""
    of_step = [each for each in crashes(noted) if each.step == lease.step][-times:]
    hung = sum(each.has_hung for each in of_step)
    message = f"the process that ran this step was lost {times} times"
    if hung == times:
        message = f"this step hung {times} times, and its process was ended each time"
    elif hung:
        message += f", {hung} of them because the step hung"
    dead_letter_step(
        lease,
        Failure(
            code=of_step[-1].code,
            message=message,
            attempt_history=[
                {
                    "attempt": number,
                    "error_code": crash.code,
                    "error_message": (
                        f"the step hung in a process of worker {crash.worker_id}"
                        if crash.has_hung
                        else f"the process of worker {crash.worker_id} was lost"
                    ),
                    "timestamp": crash.at,
                    "retry_delay_ms": None,
                }
                for number, crash in enumerate(of_step, start=1)
            ],
        ),
    )


def redispatch(seen: Sequence[tuple[UUID, int]]) -> list[Due]:
    """Give waiting jobs a new wake-up, oldest first; `seen` lists id and dispatch number.

    A job that was claimed, released or woken in the meantime is left alone. With the new number, a
    lost entry that reappears is recognized as outdated.
    """
    if not seen:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            _REDISPATCH,
            {"ids": [job_id for job_id, _ in seen], "dispatch_nos": [no for _, no in seen]},
        )
        return [
            Due(job_id=job_id, step=Step(step), dispatch_no=dispatch_no)
            for job_id, step, dispatch_no in cursor.fetchall()
        ]


def _loaded(value: Any) -> list[dict[str, Any]]:
    return list(json.loads(value) if isinstance(value, str) else value or [])
