"""Who owns a job: claim, fence, heartbeat.

Imports `holds` and states. The database's clock decides (`clock_timestamp()`, never `now()`, which
stands still within a transaction); `lease_gen` is bumped at each claim and carried by every write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from medproc.timing import scaled
from pipeline.errors import LeaseLostError
from pipeline.states import WORKFLOW_STEP, Step
from pipeline.transitions.holds import AGEING_S, BEST_WAITING, hold_on, park_waiting
from pipeline.types import ProviderModel


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right to write for one step of one job, as long as `gen` is the row's `lease_gen`."""

    job_id: UUID
    shell_file_id: UUID
    session_id: UUID
    step: Step
    gen: int
    worker_id: str

    def log_context(self) -> dict[str, str | int]:
        """Return what may be logged."""
        return {"job": str(self.job_id), "step": self.step.value, "lease_gen": self.gen}


_CLAIM = f"""
UPDATE job_queue j SET
  status = 'processing', lease_gen = j.lease_gen + 1, worker_id = %(worker)s,
  heartbeat_at = clock_timestamp(),
  lease_expires_at = clock_timestamp() + make_interval(secs => %(lease)s),
  step_started_at = clock_timestamp(), started_at = coalesce(j.started_at, clock_timestamp()),
  parked_until = NULL, park_reason = NULL, completed_at = NULL, error_code = NULL,
  updated_at = clock_timestamp()
FROM ai_processing_sessions s
WHERE s.shell_file_id = j.shell_file_id AND j.status = 'pending' AND j.id = ({BEST_WAITING})
RETURNING j.id, j.shell_file_id, s.id, j.lease_gen
"""  # noqa: S608 - a constant of ours, values are parameters

# What a dead worker left in flight is asked again; what it had committed stays, failures too: new
# attempts come from a retry alone.
_RECLAIM = """
WITH batches AS (
  UPDATE pass1_batch_results SET status = 'pending'
  WHERE processing_session_id = %(session)s AND status = 'processing'
  RETURNING 1
), chunks AS (
  UPDATE pass05_chunk_results SET status = 'pending'
  WHERE processing_session_id = %(session)s AND status = 'processing'
  RETURNING 1
), encounters AS (
  UPDATE pass1_encounter_results SET status = 'pending', updated_at = clock_timestamp()
  WHERE processing_session_id = %(session)s AND status = 'processing' RETURNING 1
), summary AS (
  UPDATE ai_processing_summary
  SET processing_started_at = coalesce(processing_started_at, clock_timestamp()),
    processing_completed_at = NULL
  WHERE shell_file_id = %(shell_file)s
)
UPDATE ai_processing_sessions SET session_status = 'processing', workflow_step = %(workflow)s,
  {pass_column} processing_completed_at = NULL, total_processing_time = NULL,
  updated_at = clock_timestamp()
WHERE id = %(session)s
"""


def claim(step: Step, worker_id: str, serving: ProviderModel | None = None) -> Lease | None:
    """Claim the best waiting job of a step: priority, size class raised by the wait, then age.

    Returns None where nothing waits. In the same transaction the job's `processing` encounters,
    batches and chunks go back to `pending` (`spec.md` point 24). Where the queue, or the provider
    and model that this worker is `serving`, is held by a pause or an incident, the best job is
    parked instead; only the incident's own probe is claimed.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        hold = hold_on(cursor, step, serving)
        if hold is not None and hold.incident_id is None:
            park_waiting(cursor, step, hold)
            return None
        cursor.execute(
            _CLAIM,
            {
                "worker": worker_id,
                "lease": scaled(settings.LEASE_S),
                "step": step.value,
                "ageing": scaled(AGEING_S),
                "probe_of": hold.incident_id if hold else None,
            },
        )
        row = cursor.fetchone()
        if row is None:
            if hold is not None:
                park_waiting(cursor, step, hold)
            return None
        lease = Lease(
            job_id=row[0],
            shell_file_id=row[1],
            session_id=row[2],
            step=step,
            gen=row[3],
            worker_id=worker_id,
        )
        column = "" if step is Step.PAGES else f"{step.value}_status = 'processing',"
        cursor.execute(
            _RECLAIM.format(pass_column=column),
            {
                "session": lease.session_id,
                "shell_file": lease.shell_file_id,
                "workflow": WORKFLOW_STEP[step].value,
            },
        )
    return lease


@contextmanager
def fenced(lease: Lease) -> Iterator[None]:
    """Open the transaction of one flush; its first statement is the fence.

    Raises LeaseLostError, with nothing written, where the job belongs to somebody else by now.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM job_queue WHERE id = %s AND lease_gen = %s"
                " AND status = 'processing' FOR NO KEY UPDATE",
                [lease.job_id, lease.gen],
            )
            if cursor.fetchone() is None:
                raise LeaseLostError("the lease of this step was taken; nothing more is written")
        yield


def heartbeat(lease: Lease) -> bool:
    """Renew the lease; return whether an operator wants the job cancelled.

    Raises LeaseLostError where it is gone or has run out already.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE job_queue SET heartbeat_at = clock_timestamp(),"
            " lease_expires_at = clock_timestamp() + make_interval(secs => %s)"
            " WHERE id = %s AND lease_gen = %s AND status = 'processing'"
            " AND lease_expires_at > clock_timestamp() RETURNING cancel_requested_at IS NOT NULL",
            [scaled(settings.LEASE_S), lease.job_id, lease.gen],
        )
        row = cursor.fetchone()
        if row is None:
            raise LeaseLostError("the lease of this step ran out; nothing more is written")
        return bool(row[0])


def set_deadline(lease: Lease, seconds: float) -> None:
    """Note until when the step may take, for whoever looks at the job; the fan-out enforces it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE job_queue SET step_deadline_at = clock_timestamp() + make_interval(secs => %s)"
            " WHERE id = %s AND lease_gen = %s",
            [seconds, lease.job_id, lease.gen],
        )
