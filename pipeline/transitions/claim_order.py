"""Who is next: the order of the waiting jobs, as SQL that the claim and its like are built from.

Imports states. Priority first, then size class, raised by the wait, then the wait. Of each class
only the first few rows are read, so that a claim costs the same however many rows wait or have
ended; no row is locked but the one that is taken.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from medproc.timing import scaled
from pipeline.core.states import Step

AGEING_S = 300
"""A waiting job is treated as one size class smaller for each five minutes that it has waited, so
that a stream of small records cannot hold a large one back for ever (`design.md`  4)."""
CANDIDATES = 64
"""Rows of each class that a claim looks at; more than workers ever claim in the same moment."""
SETTLED_S = 1.0
"""Work that waits for so long found no idle worker."""
POOLS: dict[Step, tuple[Step, ...]] = {
    step: (Step.PAGES,) if step is Step.PAGES else tuple(s for s in Step if s is not Step.PAGES)
    for step in Step
}
"""The passes that a step's workers serve beside it: what waits for one of them waits for all."""

_FULL_BATCHES = """ARRAY(
  SELECT r.record_batch_id FROM job_queue r JOIN record_batches b ON b.id = r.record_batch_id
  WHERE r.status = 'processing' AND r.record_batch_id IS NOT NULL
  GROUP BY r.record_batch_id, b.max_concurrent_tasks HAVING count(*) >= b.max_concurrent_tasks)"""
_PAUSED = "ARRAY(SELECT queue FROM pauses WHERE ended_at IS NULL AND queue IS NOT NULL)"


def _claimable(row: str) -> str:
    return f"""{row}.status = 'pending' AND {row}.available_at <= clock_timestamp()
      AND ({row}.record_batch_id IS NULL OR {row}.record_batch_id <> ALL({_FULL_BATCHES}))"""


def _aged(row: str) -> str:
    return (
        f"greatest(0, {row}.size_class"
        f" - floor(extract(epoch FROM clock_timestamp() - {row}.available_at) / %(ageing)s))"
    )


# One that gave way is not taken again before what it gave way to, in whatever pass that waits.
_NOT_PREEMPTED = f"""(w.preempted_at IS NULL OR NOT EXISTS (
        SELECT 1 FROM job_queue s
        WHERE {_claimable("s")} AND s.current_step = ANY(%(pool)s)
          AND s.size_class < {_aged("w")} AND s.priority >= w.priority
          AND s.current_step <> ALL({_PAUSED})))"""  # noqa: S608 - constants of ours

BEST_WAITING = f"""
  SELECT q.id FROM job_queue q
  WHERE q.status = 'pending' AND q.id = ANY(ARRAY(
    SELECT w.id FROM generate_series(0, 2) AS size CROSS JOIN LATERAL (
      SELECT w.id FROM job_queue w
      WHERE {_claimable("w")} AND w.current_step = %(step)s AND w.size_class = size
        AND {_NOT_PREEMPTED}
      ORDER BY w.priority DESC, w.available_at LIMIT {CANDIDATES}
    ) w))
  ORDER BY q.priority DESC, {_aged("q")}, q.available_at
  LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED"""  # noqa: S608 - constants of ours, values are parameters
"""The row that a claim takes."""

BEST_PROBE = """
  SELECT q.id FROM job_queue q
  WHERE q.status = 'pending' AND q.current_step = %(step)s AND q.available_at <= clock_timestamp()
    AND q.incident_id = %(probe_of)s
  ORDER BY q.created_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED"""
"""The row that a claim takes while an incident is open: its probe."""

FIRST_WAITING = f"""
  SELECT o.step FROM unnest(%(steps)s::text[]) WITH ORDINALITY AS o(step, place)
  WHERE o.step <> ALL({_PAUSED}) AND EXISTS (
    SELECT 1 FROM job_queue w
    WHERE {_claimable("w")} AND w.current_step = o.step AND {_NOT_PREEMPTED})
  ORDER BY o.place LIMIT 1"""  # noqa: S608 - constants of ours, values are parameters
"""The first of some passes for which something waits."""

# As many give way as small ones wait: the largest first, of one size that which has run longest.
_SHOULD_PREEMPT = f"""
WITH me AS (
  SELECT * FROM job_queue WHERE id = %(job)s AND status = 'processing' AND size_class > 0
)
SELECT (
  SELECT count(*) FROM (
    SELECT 1 FROM job_queue s
    WHERE {_claimable("s")} AND s.current_step = ANY(%(pool)s) AND s.size_class < me.size_class
      AND s.priority >= me.priority AND s.current_step <> ALL({_PAUSED})
      AND s.available_at <= clock_timestamp() - make_interval(secs => %(settled)s)
    LIMIT 1000) AS waiting
) > (
  SELECT count(*) FROM job_queue r
  WHERE r.status = 'processing' AND r.current_step = ANY(%(pool)s) AND r.id <> me.id
    AND r.priority <= me.priority
    AND (-r.size_class, r.step_started_at, r.id) < (-me.size_class, me.step_started_at, me.id)
)
FROM me
"""  # noqa: S608 - constants of ours, values are parameters


def pool_of(step: Step) -> list[str]:
    """Return the passes that share their workers with this one."""
    return [each.value for each in POOLS[step]]


def should_preempt(job_id: UUID, step: Step) -> bool:
    """Tell whether a running step should make room: smaller work waits that no worker is free for.

    Never for a small record, nor for work of lower priority.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _SHOULD_PREEMPT, {"job": job_id, "pool": pool_of(step), "settled": scaled(SETTLED_S)}
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def parameters(step: Step) -> dict[str, Any]:
    """Return what BEST_WAITING and FIRST_WAITING ask for."""
    return {"step": step.value, "pool": pool_of(step), "ageing": scaled(AGEING_S)}


def preempt_after_s() -> float:
    """Return after how long a large step may have to give way, in seconds."""
    return scaled(settings.PREEMPT_AFTER_S)
