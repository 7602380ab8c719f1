"""What puts jobs back whose worker is gone, and counts the crash; the lease alone says who is gone.

Imports leases, steps, history, `cancelling`, states. Jobs are locked first, oldest first and never
waited for (`SKIP LOCKED`), then encounters, then batches and chunks; `lease_gen` is bumped before
anything else, so that whoever had the lease writes nothing more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from pipeline.core.errors import ErrorCode
from pipeline.core.states import JobStatus, Step
from pipeline.core.types import Due
from pipeline.transitions.cancellation import cancel_asked
from pipeline.transitions.history import noted_sql
from pipeline.transitions.in_flight import requeue_in_flight
from pipeline.transitions.leases import Lease
from pipeline.transitions.steps import Failure, dead_letter_step

CRASH_LIMIT = 3
"""Crashes of one step after which its job is dead (`design.md`  7)."""
TAKE_LIMIT = 100
"""Expired jobs that one transaction locks (`design.md`  3)."""


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """A job that was taken from a worker that is gone."""

    lease: Lease
    """Of the worker that is gone, but for `gen`, which is the new one."""
    crashes: int
    """Of this step, this one included."""
    heartbeat_at: datetime | None
    due: Due | None
    """The wake-up that is due; None for a job that has ended."""
    is_dead: bool
    """False with nothing due: an operator wanted it cancelled, and so it is."""


_LOCK_EXPIRED = """
SELECT j.id, s.id, j.worker_id, j.heartbeat_at, j.record_batch_id
FROM job_queue j JOIN ai_processing_sessions s ON s.shell_file_id = j.shell_file_id
WHERE j.status = 'processing' AND j.lease_expires_at <= clock_timestamp()
  AND (%(job)s::uuid IS NULL OR j.id = %(job)s)
ORDER BY j.lease_expires_at, j.id
LIMIT %(limit)s FOR NO KEY UPDATE OF j SKIP LOCKED
"""

CRASHED = "crashed"
"""The event of a job's history."""
_CRASHED = f"""jsonb_build_object('event', '{CRASHED}', 'step', j.current_step,
    'worker_id', j.worker_id, 'lease_gen', j.lease_gen, 'heartbeat_at', j.heartbeat_at,
    'lease_expired_at', j.lease_expires_at)"""

# A job that dies stays `processing` until `dead_letter_step` moves it, as it does a job that fails,
# with all who have to be told. One that an operator wants cancelled never dies.
_GOES_ON = "(j.crash_count + 1 < %(crashes)s OR j.cancel_requested_at IS NOT NULL)"
_TAKE = f"""
UPDATE job_queue j SET
  lease_gen = j.lease_gen + 1, crash_count = j.crash_count + 1,
  error_details = {noted_sql("j.error_details", _CRASHED)},
  status = CASE WHEN {_GOES_ON} THEN 'pending' ELSE j.status END,
  dispatch_no = j.dispatch_no + {_GOES_ON}::int,
  available_at = clock_timestamp(), step_deadline_at = NULL, incident_id = NULL,
  worker_id = CASE WHEN {_GOES_ON} THEN NULL ELSE j.worker_id END,
  lease_expires_at = CASE WHEN {_GOES_ON} THEN NULL ELSE j.lease_expires_at END,
  updated_at = clock_timestamp()
WHERE j.id = ANY(%(ids)s) AND j.status = 'processing'
RETURNING j.id, j.shell_file_id, j.current_step, j.lease_gen, j.dispatch_no, j.crash_count,
  j.status, j.error_details -> 'history', j.cancel_requested_at IS NOT NULL
"""  # noqa: S608 - constants of ours, values are parameters

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


def recover_expired(limit: int = TAKE_LIMIT, *, job_id: UUID | None = None) -> list[Recovered]:
    """Take one job, or jobs, whose lease has run out from their workers, longest overdue first.

    Each goes back in line with its crash counted and noted, at its third crash of one step it is
    dead, and where an operator has asked for that it is cancelled; retries are left alone. Three
    statements, and some for each one that has ended. Call it in a transaction of its own; what is
    `due` is enqueued by the caller, and of the dead ones the caller rolls up what they have cost.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK_EXPIRED, {"limit": limit, "job": job_id})
        expired = {row[0]: row[1:] for row in cursor.fetchall()}
        if not expired:
            return []
        cursor.execute(_TAKE, {"ids": list(expired), "crashes": CRASH_LIMIT})
        taken = {row[0]: row[1:] for row in cursor.fetchall()}
        requeue_in_flight([expired[job_id][0] for job_id in taken])
        return [_recovered(job_id, expired[job_id], taken[job_id]) for job_id in expired]


def _recovered(job_id: UUID, had: Sequence[Any], taken: Sequence[Any]) -> Recovered:
    session_id, worker_id, heartbeat_at, record_batch_id = had
    shell_file_id, current_step, lease_gen, dispatch_no, crashes, status, noted, wish = taken
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
        _dead_letter(lease, crashes, _loaded(noted))
    elif not (wish and cancel_asked(lease)):
        due = Due(job_id=job_id, step=lease.step, dispatch_no=dispatch_no)
    return Recovered(
        lease=lease, crashes=crashes, heartbeat_at=heartbeat_at, due=due, is_dead=is_dead
    )


def _dead_letter(lease: Lease, crashes: int, noted: list[dict[str, Any]]) -> None:
    of_step = [each for each in noted if each["event"] == CRASHED and each["step"] == lease.step][
        -crashes:
    ]
    dead_letter_step(
        lease,
        Failure(
            code=ErrorCode.WORKER_LOST,
            message=f"{crashes} workers were lost in this step, one after the other",
            attempt_history=[
                {
                    "attempt": number,
                    "error_code": ErrorCode.WORKER_LOST,
                    "error_message": f"worker {crash['worker_id']} was lost",
                    "timestamp": crash["at"],
                    "retry_delay_ms": None,
                }
                for number, crash in enumerate(of_step, start=1)
            ],
        ),
    )


def redispatch(seen: Sequence[tuple[UUID, int]]) -> list[Due]:
    """Give waiting jobs a new wake-up, each as it was seen: id and dispatch number; oldest first.

    One that was claimed, released or woken meanwhile is left alone. The new number makes an entry
    that was lost and comes back another one.
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
