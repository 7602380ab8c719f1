"""A batch of records: how it begins, who of it may run, and its end with all totals.

Imports models and states. The row of a batch is the last that a transaction locks; whoever holds it
sees every record of the batch as it stands.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from medproc.timing import scaled
from pipeline.core.states import JOB_TERMINAL, Step
from pipeline.core.types import Due
from pipeline.models import RecordBatch
from pipeline.models.fields import ClockTimestamp

logger = logging.getLogger(__name__)

ABANDONED_S = 3600.0
"""A batch whose submission was broken off ends with the records that it has, after an hour."""

_SETTLE = """
UPDATE record_batches b SET
  status = CASE WHEN t.completed = t.total THEN 'completed' ELSE 'failed' END,
  records_total = t.total, records_completed = t.completed, records_failed = t.failed,
  records_cancelled = t.cancelled, pages_total = t.pages, encounters_total = t.encounters,
  entities_total = t.entities, total_tokens_used = t.tokens, total_cost_usd = t.cost,
  completed_at = clock_timestamp()
FROM (
  SELECT j.record_batch_id AS id, count(*) AS total,
    count(*) FILTER (WHERE j.status = 'completed') AS completed,
    count(*) FILTER (WHERE j.status IN ('failed', 'dead')) AS failed,
    count(*) FILTER (WHERE j.status = 'cancelled') AS cancelled,
    sum(coalesce(s.page_count, s.pages_read)) AS pages,
    sum((SELECT count(*) FROM healthcare_encounters e WHERE e.shell_file_id = s.id)) AS encounters,
    sum((SELECT coalesce(sum(r.total_entities_detected), 0) FROM pass1_encounter_results r
      WHERE r.shell_file_id = s.id AND r.status = 'succeeded')) AS entities,
    sum(coalesce(m.total_tokens_used, 0)) AS tokens,
    sum(coalesce(m.total_cost_usd, 0)) AS cost
  FROM job_queue j JOIN shell_files s ON s.id = j.shell_file_id
  LEFT JOIN ai_processing_summary m ON m.shell_file_id = s.id
  WHERE j.record_batch_id = ANY(%(ids)s)
  GROUP BY j.record_batch_id HAVING bool_and(j.status = ANY(%(terminal)s))
) t
WHERE b.id = t.id AND (b.submitted_at IS NOT NULL
  OR b.created_at < clock_timestamp() - make_interval(secs => %(abandoned)s))
RETURNING b.id
"""

# One row for each pass: which of its workers is idle, nobody knows.
_NEXT = """
SELECT DISTINCT ON (j.current_step) j.id, j.current_step, j.dispatch_no
FROM job_queue j JOIN record_batches b ON b.id = j.record_batch_id
WHERE j.record_batch_id = %(batch)s AND j.status = 'pending' AND j.id <> %(but)s
  AND j.available_at <= clock_timestamp()
  AND b.max_concurrent_tasks <= 1 + (
    SELECT count(*) FROM job_queue r
    WHERE r.record_batch_id = %(batch)s AND r.status = 'processing')
ORDER BY j.current_step, j.priority DESC, j.available_at
"""


def open_record_batch(max_concurrent_tasks: int | None = None) -> UUID:
    """Begin a batch of records that are about to be submitted."""
    given = {} if max_concurrent_tasks is None else {"max_concurrent_tasks": max_concurrent_tasks}
    batch_id: UUID = RecordBatch.objects.create(**given).id
    return batch_id


def close_record_batch(batch_id: UUID, records: int) -> None:
    """Note that so many records were submitted and no more come; ends it where all have ended.

    A batch of which nothing could be submitted is taken back.
    """
    if records == 0:
        RecordBatch.objects.filter(id=batch_id).delete()
        return
    with transaction.atomic():
        RecordBatch.objects.filter(id=batch_id).update(
            submitted_at=ClockTimestamp(), records_total=records
        )
        settle_record_batches([batch_id])


def settle_record_batches(batch_ids: Sequence[UUID] | None = None) -> int:
    """Write the totals of batches whose records have all ended; count them.

    Without ids: of all that are open, for whatever ended a record and did not say so.
    """
    batches = RecordBatch.objects.select_for_update(no_key=True).order_by("id")
    with transaction.atomic(), connection.cursor() as cursor:
        if batch_ids is None:
            open_ones = batches.filter(status="processing")
            ids = list(open_ones.values_list("id", flat=True))
        else:
            ids = list(batches.filter(id__in=batch_ids).values_list("id", flat=True))
        if not ids:
            return 0
        cursor.execute(
            _SETTLE,
            {
                "ids": ids,
                "terminal": [status.value for status in JOB_TERMINAL],
                "abandoned": scaled(ABANDONED_S),
            },
        )
        settled = [str(row[0]) for row in cursor.fetchall()]
    for settled_id in settled:
        logger.info(
            "batch_ended batch=%s", settled_id, extra={"action": "batch_ended", "batch": settled_id}
        )
    return len(settled)


def is_over_full(cursor: CursorWrapper, batch_id: UUID) -> bool:
    """Tell whether more records of a batch run than may, the claim of this transaction included.

    Locks the batch: of two claims at once the second sees the first.
    """
    cursor.execute(
        "SELECT max_concurrent_tasks FROM record_batches WHERE id = %s FOR NO KEY UPDATE",
        [batch_id],
    )
    (most,) = cursor.fetchone()
    cursor.execute(
        "SELECT count(*) FROM job_queue WHERE record_batch_id = %s AND status = 'processing'",
        [batch_id],
    )
    (running,) = cursor.fetchone()
    return bool(running > most)


def next_of_record_batch(batch_id: UUID, but: UUID) -> list[Due]:
    """Return what to wake when a record of a full batch has made room for another.

    The wake-ups of those that had to wait were spent while they could not be claimed.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, {"batch": batch_id, "but": but})
        return [
            Due(job_id=job_id, step=Step(step), dispatch_no=dispatch_no)
            for job_id, step, dispatch_no in cursor.fetchall()
        ]
