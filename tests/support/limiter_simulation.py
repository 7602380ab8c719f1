"""A cluster in simulated time with a real Redis: workers, their rate limiters and a provider.

The limiter's scripts read the simulated time, so an hour passes in seconds. One thread, one heap of
events and a seed make a run repeatable.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import redis

from pipeline.core.errors import ErrorCode
from pipeline.execution.fanout.scheduler import MOST_AT_ONCE
from pipeline.ratelimit import (
    Ask,
    Go,
    Later,
    Outcome,
    Quota,
    RateLimiter,
    Reported,
    Standing,
    Ticket,
    Tuning,
)

LUA_CLOCK = "local function clock() return tonumber(table.remove(ARGV)) end"
BEGIN = 1_900_000_000.0
UNLIMITED = Quota()


class Simulation:
    """The simulated clock and its events."""

    def __init__(
        self, client: redis.Redis, quota: Quota = UNLIMITED, tuning: Tuning | None = None
    ) -> None:
        self.now = BEGIN
        self.client = client
        self.quota = quota
        self.tuning = tuning or Tuning()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def limiter(
        self, model: str = "m", *, standing: Callable[[], Standing | None] | None = None
    ) -> RateLimiter:
        """Return the rate limiter of one more process for the same provider and model."""
        return RateLimiter(
            "gemini",
            model,
            client=self.client,
            quota=self.quota,
            tuning=self.tuning,
            clock=lambda: self.now,
            wall=lambda: self.now,
            lua_clock=LUA_CLOCK,
            standing=standing,
        )

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Plan an action at a moment of the simulated clock."""
        heapq.heappush(self._events, (moment, next(self._numbers), action))

    def flush(self) -> None:
        """Empty Redis."""
        self.client.flushdb()

    def run(self, until: float | None = None) -> None:
        """Play all events, or the events until a moment."""
        while self._events and (until is None or self._events[0][0] <= until):
            moment, _, action = heapq.heappop(self._events)
            self.now = max(self.now, moment)
            action()
        if until is not None:
            self.now = max(self.now, until)


def ask(job: str = "job", item: str = "item", tokens: int = 0, version: str = "v1") -> Ask:
    """Make an ask with defaults."""
    return Ask(job=job, item=item, tokens=tokens, prompt_version=version)


def admitted(limiter: RateLimiter, wanted: Ask | None = None) -> Ticket:
    """Ask for a call that the rate limiter must admit now; return its ticket."""
    answer = limiter.admit(wanted or ask())
    assert isinstance(answer, Go), answer
    return answer.ticket


def refused(limiter: RateLimiter, wanted: Ask | None = None) -> Later:
    """Ask for a call that the rate limiter must refuse now; return the answer."""
    answer = limiter.admit(wanted or ask())
    assert isinstance(answer, Later)
    return answer


def fail(
    limiter: RateLimiter, ticket: Ticket, code: ErrorCode, hint_s: float | None = None
) -> Reported:
    """Report a failed call."""
    return limiter.report(ticket, Outcome(code=code, retry_after_s=hint_s))


def settle(simulation: Simulation, limiter: RateLimiter) -> None:
    """Let the first window, which counts as spent, and the first ramp pass."""
    limiter.state()
    simulation.now += 2 * simulation.quota.window_s
    limiter.report(admitted(limiter, ask(job="settler")), Outcome.success(0))
    simulation.now += 2 * simulation.quota.window_s


@dataclass
class SimulatedProvider:
    """A provider with exact sliding windows over arrivals, like the emulator; 0 means no limit."""

    requests: int = 0
    tokens: int = 0
    window_s: float = 60.0
    arrivals: deque[tuple[float, int]] = field(default_factory=deque)
    refusals: list[float] = field(default_factory=list)

    def answer(self, moment: float, tokens: int) -> Outcome:
        """Answer a call that arrives at `moment`."""
        while self.arrivals and self.arrivals[0][0] <= moment - self.window_s:
            self.arrivals.popleft()
        used = sum(t for _, t in self.arrivals)
        too_many = self.requests and len(self.arrivals) >= self.requests
        if too_many or (self.tokens and self.arrivals and used + tokens > self.tokens):
            self.refusals.append(moment)
            hint = self.arrivals[0][0] + self.window_s - moment
            return Outcome(code=ErrorCode.RATE_LIMIT, retry_after_s=hint)
        self.arrivals.append((moment, tokens))
        return Outcome.success(tokens)


@dataclass(frozen=True)
class Start:
    """An admitted call."""

    moment: float
    job: str
    item: str
    waited_s: float


class SimulatedWorker:
    """A worker process with one job, `slots` calls in flight, and one ask at a time."""

    def __init__(
        self,
        simulation: Simulation,
        job: str,
        items: Iterable[tuple[str, int]],
        answer: Callable[[float, int], Outcome],
        *,
        seed: int = 1,
        slots: int = 30,
        latency_s: float = 8.0,
        fails_after_s: float = 0.02,
        estimate: Callable[[int], int] = lambda tokens: tokens,
        standing: Callable[[], Standing | None] | None = None,
    ) -> None:
        self._simulation = simulation
        self.limiter = simulation.limiter(standing=standing)
        self.job = job
        self.waiting = deque(items)
        self.succeeded: list[str] = []
        self.starts: list[Start] = []
        self.in_flight = 0
        self._answer = answer
        self._estimate = estimate
        self._random = random.Random(seed)
        self.slots = slots
        self._latency_s = latency_s
        self._fails_after_s = fails_after_s
        self._asks_at: float | None = None
        self._free_since = simulation.now
        self._ask_at(simulation.now + self._random.random() * 0.01)

    def _ask_at(self, moment: float) -> None:
        if self._asks_at is None:
            self._asks_at = moment
            self._simulation.at(moment, self._ask)

    def _ask(self) -> None:
        self._asks_at = None
        if not self.waiting or self.in_flight >= self.slots:
            return
        simulation = self._simulation
        # Like the fan-out: all free slots ask together.
        free = min(self.slots - self.in_flight, len(self.waiting), MOST_AT_ONCE)
        asks = [
            ask(self.job, item, self._estimate(tokens))
            for item, tokens in itertools.islice(self.waiting, free)
        ]
        for answer in self.limiter.admit_many(asks):
            if isinstance(answer, Later):
                # A real process asks a little later than the moment in the answer.
                self._ask_at(simulation.now + answer.seconds + 0.002 * self._random.random())
                return
            self._begin(answer.ticket)
        self._ask_at(simulation.now + 0.001)

    def _begin(self, ticket: Ticket) -> None:
        simulation = self._simulation
        item, tokens = self.waiting.popleft()
        self.in_flight += 1
        waited = simulation.now - self._free_since
        self.starts.append(Start(simulation.now, self.job, item, waited))
        self._free_since = simulation.now
        arrives = simulation.now + 0.1 * self._random.random()
        ends = arrives + self._latency_s * (0.5 + self._random.random())
        simulation.at(arrives, lambda: self._arrive(ticket, item, tokens, ends))

    def _arrive(self, ticket: Ticket, item: str, tokens: int, ends: float) -> None:
        outcome = self._answer(self._simulation.now, tokens)
        is_prompt = outcome.code in {ErrorCode.RATE_LIMIT, ErrorCode.API_5XX}
        self._simulation.at(
            self._simulation.now + self._fails_after_s if is_prompt else ends,
            lambda: self._finish(ticket, item, tokens, outcome),
        )

    def _finish(self, ticket: Ticket, item: str, tokens: int, outcome: Outcome) -> None:
        if self.in_flight == self.slots:
            self._free_since = self._simulation.now
        self.in_flight -= 1
        self.limiter.report(ticket, outcome)
        if outcome.code is None:
            self.succeeded.append(item)
        else:
            self.waiting.appendleft((item, tokens))
        self._ask_at(self._simulation.now)


def busiest(moments: Iterable[float], seconds: float) -> int:
    """Return the largest number of starts in any span of `seconds`."""
    window: deque[float] = deque()
    most = 0
    for moment in sorted(moments):
        window.append(moment)
        while window[0] <= moment - seconds:
            window.popleft()
        most = max(most, len(window))
    return most
