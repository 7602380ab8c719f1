"""A step before the rate limiter: it asks for calls, reports them, and knows when it must park.

The local engine has no limit and no limiter. Only the executor thread uses `StepAdmission`, except
for `sent`, which a call thread uses.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from django.conf import settings
from django.utils import timezone

from medproc.timing import scaled
from pipeline.core.db_errors import unless_away
from pipeline.core.errors import CallDetails, CallError, ErrorCode
from pipeline.core.states import IncidentKind
from pipeline.core.types import ProviderModel
from pipeline.execution.splits import SplitKey
from pipeline.incidents import lifecycle
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
"""A step with nothing in flight frees its worker where the limiter stays closed so long."""
OPENED_S = 1.0
"""A limiter that was opened is asked again so soon; its answer says when a call may start."""
UNLIMITED = "local"
"""The provider without a limiter."""
OUTAGE_CODES = frozenset({ErrorCode.API_5XX, ErrorCode.API_TIMEOUT})
"""What the breaker counts, and what is refunded after an outage."""
_CLOSED = frozenset({Why.QUOTA, Why.DAY, Why.PAUSED, Why.BREAKER})
_NOT_COUNTED = _CLOSED | {Why.COOLDOWN}
"""Waits for these do not count towards the step's deadline."""

_limiters: dict[tuple[Hashable, ...], RateLimiter] = {}


@dataclass(frozen=True)
class KeepRunning:
    """Nothing stops the step."""


@dataclass(frozen=True, kw_only=True)
class ParkForIncident:
    """The step parks for a failure that every other call of this job would meet too.

    The incident is opened, or found, when the step is parked.
    """

    code: ErrorCode
    details: CallDetails | None = None
    failing_since: float | None = None
    """The first failure of the outage, in seconds of the epoch."""


@dataclass(frozen=True)
class ParkUntil:
    """The step parks for a wait that is known already."""

    parking: Parking


StopCause: TypeAlias = KeepRunning | ParkForIncident | ParkUntil


@dataclass(frozen=True, kw_only=True)
class AdmissionWait:
    """A call may not start yet; ask again in `seconds`."""

    seconds: float
    is_left_out: bool
    """Whether the wait is left out of the step's deadline."""


def limiter_of(provider: Provider) -> RateLimiter | None:
    """Return this process's limiter of a provider and model; None for one without a limit."""
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
        model = ProviderModel(provider=provider.name, model=provider.model)
        _limiters[key] = RateLimiter.for_(
            model.provider, model.model, standing=lambda: _standing(model)
        )
    return _limiters[key]


class StepAdmission:
    """The calls of one step before the limiter."""

    def __init__(self, lease: Lease, provider: Provider) -> None:
        self.limiter = limiter_of(provider)
        self._model = ProviderModel(provider=provider.name, model=provider.model)
        self._lease = lease
        self._tickets: dict[SplitKey, Ticket] = {}
        self._limited: set[SplitKey] = set()
        self._closed_since: float | None = None
        self._outage_since: float | None = None
        """The first failure of the last outage that the limiter told of."""
        self.failing_since: float | None = None
        """The first failure of the outage, where the last answer of the limiter told of one."""
        self.stop_cause: StopCause = KeepRunning()
        """Why the step must park; set once."""

    @property
    def must_park(self) -> bool:
        """Whether the step must park."""
        return not isinstance(self.stop_cause, KeepRunning)

    def ask(self, key: SplitKey, tokens: int, prompt_version: str) -> AdmissionWait | None:
        """Ask for the start of a call: None to go, else how long to wait."""
        self.failing_since = None
        if self.limiter is None:
            return None
        answer = self.limiter.admit(
            Ask(
                job=str(self._lease.job_id),
                item=_item(key),
                tokens=tokens,
                # An estimate misses different things in text and in pages, so each has its own
                # correction.
                prompt_version=f"{self._lease.step.value}-{prompt_version}-{settings.PASS_INPUT}",
            )
        )
        if isinstance(answer, Later):
            self._note(answer.failing_since)
            if answer.why in _CLOSED and self._park_when_closed(answer.why, answer.seconds):
                return AdmissionWait(seconds=scaled(OPENED_S), is_left_out=True)
            if answer.why is Why.COOLDOWN and answer.seconds > scaled(PARK_AFTER_S):
                self._park_for_cooldown(answer.seconds)
            return AdmissionWait(seconds=answer.seconds, is_left_out=answer.why in _NOT_COUNTED)
        self._tickets[key] = answer.ticket
        if not answer.ticket.is_probe:
            self._closed_since = None
        self._limited.discard(key)
        return None

    def sent(self, key: SplitKey) -> None:
        """Note that a call goes out now. Runs in the call thread."""
        ticket = self._tickets.get(key)
        if self.limiter is not None and ticket is not None:
            self.limiter.sent(ticket)

    def failed(self, key: SplitKey, error: CallError) -> Reported:
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
            self._park_when_closed(Why.BREAKER, reported.opens_in_s)
        return reported

    def succeeded(self, key: SplitKey, details: CallDetails) -> None:
        """Report an accepted reply with the input tokens that it has cost."""
        self._closed_since = None
        self._report(key, Outcome.success(details.input_tokens or None))

    def cut(self, key: SplitKey) -> None:
        """Report a call that was given up when its step stopped."""
        self._report(key, Outcome(code=ErrorCode.CANCELLED))

    def ended(self, key: SplitKey) -> None:
        """Note that a split asks no more, so that the limiter does not wait for it."""
        if self.limiter is not None and key in self._limited:
            self._limited.discard(key)
            self.limiter.abandon([_item(key)])

    def close(self) -> None:
        """Withdraw everything that this step has waiting before the limiter."""
        if self.limiter is not None:
            self.limiter.abandon([_item(key) for key in sorted(self._limited)])
        self._limited.clear()

    def last_outage(self) -> tuple[float, float] | None:
        """Return the first failure and the end of the last outage that is over."""
        return None if self.limiter is None else self.limiter.state().last_outage

    def park_for(self, error: CallError) -> None:
        """Park for a failure that every other call would meet too: a used-up quota, a bad key."""
        if not self.must_park:
            self.stop_cause = ParkForIncident(code=error.code, details=error.details)
            # The incident is opened at once, not when the step has drained: the database would
            # know of no reason for the closed limiter, and the next step would open it.
            with unless_away():
                self.parking()

    def parking(self) -> Parking | None:
        """Return how the step waits, where it must; opens the incident that it waits for."""
        match self.stop_cause:
            case KeepRunning():
                return None
            case ParkUntil(parking):
                return parking
            case ParkForIncident(code=code, details=details, failing_since=since):
                return lifecycle.parking(
                    code,
                    self._model,
                    first_failure_at=None if since is None else datetime.fromtimestamp(since, UTC),
                    details=details,
                )

    def _park_when_closed(self, why: Why, seconds: float) -> bool:
        """Park the step where nothing is in flight and the limiter stays closed for long.

        Returns whether the limiter was opened instead, because the database knows of no hold.
        """
        now = time.monotonic()
        self._closed_since = self._closed_since or now
        closed_s = now - self._closed_since + seconds
        if self._tickets or self.must_park:
            return False
        # A pause parks at once: people take longer to resume than a step can wait.
        if why is not Why.PAUSED and closed_s <= scaled(PARK_AFTER_S):
            return False
        if why in {Why.PAUSED, Why.QUOTA}:
            return self._park_for_known_hold(why)
        if why is Why.DAY:
            self._park_until(f"the calls of a day of {self._model} are used up", seconds)
        else:
            self.stop_cause = ParkForIncident(
                code=ErrorCode.API_5XX, failing_since=self._outage_since
            )
        return False

    def _park_for_cooldown(self, seconds: float) -> None:
        """Park for a cooldown that a long hint has set: the step would only hold its worker."""
        if not self._tickets and not self.must_park:
            self._park_until(REASONS[IncidentKind.THROTTLING].format(name=self._model), seconds)

    def _park_until(self, reason: str, seconds: float) -> None:
        until = timezone.now() + timedelta(seconds=max(seconds, scaled(PARK_AFTER_S)))
        self.stop_cause = ParkUntil(Parking(reason=reason, until=until))

    def _park_for_known_hold(self, why: Why) -> bool:
        """Park for a pause or a used-up quota, or open the limiter and return True.

        The database is the truth. Redis may have been away when the hold ended; the limiter that
        still has the hold is opened here.
        """
        with unless_away():
            pause, standing = pause_on(self._model), lifecycle.standing(self._model)
            if why is Why.PAUSED and pause is not None:
                self.stop_cause = ParkUntil(Parking(reason=pause.reason, pause_id=pause.pause_id))
            elif why is Why.QUOTA and standing.closed_until is not None:
                self.stop_cause = ParkForIncident(code=ErrorCode.QUOTA_EXHAUSTED)
            elif self.limiter is not None:
                self.limiter.align(standing)
                # A hold that began between the two statements must not be undone.
                again = lifecycle.standing(self._model)
                if again != standing:
                    self.limiter.align(again)
                return True
        return False

    def _note(self, failing_since: float | None) -> None:
        if failing_since is not None:
            self.failing_since = self._outage_since = failing_since

    def _report(self, key: SplitKey, outcome: Outcome) -> None:
        ticket = self._tickets.pop(key, None)
        if self.limiter is not None and ticket is not None:
            self.limiter.note(ticket, outcome)


def _standing(model: ProviderModel) -> Standing | None:
    """Return what holds a provider and model; None while the database is away."""
    standing: Standing | None = None
    with unless_away():
        standing = lifecycle.standing(model)
    return standing  # noqa: RET504 - the block may be left undone


def _item(key: SplitKey) -> str:
    row_id, name = key
    return f"{row_id}.{name}" if name else str(row_id)
