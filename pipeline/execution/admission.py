"""What one step asks of the rate limiter and reports to it, and when the step must park.

The local engine has no limit and no limiter. Only the executor thread uses `StepAdmission`, except
for `noting_sent`, which a call thread uses.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from functools import partial
from typing import TypeAlias

from django.conf import settings
from django.utils import timezone

from medproc.timing import scaled
from pipeline.core.db_errors import unless_away
from pipeline.core.errors import CallDetails, CallError, ErrorCode
from pipeline.core.states import IncidentKind
from pipeline.core.types import ProviderModel
from pipeline.execution.recent_calls import RecentStarts, recent_calls, window_of
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
from pipeline.transitions.holds import HOLD_REASONS

PARK_AFTER_S = 60.0
"""If the limiter starts no call for so many seconds, a step with nothing in flight frees its
worker."""
SETTLE_S = 1.0
"""After this time without starts, every running step has written the calls that have ended."""
REASK_S = 1.0
"""Seconds until the next ask after the step has lifted a hold of the limiter."""
UNLIMITED = "local"
"""The provider without a limiter."""
_STOPPED = frozenset({Why.QUOTA, Why.DAY, Why.PAUSED, Why.BREAKER})
"""Reasons for which the limiter starts no call at all, perhaps for long."""
_NOT_COUNTED = frozenset(Why)
"""Reasons whose waits do not count towards the step's deadline: a wait for the quota is no work."""
LONGEST_HOLD_S = 60.0
"""A step with calls in flight asks again after so many seconds. Once its calls have ended, the step
can park instead of waiting for midnight, and a process that hangs is noticed."""

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
    outage_since: float | None = None
    """The first failure of the outage, in seconds of the epoch."""


@dataclass(frozen=True)
class ParkUntil:
    """The step parks for a wait that is known already."""

    parking: Parking


StopCause: TypeAlias = KeepRunning | ParkForIncident | ParkUntil


class _StoppedStep(Enum):
    """What a step does while the limiter starts no call."""

    WAITS = auto()
    """The step asks again later."""
    PARKS = auto()
    """The step parks, and `stop_cause` says why."""
    LIFTED_HOLD = auto()
    """The database knew of no hold, so the step has lifted the limiter's hold. Ask again soon."""


@dataclass(frozen=True, kw_only=True)
class AdmissionWait:
    """A call may not start yet; ask again in `seconds`."""

    seconds: float
    why: Why

    @property
    def is_left_out(self) -> bool:
        """Whether the wait is left out of the step's deadline."""
        return self.why in _NOT_COUNTED


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
        # An emptied Redis is armed by the step that asks, which alone knows its own calls.
        _limiters[key] = RateLimiter.for_(provider.name, provider.model, standing=lambda: None)
    return _limiters[key]


class StepAdmission:
    """The asks and reports of one step, and the reason why the step must park."""

    def __init__(
        self, lease: Lease, provider: Provider, starts: RecentStarts | None = None
    ) -> None:
        self.limiter = limiter_of(provider)
        self._model = ProviderModel(provider=provider.name, model=provider.model)
        self._lease = lease
        self._provider = provider
        self._tickets: dict[SplitKey, Ticket] = {}
        self._starts = starts or RecentStarts(window_of(provider))
        """The calls of this run of the step. A step with several admissions passes one object."""
        self._met_empty_at: float | None = None
        """When this step first found Redis empty beside other running steps."""
        self._limited: set[SplitKey] = set()
        self._stopped_since: float | None = None
        self._last_outage_since: float | None = None
        """The first failure of the last outage that the limiter named."""
        self.outage_since: float | None = None
        """The first failure of the outage; None if the breaker was closed at the last reply."""
        self.stop_cause: StopCause = KeepRunning()
        """Why the step must park; set once."""

    @property
    def must_park(self) -> bool:
        """Whether the step must park."""
        return not isinstance(self.stop_cause, KeepRunning)

    def ask(self, key: SplitKey, tokens: int, prompt_version: str) -> AdmissionWait | None:
        """Ask for the start of a call: None to go, else how long to wait. May set `stop_cause`."""
        return self.ask_many([(key, tokens)], prompt_version)[1]

    def ask_many(
        self, calls: Sequence[tuple[SplitKey, int]], prompt_version: str
    ) -> tuple[int, AdmissionWait | None]:
        """Ask for the starts of calls with their tokens, in one question to the limiter.

        Returns how many of them start, in their order, and how long the next one must wait. May
        set `stop_cause`.
        """
        self.outage_since = None
        if self.limiter is None:
            return len(calls), None
        job = str(self._lease.job_id)
        # An estimate misses different things in text and in pages, so each has its own correction.
        version = f"{self._lease.step.value}-{prompt_version}-{settings.PASS_INPUT}"
        asks = [
            Ask(job=job, item=_item(key), tokens=tokens, prompt_version=version)
            for key, tokens in calls
        ]
        started, wait = 0, None
        for (key, _), answer in zip(
            calls, self.limiter.admit_many(asks, self._standing), strict=False
        ):
            if isinstance(answer, Later):
                wait = self._wait_of(answer)
            else:
                self._begin(key, answer.ticket)
                started += 1
        return started, wait

    def _begin(self, key: SplitKey, ticket: Ticket) -> None:
        self._tickets[key] = ticket
        self._starts.add(ticket)
        if not ticket.is_probe:
            self._stopped_since = None
        self._limited.discard(key)

    def _wait_of(self, answer: Later) -> AdmissionWait:
        self._note(answer.outage_since)
        if answer.why in _STOPPED:
            step = self._park_or_wait(answer.why, answer.seconds)
            if step is _StoppedStep.LIFTED_HOLD:
                return AdmissionWait(seconds=scaled(REASK_S), why=answer.why)
        if answer.why is Why.COOLDOWN and answer.seconds > scaled(PARK_AFTER_S):
            self._park_for_cooldown(answer.seconds)
        longest_s = math.inf if self.must_park else scaled(LONGEST_HOLD_S)
        return AdmissionWait(seconds=min(answer.seconds, longest_s), why=answer.why)

    def noting_sent(self, key: SplitKey) -> Callable[[], object]:
        """Return the function that notes, in the call thread, that this call has gone out.

        The function belongs to the ticket: an abandoned call can go out after its repetition has
        begun.
        """
        ticket = self._tickets.get(key)
        return (lambda: None) if ticket is None else partial(self._sent, ticket)

    def _sent(self, ticket: Ticket) -> None:
        if self.limiter is not None:
            self._starts.sent(ticket)
            self.limiter.sent(ticket)

    def failed(self, key: SplitKey, error: CallError) -> Reported:
        """Report a call that failed or was written off; may set `stop_cause`."""
        self.outage_since = None
        ticket = self._tickets.pop(key, None)
        if self.limiter is None or ticket is None:
            return Reported()
        outcome = Outcome.failure(error)
        self._starts.correct(ticket, outcome.input_tokens)
        reported = self.limiter.report(ticket, outcome)
        self._note(reported.outage_since)
        if error.code is ErrorCode.RATE_LIMIT:
            self._limited.add(key)
        if reported.is_breaker_open:
            self._park_or_wait(Why.BREAKER, reported.starts_in_s)
        return reported

    def succeeded(self, key: SplitKey, details: CallDetails) -> None:
        """Report an accepted reply with the input tokens that it has cost."""
        self._stopped_since = None
        self._report(key, Outcome.success(details.input_tokens or None))

    def flush(self) -> None:
        """Report the outcomes that still wait for the next ask."""
        if self.limiter is not None:
            self.limiter.flush()

    def cut(self, key: SplitKey) -> None:
        """Report a call that was given up when its step stopped."""
        self._report(key, Outcome(code=ErrorCode.CANCELLED))

    def ended(self, key: SplitKey) -> None:
        """Note that a split asks no more, so that the limiter does not wait for it."""
        if self.limiter is not None and key in self._limited:
            self._limited.discard(key)
            self.limiter.abandon([_item(key)])

    def close(self) -> None:
        """Tell the limiter that the limited items of this step ask no more."""
        if self.limiter is not None:
            self.limiter.abandon([_item(key) for key in sorted(self._limited)])
            self.limiter.leave()
        self._limited.clear()

    def last_outage(self) -> tuple[float, float] | None:
        """Return the first failure and the end of the last outage that is over."""
        return None if self.limiter is None else self.limiter.state().last_outage

    def park_for(self, error: CallError) -> None:
        """Park for a failure that every other call would meet too: a used-up quota, a bad key."""
        if not self.must_park:
            self.stop_cause = ParkForIncident(code=error.code, details=error.details)
            # The incident is opened at once, not when the step has drained. Otherwise the database
            # would know no reason for the limiter's hold, and the next step would lift the hold.
            with unless_away():
                self.open_and_park()

    def open_and_park(self) -> Parking | None:
        """Return how the step parks, or None; open the incident that the step waits for."""
        match self.stop_cause:
            case KeepRunning():
                return None
            case ParkUntil(parking):
                return parking
            case ParkForIncident(code=code, details=details, outage_since=since):
                return lifecycle.open_and_park(
                    code,
                    self._model,
                    first_failure_at=None if since is None else datetime.fromtimestamp(since, UTC),
                    details=details,
                )

    def _park_or_wait(self, why: Why, seconds: float) -> _StoppedStep:
        """Park the step if nothing is in flight and the limiter starts no call for long."""
        now = time.monotonic()
        self._stopped_since = self._stopped_since or now
        stopped_s = now - self._stopped_since + seconds
        if self._tickets or self.must_park:
            return _StoppedStep.WAITS
        # A pause parks at once: people take longer to resume than a step can wait.
        if why is not Why.PAUSED and stopped_s <= scaled(PARK_AFTER_S):
            return _StoppedStep.WAITS
        if why in {Why.PAUSED, Why.QUOTA}:
            return self._park_for_known_hold(why)
        if why is Why.DAY:
            self._park_until(f"the calls of a day of {self._model} are used up", seconds)
        else:
            self.stop_cause = ParkForIncident(
                code=ErrorCode.API_5XX, outage_since=self._last_outage_since
            )
        return _StoppedStep.PARKS

    def _park_for_cooldown(self, seconds: float) -> None:
        """Park for a cooldown that a long hint has set: the step would only hold its worker."""
        if not self._tickets and not self.must_park:
            self._park_until(
                HOLD_REASONS[IncidentKind.THROTTLING].format(name=self._model), seconds
            )

    def _park_until(self, reason: str, seconds: float) -> None:
        until = timezone.now() + timedelta(seconds=max(seconds, scaled(PARK_AFTER_S)))
        self.stop_cause = ParkUntil(Parking(reason=reason, until=until))

    def _park_for_known_hold(self, why: Why) -> _StoppedStep:
        """Park for a pause or a used-up quota that the database knows, or lift the limiter's hold.

        The database is the truth. If Redis was away when the hold ended, the limiter still has the
        hold. The step waits while the database is away.
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
                return _StoppedStep.LIFTED_HOLD
        return _StoppedStep.PARKS if self.must_park else _StoppedStep.WAITS

    def _note(self, outage_since: float | None) -> None:
        if outage_since is not None:
            self.outage_since = self._last_outage_since = outage_since

    def _report(self, key: SplitKey, outcome: Outcome) -> None:
        ticket = self._tickets.pop(key, None)
        if self.limiter is not None and ticket is not None:
            self._starts.correct(ticket, outcome.input_tokens)
            self.limiter.note(ticket, outcome)

    def _standing(self) -> Standing | None:
        """Return what an emptied Redis must know; None while that is unknown.

        It is unknown while the database is away, and until the other steps, which start no call
        now, have written the calls that have ended.
        """
        standing: Standing | None = None
        with unless_away():
            recent = recent_calls(self._provider, self._lease, self._starts)
            self._met_empty_at = self._met_empty_at or time.monotonic()
            if recent.other_steps and time.monotonic() < self._met_empty_at + SETTLE_S:
                return None
            self._met_empty_at = None
            standing = replace(lifecycle.standing(self._model), past=recent.past)
        return standing  # noqa: RET504 - the block may be left undone


def _item(key: SplitKey) -> str:
    row_id, name = key
    return f"{row_id}.{name}" if name else str(row_id)
