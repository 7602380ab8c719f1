"""The forecast of the time at which the queue is empty, and of the limit that binds until then.

One statement counts the outstanding work; everything else is pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from django.conf import settings
from django.db import connection

from pipeline.core.states import Step
from pipeline.models.work_tables import WORK_TABLES, WorkTable, composed
from pipeline.ratelimit import Breaker, RateLimiterState
from pipeline.ratelimit.quota_reset import day_ends_at

WORK_READ = 3_000
JOBS_READ = 1_000
"""Jobs of each status that are read; a partial index serves each status."""
TOKENS_A_PAGE = 1_500
"""Input tokens of Pass 0.5 and Pass 1 per page, until an hour of calls gives a better figure. The
samples need 1,100 to 2,300."""
PAGES_A_CALL = 5
"""Average pages of a batch or chunk; used for records without a plan."""
LATER = (Step.PASS2, Step.PASS3)
"""The passes that are counted apart, by the figures of `WorkTable`, until they are planned."""


@dataclass(frozen=True, kw_only=True)
class Outstanding:
    """The calls and input tokens that waiting, running and parked jobs still need."""

    calls: int
    tokens: int
    pages: int
    """Pages of records whose batches are not planned yet."""
    jobs: int = 0
    """Number of jobs that were read."""
    is_capped: bool = False
    """Whether a limit stopped the count; the true figures may be higher."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """One limit of the quota and how much of it is used."""

    name: str
    used: int
    limit: int

    @property
    def share(self) -> float:
        """The used part: 1 is the whole limit; the value can exceed 1."""
        return self.used / self.limit


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The time at which the queue is empty; `at` is None if no forecast is possible."""

    at: datetime | None
    words: str
    """The basis of the forecast, or the reason why none is possible."""


def _open_items(table: WorkTable) -> str:
    """Return a SELECT of the estimates of open items, for jobs that are in the pass."""
    owner, column = "ai_processing_sessions", "processing_session_id"
    key, of = "id", ""
    if parent := table.encounter_parent:
        # Only open parents, because most encounters of a long record have succeeded already.
        owner, column, of = parent.table, f"{parent.encounter}_id", " AND o.status <> 'succeeded'"
        key = column
    # OFFSET 0 makes the planner look rows up by key; a plain join scans all items.
    return f"""
    SELECT w.tokens FROM live, LATERAL (
      SELECT {key} AS key FROM {owner} o
      WHERE o.shell_file_id = live.shell_file_id{of} OFFSET 0
    ) o, LATERAL (
      SELECT {table.estimate} AS tokens FROM {table.table} w
      WHERE w.{column} = o.key AND w.status IN ('pending', 'processing') OFFSET 0
    ) w
    WHERE live.current_step = '{table.step}'"""  # noqa: S608 - names come from the models


def _is_not_planned(table: WorkTable) -> str:
    """Return a condition about a job in the pass: it has no work items yet."""
    if table.parent is None:
        return f"""NOT EXISTS (
    SELECT FROM ai_processing_sessions s JOIN {table.table} w ON w.processing_session_id = s.id
    WHERE s.shell_file_id = live.shell_file_id)"""
    return f"""NOT EXISTS (
    SELECT FROM {table.owner._meta.db_table} o
    WHERE o.shell_file_id = live.shell_file_id)"""


@composed
def _outstanding_sql(tables: Sequence[WorkTable]) -> str:
    # Items with an estimate are counted; other passes are estimated by the pages of the record.
    stated = [table for table in tables if table.estimate]
    order = list(Step)
    first = [table for table in stated if table.step not in LATER]
    named = ", ".join(f"'{table.step}'" for table in (*first, *_later(tables)))
    unplanned = " OR ".join(
        f"(live.current_step = '{table.step}' AND {_is_not_planned(table)})" for table in first
    )
    coming = "".join(
        ", coalesce(sum(f.pages) FILTER (WHERE live.current_step = ANY ("
        f"ARRAY[{', '.join(repr(s.value) for s in order[: order.index(table.step)])}])"
        f" OR (live.current_step = '{table.step}' AND {_is_not_planned(table)})), 0)"
        f" AS {table.step}"
        for table in _later(tables)
    )
    return f"""
-- live: jobs with calls still to come. Reading live jobs first is necessary, because items of
-- cancelled and failed jobs stay pending and would fill any limit on items. MATERIALIZED, because
-- three subqueries use these rows. One branch per status, because each has its own partial index.
WITH live AS MATERIALIZED (
  (SELECT status, shell_file_id, current_step FROM job_queue
    WHERE status = 'processing' AND current_step = ANY (%(steps)s) LIMIT %(jobs)s)
  UNION ALL
  (SELECT status, shell_file_id, current_step FROM job_queue
    WHERE status = 'pending' AND current_step = ANY (%(steps)s) LIMIT %(jobs)s)
  UNION ALL
  (SELECT status, shell_file_id, current_step FROM job_queue
    WHERE status = 'parked' AND current_step = ANY (%(steps)s) LIMIT %(jobs)s)
)
SELECT w.calls, w.tokens, j.jobs, j.most, u.* FROM (
  -- items: work items that have not ended.
  SELECT count(*) AS calls, coalesce(sum(tokens), 0)::bigint AS tokens FROM (
    {" UNION ALL ".join(map(_open_items, stated))} LIMIT %(cap)s
  ) items
) w, (
  -- u: pages of records whose batches are not planned yet; and those of each later pass.
  SELECT coalesce(sum(f.pages) FILTER (
      WHERE live.current_step NOT IN ({named}) OR {unplanned}), 0) AS pages{coming}
  FROM live, LATERAL (
    SELECT coalesce(page_count, greatest(pages_read, 1)) AS pages
    FROM shell_files WHERE id = live.shell_file_id OFFSET 0
  ) f
) u, (
  -- j: the number of live jobs, and the highest number per status, to detect the limit.
  SELECT coalesce(sum(number), 0)::integer AS jobs, coalesce(max(number), 0) AS most
  FROM (SELECT count(*) AS number FROM live GROUP BY status) each
) j
"""  # noqa: S608 - names come from the models, values are parameters


def _later(tables: Sequence[WorkTable]) -> list[WorkTable]:
    """Return the passes after Pass 1 whose items have an estimate."""
    return [table for table in tables if table.step in LATER and table.estimate]


def _calling() -> list[str]:
    """Return the steps of jobs that have calls before them in this installation."""
    order = list(Step)
    run = [step for step in WORK_TABLES if step.value not in settings.SKIPPED_PASSES]
    last = max(map(order.index, run))
    return [step.value for step in order[: last + 1]]


def outstanding(tokens_a_page: float | None) -> Outstanding:
    """Count the outstanding work; work without a plan is estimated from its pages."""
    with connection.cursor() as cursor:
        cursor.execute(
            _outstanding_sql(), {"cap": WORK_READ, "jobs": JOBS_READ, "steps": _calling()}
        )
        calls, tokens, jobs, most, pages, *later = cursor.fetchone()
    per_page = tokens_a_page or TOKENS_A_PAGE
    coming = [
        (table, int(number))
        for table, number in zip(_later(tuple(WORK_TABLES.values())), later, strict=True)
        if table.step.value not in settings.SKIPPED_PASSES
    ]
    later_calls = sum(table.calls_a_page * number for table, number in coming)
    later_tokens = sum(table.tokens_a_page * number for table, number in coming)
    return Outstanding(
        calls=calls + -(-int(pages) // PAGES_A_CALL) + ceil(later_calls),
        tokens=int(tokens) + round(int(pages) * per_page) + later_tokens,
        pages=int(pages),
        jobs=jobs,
        is_capped=calls >= WORK_READ or most >= JOBS_READ,
    )


def uses(limiter: RateLimiterState) -> list[Use]:
    """Return the limits of a rate limiter, the binding limit first."""
    limits = [
        ("requests a minute", limiter.requests_used, limiter.requests_limit),
        ("input tokens a minute", limiter.tokens_used, limiter.tokens_limit),
        ("requests today", limiter.day_used, limiter.day_limit),
    ]
    found = [Use(name=name, used=used, limit=limit) for name, used, limit in limits if limit]
    return sorted(found, key=lambda use: use.share, reverse=True)


def quota_minutes(remaining: Outstanding, limiter: RateLimiterState) -> tuple[float, str]:
    """Return the least minutes that the per-minute limits need, and the limit that binds."""
    of_calls = remaining.calls / limiter.requests_limit if limiter.requests_limit else 0.0
    of_tokens = remaining.tokens / limiter.tokens_limit if limiter.tokens_limit else 0.0
    binds = "tokens a minute" if of_tokens > of_calls else "requests a minute"
    return max(of_calls, of_tokens), binds


def forecast(
    remaining: Outstanding, limiter: RateLimiterState, calls_a_minute: float, now: datetime
) -> Forecast:
    """Forecast the end of the outstanding work, at the present quota or else the present pace."""
    if not remaining.calls:
        if remaining.is_capped:
            return Forecast(at=None, words="more jobs are waiting than a forecast reads")
        return Forecast(at=now, words="nothing is outstanding")
    if limiter.is_paused:
        return Forecast(at=None, words="the provider is paused")
    if limiter.breaker is not Breaker.CLOSED:
        return Forecast(
            at=None, words="the provider is down; work resumes when a probe is answered"
        )
    waits = [until for until in (limiter.cooldown_until, limiter.closed_until) if until]
    wait_s = max((until - limiter.now for until in waits), default=0.0)
    minutes, binds = quota_minutes(remaining, limiter)
    words = f"at the present quota; {binds} bind"
    if not minutes and calls_a_minute:
        minutes = remaining.calls / calls_a_minute
        words = "at the pace of the last ten minutes"
    begins, share = _day(remaining, limiter, now)
    if begins is not None:
        words = "at the present quota; requests a day bind"
    elif not minutes:
        return Forecast(at=None, words="no quota binds, and no call was answered lately")
    if remaining.is_capped:
        words = f"at the earliest, {words}"
    start = max(now + timedelta(seconds=wait_s), begins or now)
    return Forecast(at=start + timedelta(minutes=minutes * share), words=words)


def _day(
    remaining: Outstanding, limiter: RateLimiterState, now: datetime
) -> tuple[datetime | None, float]:
    """Return the start of the day whose quota suffices, and the share of work left for that day.

    Returns None and the whole share if today's quota suffices or no daily limit is set.
    """
    if not limiter.day_limit:
        return None, 1.0
    beyond = remaining.calls - max(0, limiter.day_limit - limiter.day_used)
    if beyond <= 0:
        return None, 1.0
    full_days, rest = divmod(beyond - 1, limiter.day_limit)
    return day_ends_at(now) + timedelta(days=full_days), (rest + 1) / remaining.calls
