"""The rate limiter of one provider and model, as a worker process sees it.

Each method is one round trip to Redis of at most `REDIS_TIMEOUT_S`, and never sleeps. The ask that
finds Redis emptied makes three round trips. While Redis does not answer, the process keeps to its
local limit (see `fallback`).
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.commands.core import Script
from redis.retry import Retry

from medproc.addresses import redis_kwargs
from pipeline.core.errors import ErrorCode
from pipeline.ratelimit.config import Quota, Tuning
from pipeline.ratelimit.fallback import AWAY_FOR_S, Fallback
from pipeline.ratelimit.parameters import ScriptParameters
from pipeline.ratelimit.past_calls import bookings
from pipeline.ratelimit.quota_reset import resets_at
from pipeline.ratelimit.scripts import Scripts, keys_of
from pipeline.ratelimit.sliding_p99 import SlidingP99
from pipeline.ratelimit.state import moment_of, state_of
from pipeline.ratelimit.transport import Argument, Wire
from pipeline.ratelimit.types import (
    Admission,
    Ask,
    CooldownRole,
    Go,
    Later,
    Outcome,
    OutcomeKind,
    RateLimiterState,
    Reported,
    Standing,
    Ticket,
    Why,
)

logger = logging.getLogger(__name__)

REDIS_TIMEOUT_S = 0.5
"""The longest wait for a reply of Redis; after it Redis counts as away."""
SAMPLES = 500
"""Durations from admission to sending from which the guard's p99 is computed."""
MOST_NOTED = 16
"""Noted outcomes that are reported without waiting for the next message."""
MOST_KEPT = 1_000
"""The most noted outcomes, and the most late calls that are remembered; the oldest are dropped."""
FRESH_S = 10.0
"""Seconds for which an outcome says something about the provider. Reported later, after an absence
of Redis, the outcome only frees the place of its call and corrects its tokens."""
WAY_S = 0.05
"""The way of a request to the provider: it is not measured, and the guard has to cover it too."""
GUARD_CAP_S = 5.0
"""The largest guard, so that one stalled process does not close the window for all."""


_SAYS_NOTHING = Outcome(code=ErrorCode.CANCELLED)
"""The outcome of a call that never started, or whose end is long past."""


class _NotedOutcome(NamedTuple):
    """An outcome that the next message reports."""

    at: float
    """Seconds of the process's clock."""
    ticket: Ticket
    outcome: Outcome


class RateLimiter:
    """Asks for starts and reports outcomes; one per process, provider and model.

    Only the thread that runs the step calls `admit`. Any thread may call the other methods.
    """

    def __init__(
        self,
        provider: str,
        model: str,
        *,
        client: redis.Redis,
        quota: Quota,
        tuning: Tuning,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        lua_clock: str | None = None,
        standing: Callable[[], Standing | None] | None = None,
    ) -> None:
        self.provider = provider
        self.model = model
        self._quota = quota
        self._tuning = tuning
        self._clock = clock
        self._wall = wall
        # A test's `lua_clock` takes the time from `wall`, so that hours can be simulated.
        self._sends_time = lua_clock is not None
        self._standing = standing
        self._scripts = Scripts.on(client, lua_clock)
        self._parameters = ScriptParameters(quota, tuning, wall, arms=standing is not None)
        self._keys = keys_of(provider, model)
        self._fallback = Fallback(provider, quota, tuning, clock)
        self._wire = Wire(client, self._keys, self._fallback)
        self._send_delays = SlidingP99(SAMPLES)
        self._guard_s, self._p99 = tuning.guard_s, 0.0
        # Several call threads add to `_send_delays` at once.
        self._lock = threading.Lock()
        self._noted: list[_NotedOutcome] = []
        """Outcomes that the next message to Redis reports."""
        self._moved: dict[str, str] = {}
        """The new bucket of each late call, by ticket; the newest `MOST_KEPT` of them."""
        self._ticket_prefix, self._tickets = uuid.uuid4().hex, 0
        """Ids of tickets: a random prefix and a number, which are unique in the cluster."""
        self._in_line: str | None = None
        """The job that was told to wait, and that has not started a call since."""

    @classmethod
    def for_(
        cls,
        provider: str,
        model: str,
        *,
        standing: Callable[[], Standing | None] | None = None,
    ) -> Self:
        """Return the rate limiter of a provider and model with the configured values.

        Create it after a fork, one per process. `standing` reads holds and calls from the database.
        An ask that finds Redis empty calls it, and while it returns None (unknown) no call starts.
        Without `standing`, an empty Redis counts as having no holds and a spent window.
        """
        return cls(
            provider,
            model,
            client=limiter_client(settings.REDIS_URL),
            quota=Quota.of(provider),
            tuning=Tuning.of_settings(),
            standing=standing,
        )

    def admit(self, ask: Ask, standing: Callable[[], Standing | None] | None = None) -> Admission:
        """Ask for the start of one call."""
        return self.admit_many((ask,), standing)[0]

    def admit_many(
        self, asks: Sequence[Ask], standing: Callable[[], Standing | None] | None = None
    ) -> list[Admission]:
        """Ask for the starts of calls of one job and prompt version, in one round trip.

        Returns one Go per call that starts, in order, and one Later for the first other call. If
        Redis was emptied, the ask first restores holds and window. `standing` takes the place of
        the limiter's own.
        """
        read = standing or self._standing
        answers = self._admit(asks)
        first = answers[0]
        if not isinstance(first, Later) or first.why is not Why.NEW or read is None:
            return answers
        found = read()
        if found is None or not self.rearm(found, asked_tokens=asks[0].tokens):
            return [Later(seconds=AWAY_FOR_S, why=Why.NEW)]
        return self._admit(asks)

    def _admit(self, asks: Sequence[Ask]) -> list[Admission]:
        asked_at, ids = self._clock(), [self._ticket_id() for _ in asks]
        calls = [
            value
            for ticket_id, ask in zip(ids, asks, strict=True)
            for value in (ticket_id, ask.item, max(0, ask.tokens))
        ]
        job, version = asks[0].job, asks[0].prompt_version
        is_held_back = self._fallback.holds_redis_back
        reply = self._run(self._scripts.admit, job, version, *self._fallback.owed(), *calls)
        if reply is None:
            if not is_held_back:
                self._give_back(ids, asks)
            return self._admit_locally(ids, asks, asked_at)
        starts, generation, epoch = reply[:3]
        answers: list[Admission] = []
        for n in range(starts):
            bucket, tokens, is_probe, is_redistributed = reply[3 + 4 * n : 7 + 4 * n]
            ticket = _ticket(
                ids[n],
                asks[n],
                asked_at,
                generation=generation,
                epoch=epoch,
                bucket=bucket.decode(),
                tokens=tokens,
                is_probe=bool(is_probe),
                is_redistributed=bool(is_redistributed),
            )
            answers.append(Go(ticket=ticket))
        self._in_line = None
        if starts < len(asks):
            self._in_line = job
            seconds, why, since = reply[3 + 4 * starts :]
            answers.append(
                Later(seconds=float(seconds), why=Why(why.decode()), outage_since=moment_of(since))
            )
        return answers

    def _admit_locally(
        self, ids: Sequence[str], asks: Sequence[Ask], asked_at: float
    ) -> list[Admission]:
        """Start calls within the small share of this process, while Redis is away."""
        answers: list[Admission] = []
        for ticket_id, ask in zip(ids, asks, strict=True):
            wait = self._fallback.wait_s(ask)
            if wait > 0:
                answers.append(Later(seconds=min(wait, AWAY_FOR_S), why=Why.LOCAL))
                break
            ticket = _ticket(
                ticket_id,
                ask,
                asked_at,
                generation=0,
                epoch=0,
                bucket="",
                tokens=ask.tokens,
                is_local=True,
            )
            answers.append(Go(ticket=ticket))
        return answers

    def _ticket_id(self) -> str:
        self._tickets += 1
        return f"{self._ticket_prefix}{self._tickets}"

    def sent(self, ticket: Ticket) -> None:
        """Note that the call has gone out now, and adapt the guard to the p99 of these delays.

        A call that arrives later than the guard allows is booked again in the current bucket: the
        provider counts the call from its arrival.
        """
        delay = self._clock() - ticket.asked_at
        in_time = min(self._guard_s, max(self._tuning.guard_s - WAY_S, self._p99))
        with self._lock:
            self._p99 = self._send_delays.add(delay)
        self._guard_s = min(max(self._tuning.guard_s, self._p99), GUARD_CAP_S)
        if delay > in_time and not ticket.is_local:
            bucket = self._moved.get(ticket.id, ticket.bucket)
            moved = self._run(self._scripts.control, "late", bucket, ticket.tokens)
            if moved is not None:
                self._moved[ticket.id] = moved.decode()
                with self._lock:
                    if len(self._moved) > MOST_KEPT:
                        del self._moved[next(iter(self._moved))]

    def report(self, ticket: Ticket, outcome: Outcome) -> Reported:
        """Report the outcome of an admitted call, once.

        While Redis is away, the outcome is noted for the next message.
        """
        reply = self._run(self._scripts.report, *self._reported(ticket, outcome))
        if reply is None:
            self._keep(ticket, outcome)
            return Reported(starts_in_s=self._fallback.heed(outcome))
        role, seconds, since = reply
        return Reported(
            role=CooldownRole(role.decode()),
            starts_in_s=float(seconds),
            outage_since=moment_of(since),
        )

    def note(self, ticket: Ticket, outcome: Outcome) -> None:
        """Note an outcome from which the caller needs no reply: the next message reports it."""
        self._keep(ticket, outcome)
        if self._fallback.holds_redis_back:
            self._fallback.heed(outcome)
        elif len(self._noted) >= MOST_NOTED or self._fallback.has_started():
            self.flush()

    def flush(self) -> None:
        """Report the noted outcomes, without waiting for Redis."""
        if self._fallback.holds_redis_back:
            return
        noted = self._take_noted()
        if noted and self._run(self._scripts.report, *self._told(noted), waits=False) is None:
            self._put_back(noted)

    def abandon(self, items: Sequence[str]) -> None:
        """Forget limited items that will not ask again: their job failed or was cancelled.

        This is the last message of a step, so it also tells Redis which items started without it.
        """
        self.flush()
        if items or self._fallback.has_started():
            self._run(self._scripts.control, "abandon", *items)

    def leave(self) -> None:
        """Give up the job's place in the line of waiting jobs; the step asks no more."""
        if self._in_line is not None:
            self._run(self._scripts.control, "leave", self._in_line)
            self._in_line = None

    def pause(self) -> bool:
        """Stop all starts until `resume`. Return False if Redis is away."""
        return self._run(self._scripts.control, "pause") is not None

    def resume(self) -> bool:
        """End a pause and a quota closure, with a ramp. Return False if Redis is away."""
        return self.align(Standing())

    def align(self, standing: Standing) -> bool:
        """Apply exactly the pause and the quota closure of the database.

        The circuit breaker is left to its probe calls. Return False if Redis is away.
        """
        closed_until, is_paused = standing.closed_until or 0, int(standing.is_paused)
        reply = self._run(self._scripts.control, "align", closed_until, is_paused)
        return reply is not None

    def rearm(self, standing: Standing, *, asked_tokens: int = 0) -> bool:
        """Restore the database's holds and calls after Redis was emptied; the first call counts.

        Return False if Redis is away.
        """
        past = standing.past
        spent = [] if past is None else bookings(past, self._quota, asked_tokens)
        reply = self._run(
            self._scripts.control,
            "rearm",
            standing.outage_since or 0,
            standing.closed_until or 0,
            int(standing.is_paused),
            int(past is not None),
            int(past is not None and past.is_calm and not standing.has_hold),
            *(number for booking in spent for number in booking),
        )
        if reply and standing.has_hold:
            logger.warning(
                "Redis was empty; the rate limiter of %s %s applies the database's open holds",
                self.provider,
                self.model,
                extra={"action": "limiter_rearmed"},
            )
        return reply is not None

    def state(self) -> RateLimiterState:
        """Return the present state."""
        reply = self._run(self._scripts.state)
        if reply is None:
            return RateLimiterState(provider=self.provider, model=self.model, is_local=True)
        return state_of(self.provider, self.model, self._quota, reply)

    def _reported(self, ticket: Ticket, outcome: Outcome) -> tuple[str | float, ...]:
        hint = outcome.retry_after_s
        if outcome.kind is OutcomeKind.QUOTA:
            now = self._wall()
            reset = resets_at(outcome.quota_id, hint, datetime.fromtimestamp(now, UTC))
            hint = reset.timestamp() - now
        return (
            ticket.id,
            self._moved.get(ticket.id, ticket.bucket),
            ticket.prompt_version,
            ticket.item,
            outcome.kind.value,
            ticket.tokens,
            ticket.estimate,
            ticket.generation,
            ticket.epoch,
            -1 if outcome.input_tokens is None else outcome.input_tokens,
            -1 if hint is None else hint,
        )

    def _run(self, script: Script, *arguments: str | float, waits: bool = True) -> Any:
        """Run a script and return its reply; True without `waits`; None if Redis is away."""
        if self._fallback.holds_redis_back:
            return None
        noted: list[_NotedOutcome] = []
        try:
            self._tell_started()
            run = (script, self._with_parameters(arguments))
            noted = self._take_noted()
            told = self._with_parameters(self._told(noted))
            runs = [(self._scripts.report, told), run] if noted else [run]
            reply = self._wire.run(*runs, waits=waits)
        except redis.RedisError:
            # Redis may have taken them all the same: a second report of a call changes nothing.
            self._put_back(noted)
            return None
        # Only an ask books the owed starts; after another script Redis would never learn of them.
        if script is self._scripts.admit:
            self._fallback.recover()
        return reply

    def _with_parameters(self, arguments: Sequence[Argument]) -> list[Argument]:
        sent: list[Argument] = [self._parameters.packed(self._guard_s), *arguments]
        if self._sends_time:
            sent.append(f"{self._wall():.6f}")
        return sent

    def _keep(self, ticket: Ticket, outcome: Outcome) -> None:
        """Note an outcome, unless Redis has not booked the call: it would change nothing there."""
        if ticket.is_local:
            return
        with self._lock:
            self._noted.append(_NotedOutcome(self._clock(), ticket, outcome))
            del self._noted[:-MOST_KEPT]

    def _give_back(self, ids: Sequence[str], asks: Sequence[Ask]) -> None:
        """Note calls that will not start: Redis may have admitted them, but did not say so.

        The requests stay booked. The place of a probe call becomes free at once.
        """
        for ticket_id, ask in zip(ids, asks, strict=True):
            asked = _ticket(ticket_id, ask, 0.0, generation=0, epoch=0, bucket="", tokens=0)
            self._keep(asked, _SAYS_NOTHING)

    def _take_noted(self) -> list[_NotedOutcome]:
        # Each script comes here first, and mostly nothing is noted: look before taking the lock.
        if not self._noted:
            return []
        with self._lock:
            noted, self._noted = self._noted, []
        return noted

    def _told(self, noted: Sequence[_NotedOutcome]) -> list[str | float]:
        """Return the arguments by which `report.lua` learns outcomes."""
        fresh_from = self._clock() - FRESH_S
        told: list[str | float] = []
        for at, ticket, outcome in noted:
            if at < fresh_from:
                tokens = outcome.input_tokens
                told += self._reported(ticket, replace(_SAYS_NOTHING, input_tokens=tokens))
            else:
                told += self._reported(ticket, outcome)
        return told

    def _put_back(self, noted: list[_NotedOutcome]) -> None:
        if noted:
            with self._lock:
                self._noted = [*noted, *self._noted][-MOST_KEPT:]

    def _tell_started(self) -> None:
        """Tell Redis first which items started without Redis.

        Otherwise a report would store these items as limited again.
        """
        items = self._fallback.take_started()
        if not items:
            return
        try:
            self._wire.run((self._scripts.control, self._with_parameters(["started", *items])))
        except redis.RedisError:
            self._fallback.keep_started(items)
            raise


def _ticket(ticket_id: str, ask: Ask, asked_at: float, **booked: Any) -> Ticket:
    return Ticket(
        id=ticket_id,
        item=ask.item,
        estimate=ask.tokens,
        prompt_version=ask.prompt_version,
        asked_at=asked_at,
        **booked,
    )


def limiter_client(url: str) -> redis.Redis:
    """Return a client that gives up on Redis after `REDIS_TIMEOUT_S`."""
    # One immediate second try replaces a connection that the server closed while it was idle.
    return redis.Redis(
        **{
            **redis_kwargs(url),
            "retry": Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
            "socket_timeout": REDIS_TIMEOUT_S,
            "socket_connect_timeout": REDIS_TIMEOUT_S,
        }
    )
