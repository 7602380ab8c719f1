"""Hourly snapshots of the service level: a row for each hour and class of priority.

The periodic task `snapshot_metrics` writes the hours that have ended and have no rows yet. So an
hour that no scheduler saw is filled in from the jobs. A retry clears the end of a job, and an
erasure deletes the job; an hour that is filled in later lacks these ends.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import connection

from medproc.timing import scaled
from observability.metrics.sla import backlog_forecast
from observability.metrics.sla_files import write_missing_files
from pipeline.core.labels import counted
from pipeline.models.sla import class_sql, targets_s

HOUR = timedelta(hours=1)
SETTLES_S = 120.0
"""Seconds between the end of an hour and its snapshot: a transaction commits the end of a job a
little later than the time that it writes."""
BACK_DAYS = 30
"""Days that the first run fills in: the longest trend of the overview."""
AT_ONCE = 24
"""Hours of one statement."""
BUDGET_S = 20.0
"""Seconds after which a run begins no further statement; the next run continues."""

# The series begins at the oldest row, so that pruned hours do not come back.
_MISSING = """
WITH known AS (
  SELECT date_trunc('hour', clock_timestamp() - make_interval(secs => %(settles)s), 'UTC') AS now
)
SELECT h, h + interval '1 hour' = known.now FROM known, generate_series(
  coalesce(
    (SELECT min(hour) FROM sla_snapshots),
    date_trunc('hour', greatest(
      (SELECT min(created_at) FROM job_queue), known.now - make_interval(days => %(days)s)), 'UTC')
  ),
  known.now - interval '1 hour', interval '1 hour') AS h
WHERE EXISTS (SELECT FROM job_queue) AND NOT EXISTS (SELECT FROM sla_snapshots s WHERE s.hour = h)
ORDER BY h LIMIT %(at_once)s
"""

# `open_jobs` reads each open status from its partial index. Jobs that ended after the first hour
# come from the index of `completed_at`.
_TOOK = "extract(epoch FROM j.completed_at - j.created_at)"
_CLASSES = "(VALUES ('urgent', %(urgent)s::float8), ('normal', %(normal)s), ('low', %(low)s))"
_WRITE = f"""
WITH hours AS (
  SELECT h AS since, h + interval '1 hour' AS until FROM unnest(%(hours)s::timestamptz[]) AS h
), classes AS (
  SELECT * FROM {_CLASSES} AS c (priority, target_s)
), ended AS (
  SELECT hours.since, c.priority, count(*) AS finished,
    count(*) FILTER (WHERE j.status = 'completed' AND {_TOOK} <= c.target_s) AS met,
    percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY {_TOOK})
      FILTER (WHERE j.status = 'completed') AS took
  FROM hours
  JOIN job_queue j ON j.completed_at >= hours.since AND j.completed_at < hours.until
    AND j.status IN ('completed', 'failed', 'dead')
  JOIN classes c ON c.priority = {class_sql("j.priority")}
  GROUP BY 1, 2
), open_jobs AS MATERIALIZED (
  SELECT priority, created_at, NULL::timestamptz AS ended_at FROM job_queue
    WHERE status = 'pending'
  UNION ALL SELECT priority, created_at, NULL FROM job_queue WHERE status = 'processing'
  UNION ALL SELECT priority, created_at, NULL FROM job_queue WHERE status = 'parked'
  UNION ALL SELECT priority, created_at, completed_at FROM job_queue
    WHERE completed_at >= (SELECT min(until) FROM hours)
      AND status IN ('completed', 'failed', 'dead', 'cancelled')
), left_over AS (
  SELECT hours.since, c.priority, count(*) AS backlog,
    count(*) FILTER (WHERE extract(epoch FROM hours.until - j.created_at) > c.target_s) AS late
  FROM hours
  JOIN open_jobs j ON j.created_at < hours.until
    AND (j.ended_at IS NULL OR j.ended_at >= hours.until)
  JOIN classes c ON c.priority = {class_sql("j.priority")}
  GROUP BY 1, 2
)
INSERT INTO sla_snapshots (hour, priority, target_s, finished, met, missed, median_s, p95_s,
  backlog, late, backlog_ends_at)
SELECT hours.since, c.priority, c.target_s, coalesce(e.finished, 0), coalesce(e.met, 0),
  coalesce(e.finished - e.met, 0), e.took[1], e.took[2],
  coalesce(l.backlog, 0), coalesce(l.late, 0),
  CASE WHEN hours.since = %(newest)s::timestamptz THEN %(ends_at)s::timestamptz END
FROM hours CROSS JOIN classes c
LEFT JOIN ended e ON e.since = hours.since AND e.priority = c.priority
LEFT JOIN left_over l ON l.since = hours.since AND l.priority = c.priority
ON CONFLICT (hour, priority) DO NOTHING
"""  # noqa: S608 - constants of ours, values are parameters


def snapshot() -> str:
    """Write the missing hours and files; return a line for the log (periodic task)."""
    ends_at, written = time.monotonic() + scaled(BUDGET_S), 0
    while hours := missing_hours():
        written += write_hours(hours)
        if time.monotonic() >= ends_at:
            break
    write_missing_files()
    # One new hour is the usual case, which needs no line.
    return f"{counted(written, 'missed hour')} of the service level filled in" * (written > 1)


def missing_hours() -> list[tuple[datetime, bool]]:
    """Return the oldest ended hours without rows, at most AT_ONCE, and whether each just ended."""
    with connection.cursor() as cursor:
        cursor.execute(
            _MISSING, {"settles": scaled(SETTLES_S), "days": BACK_DAYS, "at_once": AT_ONCE}
        )
        return [(hour, bool(is_newest)) for hour, is_newest in cursor.fetchall()]


def write_hours(hours: Sequence[tuple[datetime, bool]]) -> int:
    """Write the rows of these hours in one statement; return how many hours are new.

    The forecast belongs to the hour that has just ended: an older backlog has no forecast.
    """
    newest = next((hour for hour, is_newest in hours if is_newest), None)
    with connection.cursor() as cursor:
        cursor.execute(
            _WRITE,
            {
                "hours": [hour for hour, _ in hours],
                "newest": newest,
                "ends_at": backlog_forecast().at if newest else None,
                **targets_s(),
            },
        )
        return int(cursor.rowcount) // len(targets_s())
