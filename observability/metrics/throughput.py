"""Throughput, latency and success of the calls of the last hour. Two statements.

At a quota of 300 calls a minute, an hour has 18,000 calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from pipeline.models.work_tables import WorkTable, composed, status_sql

MINUTES = 60
PACE_MINUTES = 10
"""The minutes over which the present pace is measured."""
FAILURES_READ = 10_000


@dataclass(frozen=True, kw_only=True)
class Minute:
    """The calls of one minute."""

    at: datetime
    calls: int
    failed: int
    limited: int


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The calls of the last hour. Succeeded, absorbed, failed and unfinished count work items."""

    minutes: Sequence[Minute]
    """All minutes, empty ones too, oldest first; the last one is unfinished."""
    calls: int
    succeeded: int
    """Answered by the first call."""
    absorbed: int
    """Answered after failed calls."""
    failed: int
    """Failed for good and not retried since."""
    unfinished: int
    """Work items without success of jobs that failed, died or were cancelled; failed items count in
    `failed` only. Such a job without any work item counts once."""
    p50_ms: float | None
    p95_ms: float | None
    input_tokens: int
    pages: int
    """Pages of the answered calls of Pass 1."""

    @property
    def success_share(self) -> float | None:
        """The answered share of all batches and chunks that ended or were left unfinished.

        None if there are none.
        """
        ended = self.succeeded + self.absorbed + self.failed + self.unfinished
        return (self.succeeded + self.absorbed) / ended if ended else None

    @property
    def calls_a_minute(self) -> float:
        """The pace of the last `PACE_MINUTES` whole minutes."""
        whole = self.minutes[-PACE_MINUTES - 1 : -1]
        return sum(minute.calls for minute in whole) / max(1, len(whole))

    @property
    def last_whole_minute(self) -> int:
        """Calls of the last finished minute."""
        return self.minutes[-2].calls


_CALLS = """
SELECT date_trunc('minute', created_at) AS minute, count(*),
  count(*) FILTER (WHERE outcome <> 'OK' AND outcome <> 'RATE_LIMIT'),
  count(*) FILTER (WHERE outcome = 'RATE_LIMIT'),
  count(*) FILTER (WHERE accepted AND attempt = 1),
  count(*) FILTER (WHERE accepted AND attempt > 1),
  percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY duration_ms)
    FILTER (WHERE outcome = 'OK'),
  coalesce(sum(input_tokens) FILTER (WHERE accepted), 0),
  coalesce(sum(page_range_end - page_range_start + 1) FILTER (WHERE accepted AND step = 'pass1'), 0)
FROM provider_calls WHERE created_at >= %(since)s
GROUP BY GROUPING SETS ((date_trunc('minute', created_at)), ())
"""


@composed
def _failed_sql(tables: Sequence[WorkTable]) -> str:
    """Compose the counts of the work items that failed for good, and of those left unfinished."""
    left = "\n    UNION ALL\n".join(
        f"""    SELECT w.status FROM {table.table} w
    JOIN {table.owner._meta.db_table} o ON o.id = w.{table.owner_field}_id
    WHERE e.current_step = '{table.step}' AND o.shell_file_id = e.shell_file_id
      AND w.status <> 'succeeded'"""  # noqa: S608 - names come from the models
        for table in tables
    )
    return f"""
WITH newest AS (
  SELECT step, work_item_id FROM provider_calls
  WHERE outcome <> 'OK' AND created_at >= %(since)s ORDER BY created_at DESC LIMIT %(cap)s
), asked AS (
  SELECT DISTINCT step, work_item_id FROM newest WHERE work_item_id IS NOT NULL
), ended AS (
  SELECT shell_file_id, current_step FROM job_queue
  WHERE status IN ('failed', 'dead', 'cancelled') AND completed_at >= %(since)s
  ORDER BY completed_at DESC LIMIT %(cap)s
), lost AS (
  SELECT CASE WHEN count(w.status) = 0 THEN 1
    ELSE count(*) FILTER (WHERE w.status <> 'failed') END AS items
  FROM (SELECT row_number() OVER () AS number, * FROM ended) e
  LEFT JOIN LATERAL (
{left}
  ) w ON true GROUP BY e.number
)
SELECT (
  SELECT count(*) FROM asked c, LATERAL ({status_sql(tables, "c.work_item_id", "c.step")}) i
  WHERE i.status = 'failed'
), (SELECT coalesce(sum(items), 0) FROM lost)
"""  # noqa: S608 - names come from the models, values are parameters


def rates(now: datetime) -> Rates:
    """Read the calls of the hour before `now`."""
    this_minute = now.replace(second=0, microsecond=0)
    since = this_minute - timedelta(minutes=MINUTES - 1)
    with connection.cursor() as cursor:
        cursor.execute(_CALLS, {"since": since})
        rows = {row[0]: row[1:] for row in cursor.fetchall()}
        cursor.execute(_failed_sql(), {"since": since, "cap": FAILURES_READ})
        failed, unfinished = cursor.fetchone()
    calls, _, _, succeeded, absorbed, percentiles, tokens, pages = rows.pop(None)
    minutes = [since + timedelta(minutes=n) for n in range(MINUTES)]
    return Rates(
        minutes=[
            Minute(at=at, calls=of[0], failed=of[1], limited=of[2])
            for at in minutes
            if (of := rows.get(at, (0, 0, 0)))
        ],
        calls=calls,
        succeeded=succeeded,
        absorbed=absorbed,
        failed=failed,
        unfinished=int(unfinished),
        p50_ms=percentiles[0] if percentiles else None,
        p95_ms=percentiles[1] if percentiles else None,
        input_tokens=int(tokens),
        pages=int(pages),
    )
