"""Stale batches and chunks, which no worker processes any more, reset by age as a safety net.

A row is stale only if its job's lease has expired, or if the job is not running. A slow row of a
live worker is never touched, however old (requirement 24). `recovery` handles expired leases. This
module locks jobs that are not running first, then encounters, then batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from pipeline.core.states import JobStatus, Step
from pipeline.models.work_tables import WORK_TABLES, WorkTable, composed

STALE_S = 600.0
"""Age of a stale row in seconds (requirement 24)."""
JOBS_LIMIT = 100
"""Jobs that one transaction locks."""


@dataclass(frozen=True, kw_only=True)
class Stale:
    """A row that has been `processing` for long, and the evidence that no worker processes it."""

    kind: str
    """The noun of the registry, such as `batch`."""
    id: UUID
    number: int
    """0-based."""
    attempt_count: int
    started_at: datetime
    processing_s: float
    job_id: UUID
    job_status: JobStatus
    step: Step
    worker_id: str | None
    """The worker that holds the job's lease; None without a lease."""
    lease_gen: int
    heartbeat_age_s: float | None
    """Seconds since that worker's last heartbeat."""
    lease_expired_s: float | None
    """Seconds since the lease expired; None without a lease."""


_IDLE = "(j.status <> 'processing' OR j.lease_expires_at <= clock_timestamp())"


@composed
def _find_sql(tables: Sequence[WorkTable]) -> str:
    # `work` is the old rows in `processing`; a partial index on `started_at` of each table serves
    # its part of the union. `jobs` is the newest job of each of their records, if that job is idle.
    # MATERIALIZED, so that LIMIT applies to jobs before the join with their rows.
    work = "\n  UNION ALL\n".join(
        f"""  SELECT '{table.noun}' AS kind, id, {table.index} AS number, attempt_count, started_at,
    processing_session_id FROM {table.table}
  WHERE status = 'processing' AND started_at < clock_timestamp() - make_interval(secs => %(age)s)"""  # noqa: S608 - names come from the models
        for table in tables
    )
    return f"""
WITH work AS (
{work}
), jobs AS MATERIALIZED (
  SELECT j.* FROM (
    SELECT DISTINCT ON (q.shell_file_id) q.*, s.id AS session_id
    FROM job_queue q JOIN ai_processing_sessions s ON s.shell_file_id = q.shell_file_id
    WHERE s.id IN (SELECT processing_session_id FROM work)
      AND (%(job)s::uuid IS NULL OR q.id = %(job)s)
    ORDER BY q.shell_file_id, q.created_at DESC
  ) j WHERE {_IDLE} ORDER BY j.created_at, j.id LIMIT %(jobs)s
)
SELECT w.kind, w.id, w.number, w.attempt_count, w.started_at,
  extract(epoch FROM clock_timestamp() - w.started_at)::float,
  j.id, j.status, j.current_step, j.worker_id, j.lease_gen,
  extract(epoch FROM clock_timestamp() - j.heartbeat_at)::float,
  extract(epoch FROM clock_timestamp() - j.lease_expires_at)::float
FROM work w JOIN jobs j ON j.session_id = w.processing_session_id
ORDER BY w.started_at, w.id
"""  # noqa: S608 - names come from the models, values are parameters


# Locks the idle jobs, so that no worker can claim a job while its rows are reset. SKIP LOCKED
# passes over a job that a worker is claiming right now; the claim resets its rows anyway.
_LOCK = """
SELECT j.id FROM job_queue j WHERE j.id = ANY(%(jobs)s) AND j.status <> 'processing'
ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
"""

_PARENTS = """
UPDATE {parents} SET status = 'pending', updated_at = clock_timestamp()
WHERE status = 'processing' AND id IN (SELECT {column}_id FROM {table} WHERE id = ANY(%(ids)s))
"""
_WORK = """
UPDATE {table} SET status = 'pending'
WHERE id = ANY(%(ids)s) AND status = 'processing'
"""
_LEFT = "SELECT id FROM {table} WHERE id = ANY(%(ids)s) AND status = 'processing'"


def find_stale(
    older_than_s: float, jobs: int = JOBS_LIMIT, *, job_id: UUID | None = None
) -> list[Stale]:
    """Return stale rows of one job, or of at most `jobs` jobs, oldest first; changes nothing."""
    with connection.cursor() as cursor:
        cursor.execute(_find_sql(), {"age": older_than_s, "jobs": jobs, "job": job_id})
        return [_stale(*row) for row in cursor.fetchall()]


def reset_stale(stale_rows: Sequence[Stale]) -> list[Stale]:
    """Reset the stale rows of jobs that are not running to `pending`, and keep their attempts.

    Returns the rows that are no longer `processing`, including rows reset by other processes.
    """
    if not stale_rows:
        return []
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK, {"jobs": sorted({row.job_id for row in stale_rows})})
        idle = {job_id for (job_id,) in cursor.fetchall()}
        left: set[UUID] = set()
        for table in WORK_TABLES.values():
            of_kind = [row for row in stale_rows if row.kind == table.noun]
            if not of_kind:
                continue
            ids = sorted(row.id for row in of_kind if row.job_id in idle)
            if parent := table.encounter_parent:
                cursor.execute(
                    _PARENTS.format(parents=parent.table, column=parent.field, table=table.table),
                    {"ids": ids},
                )
            cursor.execute(_WORK.format(table=table.table), {"ids": ids})
            cursor.execute(_LEFT.format(table=table.table), {"ids": [row.id for row in of_kind]})
            left |= {row_id for (row_id,) in cursor.fetchall()}
    return [row for row in stale_rows if row.id not in left]


def _stale(*columns: Any) -> Stale:
    kind, row_id, number, attempts, started_at, age, job_id, status, step, *lease = columns
    worker_id, lease_gen, heartbeat_age, expired = lease
    return Stale(
        kind=kind,
        id=row_id,
        number=number,
        attempt_count=attempts,
        started_at=started_at,
        processing_s=round(age, 1),
        job_id=job_id,
        job_status=JobStatus(status),
        step=Step(step),
        worker_id=worker_id,
        lease_gen=lease_gen,
        heartbeat_age_s=None if heartbeat_age is None else round(heartbeat_age, 1),
        lease_expired_s=None if expired is None else round(expired, 1),
    )
