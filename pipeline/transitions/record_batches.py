"""Batches of records: their start, their limit of running records, and their end with totals.

The row of a batch is the last row that a transaction locks. Its holder sees the present state of
every record of the batch.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
"""Seconds after which a batch whose submission was interrupted ends with the records it has."""

# `t` holds the totals of the batches in which every job has ended (HAVING). The batch rows are
# locked by the caller, so of two last records that end at once, one transaction sees both.
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

# One job per pass, because it is unknown which of the workers is idle. The rows of a pass are
# counted up to a limit, like the entries of its queue.
_NEXT = """
SELECT found.id, found.current_step, found.dispatch_no, (
  SELECT count(*) FROM (
    SELECT FROM job_queue w
    WHERE w.status = 'pending' AND w.current_step = found.current_step
      AND w.available_at <= clock_timestamp()
    ORDER BY w.size_class, w.priority DESC, w.available_at LIMIT %(limit)s) first)
FROM (
  SELECT DISTINCT ON (j.current_step) j.id, j.current_step, j.dispatch_no
  FROM job_queue j JOIN record_batches b ON b.id = j.record_batch_id
  WHERE j.record_batch_id = %(batch)s AND j.status = 'pending' AND j.id <> %(but)s
    AND j.available_at <= clock_timestamp()
    AND b.max_concurrent_tasks > (
      SELECT count(*) FROM job_queue r
      WHERE r.record_batch_id = %(batch)s AND r.status = 'processing')
  ORDER BY j.current_step, j.priority DESC, j.available_at) found
"""

_FREE_PLACES = """
SELECT b.id, greatest(0, b.max_concurrent_tasks - (
  SELECT count(*) FROM job_queue r WHERE r.record_batch_id = b.id AND r.status = 'processing'))
FROM record_batches b WHERE b.id = ANY(%s)
"""

COUNTED = 1_000
"""Waiting jobs of a pass that are counted at most."""


def open_record_batch(max_concurrent_tasks: int | None = None) -> UUID:
    """Open a batch for records that will be submitted."""
    given = {} if max_concurrent_tasks is None else {"max_concurrent_tasks": max_concurrent_tasks}
    batch_id: UUID = RecordBatch.objects.create(**given).id
    return batch_id


def close_record_batch(batch_id: UUID, records: int) -> None:
    """Note that all `records` were submitted; end the batch if all of them have ended.

    A batch without any submitted record is deleted.
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
    """Write the totals of batches whose records have all ended; return the number of batches.

    Without ids, check all open batches, to catch records that ended without settling their batch.
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
    """Return whether too many records of a batch run, including the claim of this transaction.

    Locks the batch row, so that of two simultaneous claims the second sees the first.
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


@dataclass(frozen=True, kw_only=True)
class NextOfBatch:
    """The best waiting job of a record batch in one pass."""

    due: Due
    waiting: int
    """The waiting jobs of the pass, of all record batches, up to `COUNTED`."""


def next_of_record_batch(batch_id: UUID, but: UUID) -> list[NextOfBatch]:
    """Return the jobs that can take the place of the job `but`, one per pass.

    The wake-ups of waiting records are spent while their batch is full. Call this after the commit
    by which `but` has left its place: a claim that still saw the batch full has ended then.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, {"batch": batch_id, "but": but, "limit": COUNTED})
        return [
            NextOfBatch(
                due=Due(
                    job_id=job_id, step=Step(step), dispatch_no=dispatch_no, is_sent_again=True
                ),
                waiting=waiting,
            )
            for job_id, step, dispatch_no, waiting in cursor.fetchall()
        ]


def free_places(batch_ids: Iterable[UUID]) -> dict[UUID, int]:
    """Return how many more records of each batch may run."""
    ids = list(batch_ids)
    if not ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_FREE_PLACES, [ids])
        return dict(cursor.fetchall())
