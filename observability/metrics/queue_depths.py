"""Waiting, running, parked and failed jobs by pass. One statement; every count has a limit.

Reads ids, times and counts only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection

from pipeline.core.labels import StatusWord
from pipeline.core.states import Step

COUNTED = 10_000
"""The limit of each count; higher figures would not change what an operator does. Waiting and
parked jobs are counted up to the limit in each pass, so that a full pass does not hide the others.
Each read is ordered by age, so that the oldest job is always found."""
FAILED_WINDOW = timedelta(hours=24)


@dataclass(frozen=True, kw_only=True)
class Depth:
    """A number of jobs, and the time since which the oldest waits."""

    number: int = 0
    oldest: datetime | None = None
    is_capped: bool = False
    """Whether there may be more."""

    def __add__(self, other: Depth) -> Depth:
        times = [at for at in (self.oldest, other.oldest) if at is not None]
        return Depth(
            number=self.number + other.number,
            oldest=min(times, default=None),
            is_capped=self.is_capped or other.is_capped,
        )

    def __str__(self) -> str:
        return f"{self.number}+" if self.is_capped else str(self.number)


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The queue at one moment."""

    by_pass: Mapping[Step, Mapping[StatusWord, Depth]]
    failed: Depth
    """Failed within `FAILED_WINDOW` and not retried since."""
    dead: Depth
    totals: Mapping[StatusWord, Depth] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no job waits, runs or is parked."""
        return not any(depth.number for depth in self.totals.values())


# `first` finds the oldest waiting job of each size and priority in the index of the claim, by a
# recursive descent over the priorities. A separate index on the times would make the planner
# choose that index for the claim.
_SQL = """
WITH RECURSIVE first AS (
  SELECT step, size, priority, since
  FROM unnest(%(steps)s::text[]) step, generate_series(0, 2) size, LATERAL (
    SELECT priority, available_at AS since FROM job_queue
    WHERE status = 'pending' AND current_step = step AND size_class = size
    ORDER BY priority DESC, available_at LIMIT 1
  ) highest
  UNION ALL
  SELECT step, size, lower.priority, lower.since FROM first, LATERAL (
    SELECT priority, available_at AS since FROM job_queue
    WHERE status = 'pending' AND current_step = step AND size_class = size
      AND priority < first.priority
    ORDER BY priority DESC, available_at LIMIT 1
  ) lower
)
SELECT step, word, count(*) FILTER (WHERE is_counted), min(since) FROM (
  SELECT step, 'waiting' AS word, NULL AS since, true AS is_counted
  FROM unnest(%(steps)s::text[]) step, LATERAL (
    SELECT FROM job_queue WHERE status = 'pending' AND current_step = step LIMIT %(cap)s
  ) waiting
  UNION ALL
  SELECT step, 'waiting', since, false FROM first
  UNION ALL
  SELECT step, 'parked', since, true FROM unnest(%(steps)s::text[]) step, LATERAL (
    SELECT updated_at AS since FROM job_queue
    WHERE status = 'parked' AND current_step = step ORDER BY updated_at LIMIT %(cap)s
  ) parked
  UNION ALL
  (SELECT current_step, 'running', step_started_at, true
     FROM job_queue WHERE status = 'processing' ORDER BY step_started_at LIMIT %(cap)s)
  UNION ALL
  (SELECT current_step, 'failed', completed_at, true FROM job_queue
     WHERE status = 'failed'
       AND completed_at >= now() - make_interval(secs => %(window)s)
     ORDER BY completed_at LIMIT %(cap)s)
  UNION ALL
  (SELECT current_step, 'dead', completed_at, true
     FROM job_queue WHERE status = 'dead' ORDER BY completed_at LIMIT %(cap)s)
) each GROUP BY step, word
"""


_BY_PASS = frozenset({StatusWord.WAITING, StatusWord.PARKED})
"""These states are counted up to the limit in each pass."""


def queue() -> Queue:
    """Read the present queue."""
    with connection.cursor() as cursor:
        cursor.execute(
            _SQL,
            {
                "cap": COUNTED,
                "steps": [step.value for step in Step],
                "window": FAILED_WINDOW.total_seconds(),
            },
        )
        rows = cursor.fetchall()
    by_pass: dict[Step, dict[StatusWord, Depth]] = {step: {} for step in Step}
    totals: dict[StatusWord, Depth] = {}
    read: defaultdict[StatusWord, int] = defaultdict(int)
    for _, word, number, _ in rows:
        read[StatusWord(word)] += number
    for step, word, number, oldest in rows:
        # A count over all passes has one limit for all; compare the total with this limit.
        counted = number if word in _BY_PASS else read[StatusWord(word)]
        depth = Depth(number=number, oldest=oldest, is_capped=counted >= COUNTED)
        by_pass[Step(step)][StatusWord(word)] = depth
        totals[StatusWord(word)] = totals.get(StatusWord(word), Depth()) + depth
    return Queue(
        by_pass=by_pass,
        failed=totals.pop(StatusWord.FAILED, Depth()),
        dead=totals.pop(StatusWord.DEAD, Depth()),
        totals={
            word: totals.get(word, Depth())
            for word in (StatusWord.RUNNING, StatusWord.WAITING, StatusWord.PARKED)
        },
    )
