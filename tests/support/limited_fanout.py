"""A fan-out whose starts the rate limiter admits, joined as in the step executor."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count

import redis

from pipeline.core.errors import CallError, ErrorCode
from pipeline.execution.fanout import CancelEvent, Decision, FanOut, Item, Limits, Retry, Succeeded
from pipeline.execution.fanout.simulation import SimulatedClock, SimulatedExecutor
from pipeline.ratelimit import Ask, CooldownRole, Later, Outcome, RateLimiter, Ticket, Tuning
from tests.support.limiter_simulation import BEGIN, LUA_CLOCK, UNLIMITED

Answer = Callable[[Ticket], None]
"""Answers the call of a ticket, or raises the error of the call."""


def _is_limited(item: str, call: int) -> bool:
    return random.Random(f"{item} {call}").random() < 0.5


def half_limited() -> Answer:
    """Limit half of the calls; the item's name decides which of its calls are limited."""
    calls: Counter[str] = Counter()

    def answer(ticket: Ticket) -> None:
        calls[ticket.item] += 1
        if _is_limited(ticket.item, calls[ticket.item]):
            raise CallError(code=ErrorCode.RATE_LIMIT)

    return answer


def limited_calls(items: Iterable[str]) -> int:
    """Count the calls that `half_limited` limits until all of the items have succeeded."""
    return sum(next(call for call in count(1) if not _is_limited(item, call)) - 1 for item in items)


class LimitedRun:
    """One step with its items, and the tickets of its calls in flight."""

    def __init__(self, limiter: RateLimiter, job: str, answer: Answer) -> None:
        self.limiter = limiter
        self.succeeded: list[str] = []
        self.attempts_spent = 0
        self.roles: list[CooldownRole] = []
        self._job = job
        self._answer = answer
        self._tickets: dict[str, Ticket] = {}

    def call(self, item: Item[str, str], attempt: int, cancel: CancelEvent) -> str:
        """Make one call, in a call thread."""
        ticket = self._tickets[item.key]
        self.limiter.sent(ticket)
        self._answer(ticket)
        return item.key

    def admit_many(self, items: Sequence[Item[str, str]], now: float) -> tuple[int, float | None]:
        """Ask the rate limiter for the first waiting items."""
        started = 0
        asks = [Ask(job=self._job, item=item.key, tokens=100) for item in items]
        for item, admission in zip(items, self.limiter.admit_many(asks), strict=False):
            if isinstance(admission, Later):
                return started, admission.seconds
            self._tickets[item.key] = admission.ticket
            started += 1
        return started, None

    def decide(
        self, item: Item[str, str], attempt: int, error: BaseException, now: float
    ) -> Decision[str, str]:
        """Report a failed call, and retry when calls may start again."""
        assert isinstance(error, CallError)
        ticket = self._tickets.pop(item.key)
        reported = self.limiter.report(ticket, Outcome.failure(error))
        self.roles.append(reported.role)
        is_outage = reported.is_breaker_open
        spends = error.code is not ErrorCode.RATE_LIMIT and not is_outage
        self.attempts_spent += spends
        return Retry(delay_s=reported.starts_in_s, spends_attempt=spends)

    def follow(self, fan_out: FanOut[str, str, str]) -> None:
        """Consume the events of the run to its end."""
        with fan_out as run:
            for event in run.events():
                if isinstance(event, Succeeded):
                    self.limiter.note(self._tickets.pop(event.key), Outcome.success(100))
                    self.succeeded.append(event.key)
        self.limiter.abandon([])


def simulated_run(
    client: redis.Redis, keys: list[str], answer: Callable[[SimulatedClock], Answer], calls: int
) -> tuple[LimitedRun, SimulatedClock]:
    """Play a step in simulated time."""
    clock = SimulatedClock()
    limiter = RateLimiter(
        "gemini",
        "m",
        client=client,
        quota=UNLIMITED,
        tuning=Tuning(),
        clock=clock.monotonic,
        wall=lambda: BEGIN + clock.now,
        lua_clock=LUA_CLOCK,
    )
    run = LimitedRun(limiter, "job", answer(clock))
    run.follow(
        FanOut(
            [Item(key=key, group=key, size=1) for key in keys],
            call=run.call,
            decide=run.decide,
            admit_many=run.admit_many,
            limits=Limits(groups=1000, calls=calls, call_deadline_s=1e9, tick_s=1000),
            clock=clock,
            executor=partial(SimulatedExecutor, latency=lambda item, attempt: 1.0),
        )
    )
    return run, clock
