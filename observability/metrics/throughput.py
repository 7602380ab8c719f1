"""Throughput, latency and success of the calls of the last hour. Two statements.

At a quota of 300 calls a minute, an hour has 18,000 calls. So finished minutes are cached, and a
request reads only the calls of the newest minutes.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

from django.core.cache import cache
from django.db import connection

from observability.metrics.history import SETTLES
from pipeline.models.work_tables import WorkTable, composed, states_sql

MINUTES = 60
MINUTE = timedelta(minutes=1)
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


@dataclass(frozen=True, kw_only=True)
class _MinuteCalls:
    """The calls that ended within one minute."""

    calls: int = 0
    failed: int = 0
    limited: int = 0
    succeeded: int = 0
    absorbed: int = 0
    input_tokens: int = 0
    pages: int = 0
    answered_ms: array[int] = field(default_factory=lambda: array("q"))
    """The durations of the answered calls, ascending. Percentiles of an hour need all of them."""


_CALLS = """
SELECT date_trunc('minute', created_at) AS minute, count(*),
  count(*) FILTER (WHERE outcome <> 'OK' AND outcome <> 'RATE_LIMIT'),
  count(*) FILTER (WHERE outcome = 'RATE_LIMIT'),
  count(*) FILTER (WHERE accepted AND attempt = 1),
  count(*) FILTER (WHERE accepted AND attempt > 1),
  coalesce(sum(input_tokens) FILTER (WHERE accepted), 0),
  coalesce(sum(page_range_end - page_range_start + 1) FILTER (WHERE accepted AND step = 'pass1'),
    0),
  array_agg(duration_ms) FILTER (WHERE outcome = 'OK' AND duration_ms IS NOT NULL)
FROM provider_calls WHERE created_at >= %(since)s
GROUP BY 1
"""
_COUNTS = (
    "calls", "failed", "limited", "succeeded", "absorbed", "input_tokens", "pages",
)  # fmt: skip


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
  SELECT DISTINCT work_item_id AS item, step FROM newest WHERE work_item_id IS NOT NULL ORDER BY 1
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
  SELECT count(*) FROM ({states_sql(tables, "asked")}) states WHERE status = 'failed'
), (SELECT coalesce(sum(items), 0) FROM lost)
"""  # noqa: S608 - names come from the models, values are parameters


def rates(now: datetime) -> Rates:
    """Read the calls of the hour before `now`."""
    this_minute = now.replace(second=0, microsecond=0)
    times = [this_minute - timedelta(minutes=back) for back in range(MINUTES)][::-1]
    of_minutes = _minutes(times, now)
    with connection.cursor() as cursor:
        cursor.execute(_failed_sql(), {"since": times[0], "cap": FAILURES_READ})
        failed, unfinished = cursor.fetchone()
    total = {name: sum(getattr(each, name) for each in of_minutes) for name in _COUNTS}
    # The parts are sorted already, so this merges them in linear time.
    answered = sorted(chain.from_iterable(each.answered_ms for each in of_minutes))
    return Rates(
        minutes=[
            Minute(at=at, calls=of.calls, failed=of.failed, limited=of.limited)
            for at, of in zip(times, of_minutes, strict=True)
        ],
        calls=total["calls"],
        succeeded=total["succeeded"],
        absorbed=total["absorbed"],
        failed=failed,
        unfinished=int(unfinished),
        p50_ms=_percentile(answered, 0.5),
        p95_ms=_percentile(answered, 0.95),
        input_tokens=total["input_tokens"],
        pages=total["pages"],
    )


def _minutes(times: Sequence[datetime], now: datetime) -> list[_MinuteCalls]:
    """Return the calls of each minute; a minute that is final is read once and then cached."""
    kept: dict[str, _MinuteCalls] = cache.get_many([_key(at) for at in times])
    since = next((at for at in times if _key(at) not in kept), times[-1])
    read = _read(since)
    found = [kept.get(_key(at)) or read.get(at) or _MinuteCalls() for at in times]
    final = {
        key: each
        for at, each in zip(times, found, strict=True)
        if (key := _key(at)) not in kept and at + MINUTE + SETTLES <= now
    }
    cache.set_many(final, MINUTES * MINUTE.total_seconds())
    return found


def _read(since: datetime) -> dict[datetime, _MinuteCalls]:
    with connection.cursor() as cursor:
        cursor.execute(_CALLS, {"since": since})
        return {
            at: _MinuteCalls(
                **{name: int(count) for name, count in zip(_COUNTS, counts, strict=True)},
                answered_ms=array("q", sorted(answered or ())),
            )
            for at, *counts, answered in cursor
        }


def _percentile(ordered: Sequence[int], share: float) -> float | None:
    """Return a percentile as PostgreSQL's `percentile_cont` does; None without numbers."""
    if not ordered:
        return None
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _key(at: datetime) -> str:
    """Return a cache key that includes the database, so that test databases do not collide."""
    return f"console-minute-{connection.settings_dict['NAME']}-{at:%Y%m%dT%H%M}"
