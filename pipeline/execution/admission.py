"""A step's side of the rate gate: asks for its calls, reports them, and knows when to give way.

Imports the gate and `incidents`. The local engine has no limit and no gate. Only the owner thread
uses it, but for `sent`. It also says how a step is parked, whatever it waits for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from medproc.timing import scaled
from pipeline.core.db_errors import is_away
from pipeline.core.errors import CallDetails, CallError, ErrorCode
from pipeline.core.states import IncidentKind
from pipeline.core.types import ProviderModel
from pipeline.execution.splits import Key
from pipeline.incidents import detector
from pipeline.providers.base import Provider
from pipeline.ratelimit import (
    Ask,
    Later,
    Outcome,
    Quota,
    RateLimiter,
    Reported,
    Standing,
    Ticket,
    Tuning,
    Why,
)
from pipeline.transitions import Lease, Parking, pause_on
from pipeline.transitions.holds import REASONS

PARK_AFTER_S = 60.0
"""A step with nothing in flight gives its worker back where the gate stays closed so long."""
OPENED_S = 1.0
"""A gate that was opened is asked again so soon; it says itself when a call may start."""
UNLIMITED = "local"
"""The provider without a gate."""
OUTAGE_CODES = frozenset({ErrorCode.API_5XX, ErrorCode.API_TIMEOUT})
"""What the breaker counts, and gives back."""
_CLOSED = frozenset({Why.QUOTA, Why.DAY, Why.PAUSED, Why.BREAKER})
_NOT_COUNTED = _CLOSED | {Why.COOLDOWN}
"""Waits for these do not count towards the step's deadline."""

_limiters: dict[tuple[Hashable, ...], RateLimiter] = {}


@dataclass(frozen=True, kw_only=True)
class Cause:
    """What a step stops for."""

    code: ErrorCode
    """The failure that no other call of this job would be spared."""
    details: CallDetails | None = None
    failing_since: float | None = None


def limiter_of(provider: Provider) -> RateLimiter | None:
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
    if key not in _limiters:
        of = ProviderModel(provider=provider.name, model=provider.model)
        _limiters[key] = RateLimiter.for_(of.provider, of.model, standing=lambda: _standing(of))
    return _limiters[key]


class Admission:
    """The calls of one step before the gate."""

    def __init__(self, lease: Lease, provider: Provider) -> None:
        self.limiter = limiter_of(provider)
        self._of = ProviderModel(provider=provider.name, model=provider.model)
        self._lease = lease
        self._tickets: dict[Key, Ticket] = {}
        self._limited: set[Key] = set()
        self._closed_since: float | None = None
        self.cause: Cause | Parking | None = None
        """Why the step must stop, or how it waits where that is known already; set once."""
        self.failing_since: float | None = None
        """The first failure of the outage, where the last answer of the gate told of one."""
        self._since: float | None = None

    def ask(self, key: Key, tokens: int, prompt_version: str) -> tuple[float, bool] | None:
        """Ask for the start of a call: None to go, else the seconds until the next ask.

        With them whether that wait is left out of the step's deadline.
        """
        self.failing_since = None
        if self.limiter is None:
            return None
        answer = self.limiter.admit(
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
            if answer.why in _CLOSED and self._give_way(answer.why, answer.seconds):
                return (scaled(OPENED_S), True)
            if answer.why is Why.COOLDOWN and answer.seconds > scaled(PARK_AFTER_S):
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
        if self.limiter is not None and ticket is not None:
            self.limiter.sent(ticket)

    def failed(self, key: Key, error: CallError) -> Reported:
        """Report a call that failed or was written off."""
        self.failing_since = None
        ticket = self._tickets.pop(key, None)
        if self.limiter is None or ticket is None:
            return Reported()
        reported = self.limiter.report(ticket, Outcome.failure(error))
        self._note(reported.failing_since)
        if error.code is ErrorCode.RATE_LIMIT:
            self._limited.add(key)
        if reported.failing_since is not None:
            self._give_way(Why.BREAKER, reported.opens_in_s)
        return reported

    def succeeded(self, key: Key, details: CallDetails) -> None:
        """Report an accepted reply with the input tokens that it has cost."""
        self._closed_since = None
        self._report(key, Outcome.success(details.input_tokens or None))

    def cut(self, key: Key) -> None:
        """Report a call that was given up when its step stopped."""
        self._report(key, Outcome(code=ErrorCode.CANCELLED))

    def ended(self, key: Key) -> None:
        """Note that a piece asks no more, so that the gate does not wait for it."""
        if self.limiter is not None and key in self._limited:
            self._limited.discard(key)
            self.limiter.abandon([_item(key)])

    def close(self) -> None:
        """Let go of all that this step has waiting before the gate."""
        if self.limiter is not None:
            self.limiter.abandon([_item(key) for key in sorted(self._limited)])
        self._limited.clear()

    def last_outage(self) -> tuple[float, float] | None:
        """Return the first failure and the end of the last outage that is over."""
        return None if self.limiter is None else self.limiter.state().last_outage

    def stop_for(self, error: CallError) -> None:
        """Note a failure that every other call would meet too: a used-up quota, a refused key."""
        if self.cause is None:
            self.cause = Cause(code=error.code, details=error.details)
            # At once, not when the step has drained: a gate that is closed for no incident that
            # the database knows is opened by the next who meets it.
            with _unless_away():
                self.parking()

    def parking(self) -> Parking | None:
        """Return how the step waits, where it must; opens the incident that it waits for."""
        cause = self.cause
        if cause is None or isinstance(cause, Parking):
            return cause
        since = cause.failing_since
        return detector.parking(
            cause.code,
            self._of,
            first_failure_at=None if since is None else datetime.fromtimestamp(since, UTC),
            details=cause.details,
        )

    def _give_way(self, why: Why, seconds: float) -> bool:
        """Stop the step where nothing is in flight and the gate stays closed for long.

        Returns whether the gate was opened instead, for nothing that the database knows holds it.
        """
        now = time.monotonic()
        self._closed_since = self._closed_since or now
        closed_s = now - self._closed_since + seconds
        if self._tickets or self.cause:
            return False
        # For a pause at once: people take longer to resume than a step can wait.
        if why is not Why.PAUSED and closed_s <= scaled(PARK_AFTER_S):
            return False
        if why in {Why.PAUSED, Why.QUOTA}:
            return self._wait_for_what_is_known(why)
        if why is Why.DAY:
            self._wait(f"the calls of a day of {self._of} are used up", seconds)
        else:
            self.cause = Cause(code=ErrorCode.API_5XX, failing_since=self._since)
        return False

    def _sit_out(self, seconds: float) -> None:
        """Stop the step for a cooldown that a long hint has set: it would only hold its worker."""
        if not self._tickets and self.cause is None:
            self._wait(REASONS[IncidentKind.THROTTLING].format(name=self._of), seconds)

    def _wait(self, reason: str, seconds: float) -> None:
        until = timezone.now() + timedelta(seconds=max(seconds, scaled(PARK_AFTER_S)))
        self.cause = Parking(reason=reason, until=until)

    def _wait_for_what_is_known(self, why: Why) -> bool:
        """Stop the step for a pause or a used-up quota, or open the gate and return True.

        The database is the truth: a gate that it knows no such thing of, since Redis was away when
        it ended, is opened here.
        """
        with _unless_away():
            pause, standing = pause_on(self._of), detector.standing(self._of)
            if why is Why.PAUSED and pause is not None:
                self.cause = Parking(reason=pause.reason, pause_id=pause.pause_id)
            elif why is Why.QUOTA and standing.closed_until is not None:
                self.cause = Cause(code=ErrorCode.QUOTA_EXHAUSTED)
            elif self.limiter is not None:
                self.limiter.align(standing)
                # What began between the two must not be undone.
                again = detector.standing(self._of)
                if again != standing:
                    self.limiter.align(again)
                return True
        return False

    def _note(self, failing_since: float | None) -> None:
        if failing_since is not None:
            self.failing_since = self._since = failing_since

    def _report(self, key: Key, outcome: Outcome) -> None:
        ticket: Any = self._tickets.pop(key, None)
        if self.limiter is not None and ticket is not None:
            self.limiter.note(ticket, outcome)


def _standing(of: ProviderModel) -> Standing | None:
    """Return what holds a provider and model; None while the database is away."""
    try:
        return detector.standing(of)
    except (OperationalError, InterfaceError) as error:
        _let_go(error)
        return None


@contextmanager
def _unless_away() -> Iterator[None]:
    """Leave what is inside undone while PostgreSQL is away, and let go of the connection."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        _let_go(error)


def _let_go(error: OperationalError | InterfaceError) -> None:
    """Close the connection of a PostgreSQL that is away; raises what is no absence."""
    if not is_away(error):
        raise error
    connection.close()


def _item(key: Key) -> str:
    row_id, name = key
    return f"{row_id}.{name}" if name else str(row_id)
