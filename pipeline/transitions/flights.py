"""Single flight: of all jobs of one owner with the same bytes, one extracts, and the others wait.

The leader never waits, so no two jobs wait for each other. A leader that is not running and has
begun no step for `OVERTAKEN_S` loses its place to the next job that asks. Lock order: job → flight
→ waiting jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from django.db import connection

from medproc.timing import scaled
from pipeline.core.states import CALLING_STEPS, Step
from pipeline.core.types import Due
from pipeline.transitions.holds import release, release_behind
from pipeline.transitions.leases import Lease
from pipeline.transitions.steps import Parking

OVERTAKEN_S = 600.0
"""Seconds without a begun step after which a leader that is not running is overtaken. A leader that
waits for a paused queue, an incident or a retry then blocks no other record."""
ASK_AGAIN_S = 30.0
"""Seconds after which a waiting job asks again; the end of the leader releases it earlier."""

_RECORD = """
SELECT f.owner, f.forced, f.sha256, EXISTS (
    SELECT 1 FROM processed_documents p
    WHERE p.document_hash = f.sha256 AND p.owner = f.owner AND p.step = %(step)s
      AND p.shell_file_id <> f.id AND (p.engine, p.model_version, p.prompt_version,
        p.schema_version, p.zones, p.input_mode, p.code_table_version, p.plan)
      = (%(engine)s, %(model_version)s, %(prompt_version)s, %(schema_version)s, %(zones)s,
        %(input_mode)s, %(code_table_version)s, %(plan)s))
FROM shell_files f WHERE f.id = %(shell_file)s
"""
# One row per owner and file: two jobs that board at once meet in the unique index, and the second
# one sees the first. A forced job takes a free place, and never another job's.
_BOARD = """
INSERT INTO extraction_flights AS e (id, owner, document_hash, job_id, renewed_at)
VALUES (gen_random_uuid(), %(owner)s, %(hash)s, %(job)s, clock_timestamp())
ON CONFLICT (owner, document_hash) DO UPDATE
SET job_id = EXCLUDED.job_id, renewed_at = EXCLUDED.renewed_at
WHERE e.job_id = EXCLUDED.job_id OR (NOT %(forced)s AND (
  NOT EXISTS (SELECT 1 FROM job_queue j
    WHERE j.id = e.job_id AND j.status IN ('pending', 'processing', 'parked'))
  OR (e.renewed_at < clock_timestamp() - make_interval(secs => %(overtaken)s)
    AND NOT EXISTS (SELECT 1 FROM job_queue j
      WHERE j.id = e.job_id AND j.status = 'processing'))))
RETURNING 1
"""
_LEADER = """
SELECT e.job_id, j.shell_file_id, clock_timestamp() + make_interval(secs => %(again)s)
FROM extraction_flights e JOIN job_queue j ON j.id = e.job_id
WHERE e.owner = %(owner)s AND e.document_hash = %(hash)s
"""


def board(
    lease: Lease, conditions: Mapping[str, str | bool], *, lacks_replies: bool = False
) -> Parking | None:
    """Make a job the leader of its file, or return how the job waits for the leader.

    Call this inside the fence, at the start of a step, and again if the step `lacks_replies`: the
    pass of an earlier record is complete, and that record had no reply to some prompts of this
    step. `conditions` are the columns of `processed_documents`. Returns None if the step can run:
    the results exist already, the job is the leader now, the record is forced, the record has no
    owner, or the step calls no provider.
    """
    if lease.step is not Step.PAGES and lease.step not in CALLING_STEPS:
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            _RECORD,
            {**conditions, "step": lease.step.value, "shell_file": lease.shell_file_id},
        )
        owner, forced, sha256, is_extracted = cursor.fetchone()
        if not owner or (is_extracted and not forced and not lacks_replies):
            return None
        key = {"owner": owner, "hash": sha256}
        cursor.execute(
            _BOARD,
            {**key, "job": lease.job_id, "forced": forced, "overtaken": scaled(OVERTAKEN_S)},
        )
        if forced or cursor.fetchone() is not None:
            return None
        cursor.execute(_LEADER, {**key, "again": scaled(ASK_AGAIN_S)})
        row = cursor.fetchone()
    if row is None:
        # The leader ended between the two statements. The job asks again at once.
        return board(lease, conditions, lacks_replies=lacks_replies)
    job_id, shell_file_id, until = row
    return Parking(reason=_waits_for(shell_file_id), until=until, behind=job_id)


def confirm_wait(lease: Lease, leader: UUID) -> list[Due]:
    """Release a job that has just parked behind a leader, if the leader has ended meanwhile.

    Call this after the job was parked, in the same transaction. The lock makes the end of the
    leader wait for this transaction, and the end then releases the parked job.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM extraction_flights WHERE job_id = %s FOR SHARE", [leader])
        if cursor.fetchone() is not None:
            return []
    return release([lease.job_id])


def land(job_id: UUID, shell_file_id: UUID) -> list[Due]:
    """End the flight of a job that has ended, and release the jobs that wait for it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM extraction_flights WHERE job_id = %s RETURNING owner, document_hash",
            [job_id],
        )
        row = cursor.fetchone()
    if row is None:
        return []
    owner, document_hash = row
    return release_behind(_waits_for(shell_file_id), owner, document_hash)


def _waits_for(shell_file_id: UUID) -> str:
    return f"record {shell_file_id} has the same content and is extracted first"
