"""The figures of the overview: whether the system is healthy, and if not, what to do.

The number of statements is constant and each is limited. The overview works without Redis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from observability.audit import watch
from observability.diagnostics.failures import Groups, groups
from observability.diagnostics.incidents import (
    IncidentJobCounts,
    incident_answer,
    next_probe,
    standings,
)
from observability.listing.time_window import Period, Window
from observability.metrics.forecast import (
    Forecast,
    Outstanding,
    Use,
    forecast,
    outstanding,
    quota_minutes,
    uses,
)
from observability.metrics.history import QuarterHour, fifteen_minute_history
from observability.metrics.named_limiter import named_limiter
from observability.metrics.queue_depths import FAILED_WINDOW, Queue, queue
from observability.metrics.throughput import Rates, rates
from observability.metrics.workers import WorkerFleet, worker_fleet
from pipeline.core.labels import counted
from pipeline.core.server_faults import FaultText, ServerFault, line_of, text_of
from pipeline.core.states import HOLDING_KINDS, IncidentKind, IncidentState
from pipeline.models import Incident, Pause
from pipeline.operations.liveness import LastTaskRun, last_task_runs, scheduler_problems
from pipeline.operations.rate_limit_counts import total_counts
from pipeline.operations.server_check import recent_server_faults
from pipeline.queueing.queues import SUSPENSION
from pipeline.ratelimit import Counters, RateLimiterState

SHOWN = 10
FAILURES_READ = 2_500
"""Limit for the overview, which is requested every few seconds; the failures page reads more."""


@dataclass(frozen=True, kw_only=True)
class OpenIncident:
    """An incident in the form that the banner shows."""

    incident: Incident
    answer: str
    standing: IncidentJobCounts
    next_probe_at: datetime | None
    holds: bool

    @property
    def is_probe_due(self) -> bool:
        """Whether the scheduler sends the next probe at its next tick."""
        return self.next_probe_at is not None and self.next_probe_at <= timezone.now()


@dataclass(frozen=True)
class HealthProblem:
    """A problem, with the action that it needs."""

    words: str
    page: str = ""
    """The name of the page that shows the problem."""


@dataclass(frozen=True, kw_only=True)
class Overview:
    """All figures of the overview, taken at the same time."""

    taken_at: datetime
    faults: Sequence[ServerFault]
    """Why PostgreSQL, Redis or the bucket of the stored files refuses."""
    incidents: Sequence[OpenIncident]
    pauses: Sequence[Pause]
    queue: Queue
    rates: Rates
    fifteen_minute_history: Sequence[QuarterHour]
    outstanding: Outstanding
    forecast: Forecast
    limiter: RateLimiterState
    limited: Counters
    """The counters of the rate limiter over all lives of Redis."""
    uses: Sequence[Use]
    worker_fleet: WorkerFleet
    ticks: Sequence[LastTaskRun]
    failures: Groups
    audit_alarms: Sequence[str]

    @property
    def cooldown_s(self) -> float:
        """The seconds that are left of a cooldown."""
        return max(0.0, (self.limiter.cooldown_until or 0.0) - self.limiter.now)

    @property
    def server_faults(self) -> list[tuple[ServerFault, FaultText]]:
        """The faults of the servers in words."""
        return [(fault, text_of(fault)) for fault in self.faults]

    @property
    def problems(self) -> list[HealthProblem]:
        """The problems other than servers, incidents and pauses, each with its action."""
        if any(not fault.is_of_storage for fault in self.faults):
            # A server that refuses stops the scheduler and the workers, so it is the one cause.
            return []
        found = [
            HealthProblem(f"{said[0].upper()}{said[1:]}.")
            for said in [*self.audit_alarms, *scheduler_problems(self.ticks)]
        ]
        if self.worker_fleet.is_suspended:
            found.append(HealthProblem(f"{SUSPENSION[0].upper()}{SUSPENSION[1:]}."))
        elif not self.worker_fleet.alive and not self.queue.is_empty:
            found.append(
                HealthProblem(
                    "No worker is alive, and work is waiting. Start manage.py rqworker-pool."
                )
            )
        found += [
            HealthProblem(f"Memory is short on {host.words}. {host.advice}")
            for host in self.worker_fleet.hosts
            if host.is_short
        ]
        return found

    @property
    def decisions(self) -> list[HealthProblem]:
        """Failed and dead work, which needs a decision by an operator."""
        found = []
        if self.queue.dead.number:
            _, noun = counted(self.queue.dead.number, "dead job").split(" ", 1)
            words = f"{self.queue.dead} {noun} to decide on."
            found.append(HealthProblem(words, page="admin:stale"))
        if self.queue.failed.number:
            _, noun = counted(self.queue.failed.number, "record").split(" ", 1)
            hours = int(FAILED_WINDOW.total_seconds() // 3600)
            words = f"{self.queue.failed} {noun} failed in the last {hours} h and not retried."
            found.append(HealthProblem(words, page="admin:failures"))
        return found

    @property
    def is_well(self) -> bool:
        """Whether no action is needed."""
        causes = self.faults or self.incidents or self.pauses
        return not (causes or self.problems or self.decisions)

    @property
    def verdict(self) -> str:
        """The one line that answers the question of the page."""
        if self.faults:
            return line_of(self.faults[0])
        if self.incidents:
            return self.incidents[0].answer
        if self.problems:
            return self.problems[0].words
        if self.decisions:
            return self.decisions[0].words
        return "Work is paused by an operator." if self.pauses else "All is well."


def overview() -> Overview:
    """Read all figures."""
    now = timezone.now()
    limiter = named_limiter().state()
    of_calls = rates(now)
    fleet = worker_fleet()
    left = _left(of_calls)
    return Overview(
        taken_at=now,
        faults=_faults(fleet),
        incidents=_incidents(limiter),
        pauses=list(Pause.objects.filter(ended_at=None).order_by("created_at")[:SHOWN]),
        queue=queue(),
        rates=of_calls,
        fifteen_minute_history=fifteen_minute_history(now),
        outstanding=left,
        forecast=forecast(left, limiter, of_calls.calls_a_minute, now),
        limiter=limiter,
        limited=total_counts(limiter),
        uses=uses(limiter),
        worker_fleet=fleet,
        ticks=last_task_runs(),
        failures=groups(Period.last(Window.DAY, now), cap=FAILURES_READ),
        audit_alarms=watch.alarms(),
    )


def _faults(fleet: WorkerFleet) -> tuple[ServerFault, ...]:
    """Return why the servers refuse, also if Redis was lost since the last check."""
    found = recent_server_faults()
    is_known = any(fault.is_of_redis for fault in found)
    return (*found, ServerFault.REDIS_AWAY) if fleet.is_redis_away and not is_known else found


def outlook() -> tuple[Outstanding, float]:
    """Return the outstanding work, and the least minutes that the quota needs for it."""
    left = _left(rates(timezone.now()))
    minutes, _ = quota_minutes(left, named_limiter().state())
    return left, minutes


def _left(of_calls: Rates) -> Outstanding:
    return outstanding(of_calls.input_tokens / of_calls.pages if of_calls.pages else None)


def _incidents(limiter: RateLimiterState) -> list[OpenIncident]:
    found = Incident.objects.filter(state=IncidentState.OPEN).order_by("opened_at")[:SHOWN]
    ordered = sorted(found, key=lambda each: IncidentKind(each.kind) not in HOLDING_KINDS)
    standing = standings([each.id for each in ordered])
    return [
        OpenIncident(
            incident=each,
            answer=incident_answer(each),
            standing=standing[each.id],
            next_probe_at=next_probe(each),
            holds=IncidentKind(each.kind) in HOLDING_KINDS,
        )
        for each in ordered
    ]
