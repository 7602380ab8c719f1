"""When the queue will be empty, and what binds until then.

Imports the gate's values; pure but for the one statement that counts what is outstanding.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from pipeline.gate import Breaker, GateState

WORK_READ = 3_000
JOBS_READ = 1_000
"""Of each status; each is answered by a partial index of its own."""
TOKENS_A_PAGE = 1_500
"""Input tokens of Pass 0.5 and Pass 1 for a page, until an hour's calls say better (measured with
the samples: 1,100 to 2,300)."""
PAGES_A_CALL = 5
"""Pages of a batch or chunk that is not planned yet, on average."""


@dataclass(frozen=True, kw_only=True)
class Outstanding:
    """Calls and input tokens that jobs which wait, run or are parked still need."""

    calls: int
    tokens: int
    pages: int
    """Pages of records whose batches are not planned yet."""
    is_capped: bool = False


@dataclass(frozen=True, kw_only=True)
class Use:
    """One limit of the quota and how much of it is used."""

    name: str
    used: int
    limit: int

    @property
    def share(self) -> float:
        """Used part, 0 to 1 and more."""
        return self.used / self.limit


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """When the queue is empty; `at` is None where that cannot be said."""

    at: datetime | None
    words: str
    """What the forecast rests on, or why there is none."""


_OUTSTANDING = """
SELECT w.calls, w.tokens, u.pages, u.jobs FROM (
  SELECT coalesce(sum(b.calls), 0)::bigint AS calls, coalesce(sum(b.tokens), 0)::bigint AS tokens
  FROM (
    -- By session first: a join of each batch is planned as a scan of all sessions.
    SELECT processing_session_id, count(*) AS calls, sum(estimated_input_tokens) AS tokens
    FROM (
      SELECT estimated_input_tokens, processing_session_id FROM pass1_batch_results
      WHERE status IN ('pending', 'processing') LIMIT %(cap)s
    ) each GROUP BY 1
  ) b, LATERAL (
    SELECT session_status FROM ai_processing_sessions s WHERE s.id = b.processing_session_id
    OFFSET 0
  ) s
  WHERE s.session_status IN ('initiated', 'processing')
) w, (
  SELECT coalesce(sum(pages), 0) AS pages, count(*) AS jobs FROM (
    SELECT coalesce(f.page_count, greatest(f.pages_read, 1)) AS pages
    FROM (
      (SELECT shell_file_id, current_step FROM job_queue WHERE status = 'pending' LIMIT %(jobs)s)
      UNION ALL
      (SELECT shell_file_id, current_step FROM job_queue WHERE status = 'processing' LIMIT %(jobs)s)
      UNION ALL
      (SELECT shell_file_id, current_step FROM job_queue WHERE status = 'parked' LIMIT %(jobs)s)
    ) j
    JOIN shell_files f ON f.id = j.shell_file_id
    WHERE j.current_step IN ('pages', 'pass05') OR j.current_step = 'pass1' AND NOT EXISTS (
      SELECT 1 FROM pass1_encounter_results r WHERE r.shell_file_id = j.shell_file_id)
  ) unplanned
) u
"""


def outstanding(tokens_a_page: float | None) -> Outstanding:
    """Count what is outstanding; what is not planned yet is estimated by its pages."""
    with connection.cursor() as cursor:
        cursor.execute(_OUTSTANDING, {"cap": WORK_READ, "jobs": JOBS_READ})
        calls, tokens, pages, jobs = cursor.fetchone()
    per_page = tokens_a_page or TOKENS_A_PAGE
    return Outstanding(
        calls=calls + -(-int(pages) // PAGES_A_CALL),
        tokens=int(tokens) + round(int(pages) * per_page),
        pages=int(pages),
        is_capped=calls >= WORK_READ or jobs >= JOBS_READ,
    )


def uses(gate: GateState) -> list[Use]:
    """Return the limits of a gate, the one that binds first."""
    limits = [
        ("requests a minute", gate.requests_used, gate.requests_limit),
        ("input tokens a minute", gate.tokens_used, gate.tokens_limit),
        ("requests today", gate.day_used, gate.day_limit),
    ]
    found = [Use(name=name, used=used, limit=limit) for name, used, limit in limits if limit]
    return sorted(found, key=lambda use: use.share, reverse=True)


def forecast(left: Outstanding, gate: GateState, calls_a_minute: float, now: datetime) -> Forecast:
    """Say when what is outstanding is done at the present quota, or else at the present pace."""
    if not left.calls:
        return Forecast(at=now, words="nothing is outstanding")
    if gate.is_paused:
        return Forecast(at=None, words="the provider is paused")
    if gate.breaker is not Breaker.CLOSED:
        return Forecast(
            at=None, words="the provider is down; work resumes when a probe is answered"
        )
    waits = [until for until in (gate.cooldown_until, gate.closed_until) if until]
    wait_s = max((until - gate.now for until in waits), default=0.0)
    of_calls = left.calls / gate.requests_limit if gate.requests_limit else 0.0
    of_tokens = left.tokens / gate.tokens_limit if gate.tokens_limit else 0.0
    minutes = max(of_calls, of_tokens)
    binds = "tokens a minute" if of_tokens > of_calls else "requests a minute"
    words = f"at the present quota; {binds} bind"
    if not minutes:
        if not calls_a_minute:
            return Forecast(at=None, words="no quota binds, and nothing has been answered lately")
        minutes = left.calls / calls_a_minute
        words = "at the pace of the last ten minutes"
    if left.is_capped:
        words = f"at the soonest, {words}"
    return Forecast(at=now + timedelta(minutes=minutes, seconds=wait_s), words=words)
