"""A step's side of the rate gate: asks for its calls, reports them, and knows when to give way.

Imports the gate and `incidents`. The local engine has no limit and no gate. Only the owner thread
uses it, but for `sent`. It also says how a step is parked, whatever it waits for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from medproc.timing import scaled
from pipeline import incidents
from pipeline.database import is_away
from pipeline.errors import CallError, CallFacts, ErrorCode
from pipeline.gate import Ask, Gate, Later, Outcome, Quota, Reported, Standing, Ticket, Tuning, Why
from pipeline.parts import Key
from pipeline.provider.base import Provider
from pipeline.states import IncidentKind
from pipeline.transitions import Lease, Parking, pause_on
from pipeline.transitions.holds import REASONS, Hold
from pipeline.types import ProviderModel

PARK_AFTER_S = 60.0
"""A step with nothing in flight gives its worker back where the gate stays closed so long."""
UNLIMITED = "local"
"""The provider without a gate."""
OUTAGE_CODES = frozenset({ErrorCode.API_5XX, ErrorCode.API_TIMEOUT})
"""What the breaker counts, and gives back."""
_CLOSED = frozenset({Why.QUOTA, Why.PAUSED, Why.BREAKER})
_NOT_COUNTED = _CLOSED | {Why.COOLDOWN}
"""Waits for these do not count towards the step's deadline."""

_gates: dict[tuple[Hashable, ...], Gate] = {}


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What a step stops for."""

    code: ErrorCode
    """The failure that no other call of this job would be spared."""
    facts: CallFacts | None = None
    seconds: float = 0.0
    """How long the gate stays closed, where it said so."""
    failing_since: float | None = None


def gate_of(provider: Provider) -> Gate | None:
    """Return this process's gate of a provider and model; None for one without a limit."""
    if provider.name == UNLIMITED:
        return None
    key = (
        os.getpid(),
        provider.name,
        provider.model,
        settings.REDIS_URL,
        Quota.of(provider.name),
        Tuning.of_settings(),
    )
    if key not in _gates:
        of = ProviderModel(provider=provider.name, model=provider.model)
        _gates[key] = Gate.for_(of.provider, of.model, standing=lambda: _standing(of))
    return _gates[key]


class Admission:
    """The calls of one step before the gate."""

    def __init__(self, lease: Lease, provider: Provider) -> None:
        self.gate = gate_of(provider)
        self._of = ProviderModel(provider=provider.name, model=provider.model)
        self._lease = lease
        self._tickets: dict[Key, Ticket] = {}
        self._limited: set[Key] = set()
        self._closed_since: float | None = None
        self.cause: Cause | Hold | None = None
        """Why the step must stop and wait, a failure or an operator's pause; set once."""
        self.failing_since: float | None = None
        """The first failure of the outage, where the last answer of the gate told of one."""
        self._since: float | None = None

    def ask(self, key: Key, tokens: int, prompt_version: str) -> tuple[float, bool] | None:
        """Ask for the start of a call: None to go, else the seconds until the next ask.

        With them whether that wait is left out of the step's deadline.
        """
        self.failing_since = None
        if self.gate is None:
            return None
        answer = self.gate.admit(
            Ask(
                job=str(self._lease.job_id),
                item=_item(key),
                tokens=tokens,
                # Text and pages differ in what an estimate misses, so each learns for itself.
                prompt_version=f"{self._lease.step.value}-{prompt_version}-{settings.PASS_INPUT}",
            )
        )
        if isinstance(answer, Later):
            self._note(answer.failing_since)
            if answer.why in _CLOSED:
                self._give_way(answer.why, answer.seconds)
            elif answer.why is Why.COOLDOWN and answer.seconds > scaled(PARK_AFTER_S):
                self._sit_out(answer.seconds)
            return (answer.seconds, answer.why in _NOT_COUNTED)
        self._tickets[key] = answer.ticket
        if not answer.ticket.is_probe:
            self._closed_since = None
        self._limited.discard(key)
        return None

    def sent(self, key: Key) -> None:
        """Note that a call goes out now; in its call thread."""
        ticket = self._tickets.get(key)
        if self.gate is not None and ticket is not None:
            self.gate.sent(ticket)

    def failed(self, key: Key, error: CallError) -> Reported:
        """Report a call that failed or was written off."""
        self.failing_since = None
        ticket = self._tickets.pop(key, None)
        if self.gate is None or ticket is None:
            return Reported()
        reported = self.gate.report(ticket, Outcome.failure(error))
        self._note(reported.failing_since)
        if error.code is ErrorCode.RATE_LIMIT:
            self._limited.add(key)
        if reported.failing_since is not None:
            self._give_way(Why.BREAKER, reported.opens_in_s)
        return reported

    def succeeded(self, key: Key, facts: CallFacts) -> None:
        """Report an accepted reply with the input tokens that it has cost."""
        self._closed_since = None
        self._report(key, Outcome.success(facts.input_tokens or None))

    def cut(self, key: Key) -> None:
        """Report a call that was given up when its step stopped."""
        self._report(key, Outcome(code=ErrorCode.CANCELLED))

    def ended(self, key: Key) -> None:
        """Note that a piece asks no more, so that the gate does not wait for it."""
        if self.gate is not None and key in self._limited:
            self._limited.discard(key)
            self.gate.abandon([_item(key)])

    def close(self) -> None:
        """Let go of all that this step has waiting before the gate."""
        if self.gate is not None and self._limited:
            self.gate.abandon([_item(key) for key in sorted(self._limited)])
        self._limited.clear()

    def last_outage(self) -> tuple[float, float] | None:
        """Return the first failure and the end of the last outage that is over."""
        return None if self.gate is None else self.gate.state().last_outage

    def stop_for(self, error: CallError) -> None:
        """Note a failure that every other call would meet too: a used-up quota, a refused key."""
        self.cause = self.cause or Cause(code=error.code, facts=error.call)

    def parking(self) -> Parking | None:
        """Return how the step waits, where it must; opens the incident that it waits for."""
        cause = self.cause
        if cause is None:
            return None
        if isinstance(cause, Hold):
            return Parking(reason=cause.reason, pause_id=cause.pause_id)
        if cause.code is ErrorCode.RATE_LIMIT:
            return Parking(
                reason=REASONS[IncidentKind.THROTTLING].format(name=self._of),
                until=_after(cause.seconds),
            )
        if cause.code is ErrorCode.QUOTA_EXHAUSTED and cause.facts is None:
            return self._wait_for_quota(cause.seconds)
        since = cause.failing_since
        return incidents.parking(
            cause.code,
            self._of,
            first_failure_at=None if since is None else datetime.fromtimestamp(since, UTC),
            facts=cause.facts,
        )

    def _wait_for_quota(self, seconds: float) -> Parking:
        # The gate also closes at the calls that it has counted itself; that is no incident.
        if incidents.is_quota_used_up(self._of):
            return incidents.parking(ErrorCode.QUOTA_EXHAUSTED, self._of)
        return Parking(reason=f"a quota of {self._of} is used up", until=_after(seconds))

    def _give_way(self, why: Why, seconds: float) -> None:
        """Stop the step where nothing is in flight and the gate stays closed for long."""
        now = time.monotonic()
        self._closed_since = self._closed_since or now
        closed_s = now - self._closed_since + seconds
        if self._tickets or self.cause:
            return
        if why is Why.PAUSED:
            self._wait_for_resume()
        elif closed_s > scaled(PARK_AFTER_S):
            code = ErrorCode.QUOTA_EXHAUSTED if why is Why.QUOTA else ErrorCode.API_5XX
            self.cause = Cause(code=code, seconds=seconds, failing_since=self._since)

    def _sit_out(self, seconds: float) -> None:
        """Stop the step for a cooldown that a long hint has set: it would only hold its worker."""
        if not self._tickets and self.cause is None:
            self.cause = Cause(code=ErrorCode.RATE_LIMIT, seconds=seconds)

    def _wait_for_resume(self) -> None:
        """Stop the step for its pause, at once: people take longer to resume than a step can wait.

        The database is the truth. A gate that it knows no pause of, since Redis was away when the
        pause ended, is opened here.
        """
        try:
            pause = pause_on(self._of)
            if pause is None and self.gate is not None:
                self.gate.resume()
                # A pause that began between the two must not be undone.
                pause = pause_on(self._of)
                if pause is not None:
                    self.gate.pause(incidents.PAUSED_BY)
        except (OperationalError, InterfaceError) as error:
            _away(error)
            return
        if pause is not None:
            self.cause = pause

    def _note(self, failing_since: float | None) -> None:
        if failing_since is not None:
            self.failing_since = self._since = failing_since

    def _report(self, key: Key, outcome: Outcome) -> None:
        ticket: Any = self._tickets.pop(key, None)
        if self.gate is not None and ticket is not None:
            self.gate.note(ticket, outcome)


def _standing(of: ProviderModel) -> Standing | None:
    """Return what holds a provider and model; None while the database is away."""
    try:
        return incidents.standing(of)
    except (OperationalError, InterfaceError) as error:
        _away(error)
        return None


def _away(error: OperationalError | InterfaceError) -> None:
    """Let go of a connection that is gone; raises what is no absence."""
    if not is_away(error):
        raise error
    connection.close()


def _item(key: Key) -> str:
    row_id, name = key
    return f"{row_id}.{name}" if name else str(row_id)


def _after(seconds: float) -> datetime:
    return timezone.now() + timedelta(seconds=max(seconds, scaled(PARK_AFTER_S)))
