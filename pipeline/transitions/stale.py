"""Batches and chunks that nobody works on any more, put back by age: the net under recovery.

Imports models' tables and states. A row is stale only where its job's lease has run out, or where
the job is not running at all; a slow row of a live worker is left alone, however old (`spec.md`
point 24). A lost lease is `recovery`'s to take; here jobs that do not run are locked first, then
encounters, then batches.
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
"""Age of a stale row (`spec.md` point 24)."""
JOBS_LIMIT = 100
"""Jobs that one transaction locks (`design.md` §3)."""


@dataclass(frozen=True, kw_only=True)
class Stale:
    """A row that has been `processing` for long, and the evidence that nobody works on it."""

    kind: str
    """The noun of the registry, as `batch`."""
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
    """Owner of the job; None where it has none."""
    lease_gen: int
    heartbeat_age_s: float | None
    """Seconds since the owner last renewed its lease."""
    lease_expired_s: float | None
    """Seconds since the lease ran out; None where there is none."""


_IDLE = "(j.status <> 'processing' OR j.lease_expires_at <= clock_timestamp())"


@composed
def _find_sql(tables: Sequence[WorkTable]) -> str:
    # A partial index on `started_at` of each table answers its part of the union.
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
    """Return stale rows of one job, or of at most so many, oldest first; changes nothing."""
    with connection.cursor() as cursor:
        cursor.execute(_find_sql(), {"age": older_than_s, "jobs": jobs, "job": job_id})
        return [_stale(*row) for row in cursor.fetchall()]


def reset_stale(found: Sequence[Stale]) -> list[Stale]:
    """Put stale rows back to `pending` whose job does not run, with their attempts as they are.

    Returns those of them that nobody works on any more, whoever put them back.
    """
    if not found:
        return []
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK, {"jobs": sorted({row.job_id for row in found})})
        idle = {job_id for (job_id,) in cursor.fetchall()}
        left: set[UUID] = set()
        for table in WORK_TABLES.values():
            of_kind = [row for row in found if row.kind == table.noun]
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
    return [row for row in found if row.id not in left]


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
