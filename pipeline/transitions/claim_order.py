"""The order of the waiting jobs, as SQL from which the claim and related statements are built.

Jobs are ordered by priority, then by size class lowered by the waiting time, then by the waiting
time. Only the first rows of each class are read, so a claim costs the same for any number of
waiting or ended jobs. Only the claimed row is locked. A job whose step hung comes last.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from medproc.timing import scaled
from pipeline.core.states import Step

AGEING_S = 300
"""Seconds of waiting after which a job is treated as one size class smaller. So a stream of small
records cannot keep a large record waiting without end."""
CANDIDATES = 64
"""Rows of each class that a claim reads; more than the workers that claim at the same moment."""
SETTLED_S = 1.0
"""Seconds of waiting after which a job has evidently found no idle worker."""
POOLS: dict[Step, tuple[Step, ...]] = {
    step: (Step.PAGES,) if step is Step.PAGES else tuple(s for s in Step if s is not Step.PAGES)
    for step in Step
}
"""The passes that the workers of a step also serve; waiting work of one pass concerns all."""

# Record batches that already run as many records as allowed. ARRAY(SELECT …) is evaluated once per
# statement; a correlated subquery would be evaluated for each waiting row. This look takes no lock,
# so two claims can both see the last free place; `record_batches.is_over_full` decides then.
_FULL_BATCHES = """ARRAY(
  SELECT r.record_batch_id FROM job_queue r JOIN record_batches b ON b.id = r.record_batch_id
  WHERE r.status = 'processing' AND r.record_batch_id IS NOT NULL
  GROUP BY r.record_batch_id, b.max_concurrent_tasks HAVING count(*) >= b.max_concurrent_tasks)"""
# Queues that an operator has paused: their jobs are never claimed, so no job has to wait for them.
_PAUSED = "ARRAY(SELECT queue FROM pauses WHERE ended_at IS NULL AND queue IS NOT NULL)"


# A job that hung (h) runs in one of the passes that share the workers.
_HUNG_RUNS = """EXISTS (SELECT 1 FROM job_queue h
        WHERE h.status = 'processing' AND h.hung_at IS NOT NULL
          AND h.current_step = ANY(%(pool)s))"""


# clock_timestamp() instead of now(), which is the start of the transaction and can be too early.
def _due(row: str) -> str:
    return f"""{row}.status = 'pending' AND {row}.available_at <= clock_timestamp()
      AND ({row}.record_batch_id IS NULL OR {row}.record_batch_id <> ALL({_FULL_BATCHES}))"""


def _healthy(row: str) -> str:
    return f"{_due(row)} AND {row}.hung_at IS NULL"


def _aged(row: str) -> str:
    return (
        f"greatest(0, {row}.size_class"
        f" - floor(extract(epoch FROM clock_timestamp() - {row}.available_at) / %(ageing)s))"
    )


# A preempted job (w) is not claimed before the smaller job (s) for which it was preempted, in any
# pass of the pool. Otherwise its worker would claim the same job again at once.
_NOT_PREEMPTED = f"""(w.preempted_at IS NULL OR NOT EXISTS (
        SELECT 1 FROM job_queue s
        WHERE {_healthy("s")} AND s.current_step = ANY(%(pool)s)
          AND s.size_class < {_aged("w")} AND s.priority >= w.priority
          AND s.current_step <> ALL({_PAUSED})))"""  # noqa: S608 - constants of ours


# The inner SELECT reads the first rows of each size class from the partial index of waiting jobs.
# It is an ARRAY, and the outer query repeats `status = 'pending'`, so that the planner looks the
# rows up by key and checks a row again after locking it. SKIP LOCKED passes over rows that other
# workers are claiming; NO KEY, because rows that reference the job must not wait for the claim.
def _best(claimable: str) -> str:
    return f"""
  SELECT q.id FROM job_queue q
  WHERE q.status = 'pending' AND q.id = ANY(ARRAY(
    SELECT w.id FROM generate_series(0, 2) AS size CROSS JOIN LATERAL (
      SELECT w.id FROM job_queue w
      WHERE {claimable} AND w.current_step = %(step)s AND w.size_class = size
        AND {_NOT_PREEMPTED}
      ORDER BY w.priority DESC, w.available_at LIMIT {CANDIDATES}
    ) w))
  ORDER BY q.priority DESC, {_aged("q")}, q.available_at
  LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED"""  # noqa: S608 - constants of ours, values are parameters


BEST_WAITING = _best(_healthy("w"))
"""The row that a claim takes. Parameters: `parameters(step)`."""

BEST_TO_PARK = _best(_due("w"))
"""The row that a worker parks while a hold is on; a job that hung is parked like any other job."""

BEST_HUNG = f"""
  SELECT q.id FROM job_queue q
  WHERE {_due("q")} AND q.hung_at IS NOT NULL AND q.current_step = %(step)s AND NOT {_HUNG_RUNS}
  ORDER BY q.hung_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED"""  # noqa: S608 - constants of ours
"""The row that a claim takes if nothing else waits: the job whose hang is the longest ago."""

HUNG_RUNNING = """
  SELECT count(*) FROM job_queue
  WHERE status = 'processing' AND hung_at IS NOT NULL AND current_step = ANY(%(pool)s)"""
"""The number of running jobs that hung before, in the passes that share the workers."""

BEST_PROBE = """
  SELECT q.id FROM job_queue q
  WHERE q.status = 'pending' AND q.current_step = %(step)s AND q.available_at <= clock_timestamp()
    AND q.incident_id = %(probe_of)s
  ORDER BY q.created_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED"""
"""The row that a claim takes while an incident is open: the incident's probe job."""

# One statement, because most claims that find nothing end here.
FIRST_WAITING = f"""
  SELECT found.step, found.is_hung FROM (
    (SELECT o.step, o.place, false AS is_hung
     FROM unnest(%(steps)s::text[]) WITH ORDINALITY AS o(step, place)
     WHERE o.step <> ALL({_PAUSED}) AND EXISTS (
       SELECT 1 FROM job_queue w
       WHERE {_healthy("w")} AND w.current_step = o.step AND {_NOT_PREEMPTED})
     ORDER BY o.place LIMIT 1)
    UNION ALL
    (SELECT o.step, o.place, true
     FROM unnest(%(steps)s::text[]) WITH ORDINALITY AS o(step, place)
     WHERE o.step <> ALL({_PAUSED}) AND NOT {_HUNG_RUNS} AND EXISTS (
       SELECT 1 FROM job_queue w
       WHERE {_due("w")} AND w.hung_at IS NOT NULL AND w.current_step = o.step)
     ORDER BY o.place LIMIT 1)
  ) AS found ORDER BY found.is_hung, found.place LIMIT 1"""  # noqa: S608 - constants of ours
"""The first of the passes `steps` that has a claimable job, or else a job that hung. Locks
nothing."""

# `me` is the running step that asks. The first count is the smaller jobs (s) that have waited for
# longer than an idle worker needs; LIMIT 1000 bounds the count. The second count is the running
# jobs (r) that are preempted before `me`: larger ones, or of the same size and running for longer.
# So as many steps are preempted as small jobs wait, and each step decides without a lock.
_SHOULD_PREEMPT = f"""
WITH me AS (
  SELECT * FROM job_queue WHERE id = %(job)s AND status = 'processing' AND size_class > 0
)
SELECT (
  SELECT count(*) FROM (
    SELECT 1 FROM job_queue s
    WHERE {_healthy("s")} AND s.current_step = ANY(%(pool)s) AND s.size_class < me.size_class
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
    """Return the passes that share their workers with this step."""
    return [each.value for each in POOLS[step]]


def should_preempt(job_id: UUID, step: Step) -> bool:
    """Return whether a running step should stop for smaller work that finds no free worker.

    A small record is never preempted, and no record is preempted for work of lower priority.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _SHOULD_PREEMPT, {"job": job_id, "pool": pool_of(step), "settled": scaled(SETTLED_S)}
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def parameters(step: Step) -> dict[str, Any]:
    """Return the parameters of the statements of this module."""
    return {
        "step": step.value,
        "pool": pool_of(step),
        "ageing": scaled(AGEING_S),
    }


def preempt_after_s() -> float:
    """Return the seconds after which a large step can be preempted."""
    return scaled(settings.PREEMPT_AFTER_S)
