"""Real processes at one rate limiter, in Redis's time: fan-outs, bare workers, and their reports.

A process is spawned and runs a function of this module, so it knows nothing but its arguments.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import redis

from pipeline.core.errors import CallError, ErrorCode
from pipeline.execution.fanout import Decision, FanOut, Item, Limits
from pipeline.ratelimit import CooldownRole, Later, Outcome, Quota, RateLimiter, Ticket, Tuning, Why
from pipeline.ratelimit.limiter import limiter_client
from pipeline.ratelimit.scripts import keys_of
from tests.support.limited_fanout import Answer, LimitedRun, half_limited
from tests.support.limiter_simulation import UNLIMITED, admitted, ask
from tests.support.workers import until

SPAWN = multiprocessing.get_context("spawn")
FAST = Tuning(cooldown_base_s=0.02, cooldown_cap_s=0.05, quiet_s=600, ramp_step_s=0.03)
LEASES = keys_of("gemini", "m")[3]
LATENCY_S = 0.02


@dataclass(frozen=True)
class RunObservations:
    """The report of one process about its run."""

    succeeded: list[str]
    starts: list[tuple[int, float]]
    """Generation and moment of each admission; seconds by Redis's clock."""
    roles: list[CooldownRole]
    cooldowns: dict[int, float]
    """Seconds of the cooldowns that this process set, by the generation that they began."""
    local_starts: int
    """Admissions while Redis was away."""


class WatchedRun(LimitedRun):
    """A run that records its admissions by Redis's clock, and the cooldowns that it sets."""

    def __init__(self, limiter: RateLimiter, job: str, answer: Answer, client: redis.Redis) -> None:
        super().__init__(limiter, job, answer)
        self.starts: list[tuple[int, float]] = []
        self.cooldowns: dict[int, float] = {}
        self.local_starts = 0
        self._client = client

    def admit_many(self, items: Sequence[Item[str, str]], now: float) -> tuple[int, float | None]:
        """Ask, and record the moment from which the leases of the tickets count."""
        started, wait = super().admit_many(items, now)
        for item in items[:started]:
            ticket = self._tickets[item.key]
            self.local_starts += ticket.is_local
            with suppress(redis.RedisError):
                ends = self._client.zscore(LEASES, ticket.id)
                if isinstance(ends, float):
                    self.starts.append((ticket.generation, ends - Tuning().lease_s))
        return started, wait

    def decide(
        self, item: Item[str, str], attempt: int, error: BaseException, now: float
    ) -> Decision[str, str]:
        """Report, and record the length of a cooldown that begins with the report."""
        generation = self._tickets[item.key].generation
        decision = super().decide(item, attempt, error, now)
        if self.roles[-1] is CooldownRole.COORDINATOR:
            self.cooldowns[generation + 1] = decision.delay_s  # type: ignore[union-attr]
        return decision

    def seen(self) -> RunObservations:
        """Return the report of the run."""
        return RunObservations(
            self.succeeded, self.starts, self.roles, self.cooldowns, self.local_starts
        )


def limiter_on(client: redis.Redis, tuning: Tuning, quota: Quota = UNLIMITED) -> RateLimiter:
    """Return the rate limiter that all of the processes share."""
    return RateLimiter("gemini", "m", client=client, quota=quota, tuning=tuning)


def play(run: LimitedRun, keys: list[str], calls: int) -> None:
    """Run a step with these items to its end."""
    run.follow(
        FanOut(
            [Item(key=key, group=key, size=1) for key in keys],
            call=run.call,
            decide=run.decide,
            admit_many=run.admit_many,
            limits=Limits(groups=1000, calls=calls, call_deadline_s=600),
        )
    )


def _ended(run: WatchedRun, keys: list[str], calls: int) -> RunObservations:
    play(run, keys, calls)
    return run.seen()


def half_of_calls_limited(url: str, job: str, keys: list[str], calls: int) -> RunObservations:
    """Run a step whose provider takes `LATENCY_S` and limits half of the calls."""
    client, answer = redis.Redis.from_url(url), half_limited()

    def slowly(ticket: Ticket) -> None:
        threading.Event().wait(LATENCY_S)
        answer(ticket)

    # A quota that never binds: the limiter counts the calls of the window all the same.
    limiter = limiter_on(client, FAST, Quota(requests=10**6))
    return _ended(WatchedRun(limiter, job, slowly, client), keys, calls)


def closed_for(
    url: str, job: str, keys: list[str], calls: int, generations: int
) -> RunObservations:
    """Run a step whose provider limits every call until `generations` cooldowns are over."""
    client = redis.Redis.from_url(url)

    def answer(ticket: Ticket) -> None:
        if ticket.generation < generations:
            raise CallError(code=ErrorCode.RATE_LIMIT)

    return _ended(WatchedRun(limiter_on(client, FAST), job, answer, client), keys, calls)


def open_to_all(url: str, job: str, keys: list[str], calls: int, tuning: Tuning) -> RunObservations:
    """Run a step whose provider limits nothing."""
    client = redis.Redis.from_url(url)
    run = WatchedRun(limiter_on(client, tuning), job, lambda ticket: None, client)
    return _ended(run, keys, calls)


def closed_until_frozen(url: str, job: str, keys: list[str], folder: Path) -> RunObservations:
    """Run a step that is limited until the file `frozen` exists; note a start without Redis."""
    client = limiter_client(url)

    def answer(ticket: Ticket) -> None:
        # Otherwise the calls in flight could end the step before a call starts without Redis.
        has_started = ticket.is_local or (folder / job).exists()
        if not (has_started and (folder / "frozen").exists()):
            raise CallError(code=ErrorCode.RATE_LIMIT)

    class Noting(WatchedRun):
        def admit_many(
            self, items: Sequence[Item[str, str]], now: float
        ) -> tuple[int, float | None]:
            answer = super().admit_many(items, now)
            if self.local_starts and not (folder / job).exists():
                (folder / job).touch()
            return answer

    tuning = Tuning(cooldown_base_s=0.5, cooldown_cap_s=0.5, ramp_step_s=0.05)
    # Without Redis, a process uses a part of this quota: twenty starts a second.
    limiter = limiter_on(client, tuning, Quota(requests=60_000))
    run = Noting(limiter, job, answer, client)
    play(run, keys, 10)
    until(lambda: not limiter.state().is_local)
    return run.seen()


def limited_and_stuck(
    url: str, job: str, keys: list[str], tuning: Tuning, told: Connection
) -> None:
    """Limit all of the calls at once, report their roles, and hang."""
    limiter, together = limiter_on(redis.Redis.from_url(url), tuning), threading.Barrier(len(keys))

    class Stuck(LimitedRun):
        def decide(
            self, item: Item[str, str], attempt: int, error: BaseException, now: float
        ) -> Decision[str, str]:
            decision = super().decide(item, attempt, error, now)
            if len(self.roles) == len(keys):
                told.send([role.value for role in self.roles])
                threading.Event().wait()
            return decision

    def answer(ticket: Ticket) -> None:
        together.wait()
        raise CallError(code=ErrorCode.RATE_LIMIT)

    play(Stuck(limiter, job, answer), keys, len(keys))


@dataclass(frozen=True)
class Told:
    """The answers of the rate limiter to one bare worker."""

    role: CooldownRole
    was_redistributed: bool


def at_once(url: str, items: list[str], limited: set[str], everybody: int) -> list[Told]:
    """Start a worker for each item; all workers of the cluster report at once, then ask again.

    Each worker has its own rate limiter and one call in flight. The calls of the items in `limited`
    end with a 429. The workers meet when `everybody` workers of all processes are there.
    """
    client = redis.Redis.from_url(url)

    def meet(where: str) -> None:
        client.incr(where)
        until(lambda: int(client.get(where) or 0) >= everybody)

    def work(item: str) -> Told:
        limiter = limiter_on(client, Tuning(cooldown_base_s=0.3, ramp_first=1000))
        ticket = admitted(limiter, ask(item=item))
        meet("all-in-flight")
        code = ErrorCode.RATE_LIMIT if item in limited else None
        role = limiter.report(ticket, Outcome(code=code)).role
        meet("all-reported")
        while isinstance(answer := limiter.admit(ask(item=item)), Later):
            assert answer.why in {Why.COOLDOWN, Why.TURN}
            # The step executor waits the same way: the answer says when to ask again.
            time.sleep(answer.seconds)
        limiter.report(answer.ticket, Outcome.success(0))
        return Told(role, answer.ticket.is_redistributed)

    with ThreadPoolExecutor(max(len(items), 1)) as workers:
        return list(workers.map(work, items))
