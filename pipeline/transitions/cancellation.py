"""The cancellation of a job: at once while the job waits, by its own step while the job runs.

A running step reads the request with its heartbeat, starts no more calls, and keeps what
succeeds. The transaction that ends the step then cancels the job.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from pipeline.core.errors import ErrorCode
from pipeline.core.states import JobStatus, Step
from pipeline.transitions.failure_list import lost_work
from pipeline.transitions.history import as_json, noted_sql
from pipeline.transitions.in_flight import requeue_in_flight
from pipeline.transitions.leases import Lease
from pipeline.transitions.run_time import RUN_UNTIL_LOST

_IS_HELD = "(j.status = 'processing' AND j.lease_expires_at > clock_timestamp())"
_CANCELLED = """status = 'cancelled', completed_at = clock_timestamp(), error_code = 'CANCELLED',
  last_error = 'cancelled by an operator', worker_id = NULL, lease_expires_at = NULL,
  step_deadline_at = NULL, parked_until = NULL, park_reason = NULL, incident_id = NULL,
  pause_id = NULL, updated_at = clock_timestamp()"""
# A job with an expired lease belongs to the first process that takes the job; here the operator.
# The higher lease_gen fences off the old worker.
_CANCEL = f"""
UPDATE job_queue j SET lease_gen = j.lease_gen + (j.status = 'processing')::int,
  cancel_requested_at = clock_timestamp(), {RUN_UNTIL_LOST},
  error_details = {noted_sql("j.error_details", "%(entry)s")}, {_CANCELLED}
WHERE j.id = %(job)s AND j.status IN ('pending', 'parked', 'processing') AND NOT {_IS_HELD}
RETURNING j.shell_file_id, j.current_step
"""  # noqa: S608 - constants of ours, values are parameters
# A job with a live lease is only asked: its worker alone may end the step.
_ASK = f"""
UPDATE job_queue j SET cancel_requested_at = clock_timestamp(),
  error_details = {noted_sql("j.error_details", "%(entry)s")}, updated_at = clock_timestamp()
WHERE j.id = %(job)s AND {_IS_HELD} AND j.cancel_requested_at IS NULL
"""  # noqa: S608 - constants of ours, values are parameters
# Runs after the end of a step. A job that completed or failed meanwhile does not match.
_CANCEL_ASKED = f"""
UPDATE job_queue j SET {_CANCELLED}
WHERE j.id = %(job)s AND j.status IN ('pending', 'parked') AND j.cancel_requested_at IS NOT NULL
RETURNING j.shell_file_id, j.current_step
"""  # noqa: S608 - constants of ours, values are parameters
# `discovery` and `summary` are data-modifying CTEs, so that all rows of a record change in one
# statement. The job's row is locked already, so no worker of this record writes at the same time.
_CLOSE = """
WITH discovery AS (
  UPDATE pass05_progressive_sessions SET status = 'pending'
  WHERE shell_file_id = %(shell_file)s AND status = 'processing'
), summary AS (
  UPDATE ai_processing_summary SET processing_status = 'failed', overall_success = false,
    failure_stage = %(step)s, error_code = 'CANCELLED', failure_encounter_id = NULL,
    failure_batch_index = NULL, error_drill_down = jsonb_build_object('failures', %(lost)s::jsonb),
    processing_completed_at = clock_timestamp()
  WHERE shell_file_id = %(shell_file)s
)
UPDATE ai_processing_sessions SET session_status = 'cancelled', {pass_column}
  failure_pass = %(step)s, error_code = 'CANCELLED', error_message = 'cancelled by an operator',
  failure_encounter_id = NULL, error_context = jsonb_build_object(
    'final_underlying_error', 'CANCELLED', 'failures', %(lost)s::jsonb),
  processing_completed_at = clock_timestamp(),
  updated_at = clock_timestamp()
WHERE shell_file_id = %(shell_file)s
RETURNING id
"""


def cancel(job_id: UUID, *, entry: Mapping[str, Any]) -> JobStatus | None:
    """Cancel a waiting job, or ask its running step to stop; add `entry` to the history once.

    Returns `cancelled` if the job has ended, and `processing` if its step was asked now. Returns
    None if the job is in no such state, or if the step was asked before.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        parameters: dict[str, Any] = {"job": job_id, "entry": as_json(entry)}
        cursor.execute(_CANCEL, parameters)
        row = cursor.fetchone()
        if row is not None:
            _close(cursor, *row)
            return JobStatus.CANCELLED
        cursor.execute(_ASK, parameters)
        return JobStatus.PROCESSING if cursor.rowcount == 1 else None


def cancel_asked(lease: Lease) -> bool:
    """Cancel the job of a step that has just returned the job, if an operator asked for that.

    Call this in the transaction that ends the step. The request takes precedence over parking and
    requeueing. A job that has completed or failed stays so.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CANCEL_ASKED, {"job": lease.job_id})
        row = cursor.fetchone()
        if row is None:
            return False
        _close(cursor, *row)
    return True


def _close(cursor: CursorWrapper, shell_file_id: UUID, step: str) -> None:
    column = f"{step}_status = 'pending'," if step != Step.PAGES else ""
    lost = lost_work(shell_file_id, Step(step), ErrorCode.CANCELLED)
    cursor.execute(
        _CLOSE.format(pass_column=column),
        {"shell_file": shell_file_id, "step": step, "lost": json.dumps(lost.entries)},
    )
    requeue_in_flight([session_id for (session_id,) in cursor.fetchall()])
