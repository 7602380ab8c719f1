"""What is in flight of a step, returned to `pending`: the one place that does it.

Imports nothing of the project. Whoever calls it holds the lock of the job, so that its encounters,
batches and chunks are nobody else's for the moment.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db import connection

_REQUEUE = """
WITH encounters AS (
  UPDATE pass1_encounter_results SET status = 'pending', updated_at = clock_timestamp()
  WHERE processing_session_id = ANY(%(sessions)s) AND status = 'processing'
), batches AS (
  UPDATE pass1_batch_results SET status = 'pending'
  WHERE processing_session_id = ANY(%(sessions)s) AND status = 'processing'
)
UPDATE pass05_chunk_results SET status = 'pending'
WHERE processing_session_id = ANY(%(sessions)s) AND status = 'processing'
"""


def requeue_in_flight(session_ids: Collection[UUID]) -> None:
    """Return what is in flight of these records to `pending`; what has succeeded stays."""
    with connection.cursor() as cursor:
        cursor.execute(_REQUEUE, {"sessions": list(session_ids)})
