"""The calls of the last window that count against the quota, for a Redis that was emptied.

The database has a row for every call that has ended. The step itself knows its own calls. What
another step, or a process that crashed, may have in flight is only bounded. Only the executor
thread uses this module, and only the ask that finds Redis empty reads the database.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from pipeline.core.states import JobStatus, WorkStatus
from pipeline.execution.step_time import slots_of
from pipeline.models import OUTCOME_LATE, OUTCOME_OK, Job
from pipeline.models.work_tables import WORK_TABLES
from pipeline.providers.base import Provider
from pipeline.ratelimit import PastCall, PastCalls, Quota, Ticket
from pipeline.ratelimit.limiter import GUARD_CAP_S
from pipeline.transitions import Lease
from pipeline.transitions.history import crashes

UNWRITTEN = 2
"""Calls without a row per slot of a step: one in flight, and one whose reply is being checked. The
executor thread writes the others within half a second."""

# A row is written after its call has ended, so `created_at` less the duration is not before the
# start. Both times are of the database's clock. `since` is a parameter, so that the index serves.
_ROWS = """
SELECT extract(epoch FROM clock_timestamp() - created_at) + duration_ms / 1000.0,
  input_tokens, outcome,
  processing_session_id = %(session)s AND step = %(step)s AND lease_gen = %(gen)s
FROM provider_calls
WHERE created_at > %(since)s AND provider = %(provider)s AND model = %(model)s
"""


class RecentStarts:
    """The calls that one run of a step has started within the last window."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._starts: dict[str, tuple[float, int]] = {}
        """Start by the monotonic clock, and tokens, by ticket; oldest first."""

    def add(self, ticket: Ticket) -> None:
        """Add an admitted call, and forget calls that have left the window."""
        starts = self._starts
        while starts:
            first = next(iter(starts))
            if starts[first][0] > ticket.asked_at - self._window_s:
                break
            del starts[first]
        starts[ticket.id] = (ticket.asked_at, ticket.tokens)

    def sent(self, ticket: Ticket) -> None:
        """Count a call from now, because it has gone out now. Runs in a call thread."""
        if ticket.id in self._starts:
            self._starts[ticket.id] = (time.monotonic(), ticket.tokens)

    def correct(self, ticket: Ticket, tokens: int | None) -> None:
        """Replace the reserved tokens by those that the provider has counted."""
        if tokens is not None and ticket.id in self._starts:
            self._starts[ticket.id] = (self._starts[ticket.id][0], tokens)

    def calls(self) -> list[PastCall]:
        """Return the calls of the window."""
        now = time.monotonic()
        return [PastCall(now - at, tokens) for at, tokens in list(self._starts.values())]


@dataclass(frozen=True)
class RecentCalls:
    """The calls of the last window of one provider and model."""

    past: PastCalls
    other_steps: int
    """Steps of other jobs that run now."""


def window_of(provider: Provider) -> float:
    """Return the seconds for which a call counts at most."""
    return Quota.of(provider.name).window_s + GUARD_CAP_S


def recent_calls(provider: Provider, lease: Lease, own: RecentStarts) -> RecentCalls:
    """Return the calls of the last window: a few statements."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        since: datetime = cursor.fetchone()[0] - timedelta(seconds=window_of(provider))
        cursor.execute(
            _ROWS,
            {
                "session": lease.session_id,
                "step": lease.step,
                "gen": lease.gen,
                "since": since,
                "provider": provider.name,
                "model": provider.model,
            },
        )
        rows = cursor.fetchall()
    # Zero tokens are an unknown number: a failed call, or a reply without a count.
    known = [PastCall(float(age), tokens or None) for age, tokens, _, is_own in rows if not is_own]
    others = _other_steps(lease)
    callers = _callers(lease) if lease.step in WORK_TABLES else others
    past = PastCalls(
        known=(*known, *own.calls()),
        possible=(callers + _crashes_since(since)) * UNWRITTEN * slots_of(provider),
        has_failures=any(outcome not in {OUTCOME_OK, OUTCOME_LATE} for _, _, outcome, _ in rows),
    )
    return RecentCalls(past, others)


def _other_steps(lease: Lease) -> int:
    """Return how many other jobs run a pass that calls the same model."""
    # Pass 1.5 has no work items, and calls a model of its own.
    passes = WORK_TABLES if lease.step in WORK_TABLES else [lease.step]
    running = Job.objects.filter(status=JobStatus.PROCESSING, current_step__in=passes)
    return running.exclude(id=lease.job_id).count()


def _callers(lease: Lease) -> int:
    """Return how many other steps have a work item with a call in flight."""
    return sum(
        table.rows.filter(status=WorkStatus.PROCESSING)
        .exclude(processing_session_id=lease.session_id)
        .order_by()
        .values("processing_session_id")
        .distinct()
        .count()
        for table in WORK_TABLES.values()
    )


def _crashes_since(since: datetime) -> int:
    """Return how many steps lost their process: their calls in flight have no row."""
    changed = Job.objects.filter(updated_at__gt=since, error_details__isnull=False)
    histories = changed.values_list("error_details", flat=True)
    return sum(
        datetime.fromisoformat(crash.at) > since
        for details in histories
        for crash in crashes((details or {}).get("history") or ())
    )
