"""Whether it is healthy, and if not, what to do: everything that the overview shows.

Imports the console's selectors, the gate and the clock's duties. A constant number of statements,
each bounded; Redis may be away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.conf import settings
from django.utils import timezone

from observability.failures import Groups, Window, groups
from observability.forecast import Forecast, Outstanding, Use, forecast, outstanding, uses
from observability.incidents import incident_answer, next_probe
from observability.queue import Queue, queue
from observability.rates import Rates, rates
from observability.workers import Crew, crew
from pipeline.clock import all_duties
from pipeline.gate import Gate, GateState
from pipeline.models import ClockTick, Incident, Pause
from pipeline.provider.factory import named_provider
from pipeline.states import HOLDING_KINDS, IncidentKind, IncidentState
from pipeline.words import counted

SHOWN = 10
FAILURES_READ = 2_500
"""The overview is asked for every few seconds; the page of failures reads further."""
LATE_FACTOR = 3
LATE_MARGIN_S = 10.0
"""A tick is late after three intervals and what a duty may take."""


@dataclass(frozen=True, kw_only=True)
class OpenIncident:
    """An incident as the banner shows it."""

    incident: Incident
    answer: str
    affected: Mapping[str, int]
    next_probe_at: datetime | None
    holds: bool

    @property
    def is_probe_due(self) -> bool:
        """Whether the next probe goes out at the clock's next look."""
        return self.next_probe_at is not None and self.next_probe_at <= timezone.now()


@dataclass(frozen=True, kw_only=True)
class Tick:
    """One duty of the clock."""

    name: str
    at: datetime | None
    outcome: str
    is_late: bool

    @property
    def is_well(self) -> bool:
        """Whether it is in time, and has not failed."""
        return not self.is_late and not self.outcome.startswith("failed")


@dataclass(frozen=True, kw_only=True)
class Overview:
    """All figures of the overview, taken at one moment."""

    taken_at: datetime
    incidents: Sequence[OpenIncident]
    pauses: Sequence[Pause]
    queue: Queue
    rates: Rates
    left: Outstanding
    forecast: Forecast
    gate: GateState
    uses: Sequence[Use]
    crew: Crew
    ticks: Sequence[Tick]
    failures: Groups

    @property
    def cooldown_s(self) -> float:
        """Seconds that are left of a cooldown."""
        return max(0.0, (self.gate.cooldown_until or 0.0) - self.gate.now)

    @property
    def problems(self) -> list[str]:
        """What is wrong beside incidents and pauses, each with what to do."""
        found = []
        if all(tick.is_late for tick in self.ticks):
            found.append("No clock runs: nothing parked is released. Start manage.py rqcron.")
        if not self.crew.alive and not self.queue.is_empty:
            found.append("No worker is alive, and work waits. Start manage.py rqworker-pool.")
        if self.queue.dead.number:
            found.append(f"{counted(self.queue.dead.number, 'dead job')} in need of a decision.")
        return found

    @property
    def is_well(self) -> bool:
        """Whether nothing is to be done."""
        return not (self.incidents or self.pauses or self.problems)

    @property
    def verdict(self) -> str:
        """The one line that answers the page's question."""
        if self.incidents:
            return self.incidents[0].answer
        if self.problems:
            return self.problems[0]
        return "Work is paused by an operator." if self.pauses else "All is well."


def overview() -> Overview:
    """Read everything."""
    now = timezone.now()
    gate = _gate().state()
    of_calls = rates(now)
    left = outstanding(of_calls.input_tokens / of_calls.pages if of_calls.pages else None)
    return Overview(
        taken_at=now,
        incidents=_incidents(gate),
        pauses=list(Pause.objects.filter(ended_at=None).order_by("created_at")[:SHOWN]),
        queue=queue(),
        rates=of_calls,
        left=left,
        forecast=forecast(left, gate, of_calls.calls_a_minute, now),
        gate=gate,
        uses=uses(gate),
        crew=crew(),
        ticks=_ticks(now),
        failures=groups(Window.DAY, now, cap=FAILURES_READ),
    )


def outlook() -> tuple[Outstanding, float]:
    """Return what is outstanding, and the minutes that the quota needs for it at least."""
    left = outstanding(None)
    gate = _gate().state()
    return left, max(
        left.calls / gate.requests_limit if gate.requests_limit else 0.0,
        left.tokens / gate.tokens_limit if gate.tokens_limit else 0.0,
    )


def _gate() -> Gate:
    served = named_provider(settings)
    return _gate_of(served.provider, served.model, settings.REDIS_URL)


@lru_cache(maxsize=4)
def _gate_of(provider: str, model: str, _url: str) -> Gate:
    return Gate.for_(provider, model)


def _incidents(gate: GateState) -> list[OpenIncident]:
    found = Incident.objects.filter(state=IncidentState.OPEN).order_by("opened_at")[:SHOWN]
    ordered = sorted(found, key=lambda each: IncidentKind(each.kind) not in HOLDING_KINDS)
    return [
        OpenIncident(
            incident=each,
            answer=incident_answer(each),
            affected=each.evidence.get("affected", {}),
            next_probe_at=next_probe(each),
            holds=IncidentKind(each.kind) in HOLDING_KINDS,
        )
        for each in ordered
    ]


def _ticks(now: datetime) -> list[Tick]:
    last = {tick.name: tick for tick in ClockTick.objects.all()[:50]}
    return [
        Tick(
            name=duty.name,
            at=tick.started_at if tick else None,
            outcome=tick.outcome if tick else "never",
            is_late=tick is None
            or (now - tick.started_at).total_seconds()
            > LATE_FACTOR * duty.interval_s + LATE_MARGIN_S,
        )
        for duty in all_duties()
        for tick in [last.get(duty.name)]
    ]
