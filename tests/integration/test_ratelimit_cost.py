"""The rate limiter costs less than 5 % of the throughput (requirement 50).

The calls run in simulated time, so the machine's load does not matter: the same slots make the same
calls with the limiter and without it, and the completed calls are counted. The limiter decides in a
real Redis. Its own work counts too: each decision takes the processor time that it really used.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pytest
import redis

from pipeline.ratelimit import Go, Outcome, Quota
from tests.support.limiter_simulation import BEGIN, Simulation, ask

JOBS, SLOTS = 3, 30
"""Slots over all jobs. With calls of 2 s the slots start about 800 calls a minute."""
WARM_UP_S, MEASURED_S = 90.0, 60.0
"""An empty Redis counts its window as spent and starts in the ramp; both are over by then."""
MEDIAN_S, SIGMA = 2.0, 0.5
QUOTA = Quota(requests=2_000, tokens=40_000_000)
"""More than the slots can use, so that only the cost of the limiter is measured."""
SHARE = 0.95
SCRIPTS_A_CALL = 3.0
"""One ask, one report, and room for the asks that must wait."""

T = TypeVar("T")


@dataclass
class SlotsRun:
    """What the slots of one run have done."""

    completed: int = 0
    """Calls that ended in the measured time."""
    calls: int = 0


def _timed(action: Callable[[], T]) -> tuple[float, T]:
    """Return the processor seconds of an action in this thread, and its result."""
    began = time.thread_time()
    found = action()
    return time.thread_time() - began, found


def _completed(client: redis.Redis, *, with_limiter: bool) -> SlotsRun:
    """Keep all slots busy, and count the completed calls."""
    client.flushdb()
    simulation = Simulation(client, QUOTA)
    latency = random.Random(7)
    counted = SlotsRun()
    limiters = [simulation.limiter() for _ in range(JOBS)]

    def start(slot: int, number: int) -> None:
        if not with_limiter:
            run(slot, number, None)
            return
        limiter = limiters[slot % JOBS]
        wanted = ask(job=f"job-{slot % JOBS}", item=f"{slot}-{number}", tokens=8_000)
        took_s, answer = _timed(lambda: limiter.admit(wanted))
        if isinstance(answer, Go):
            ticket = answer.ticket
            run(slot, number, lambda: limiter.report(ticket, Outcome.success(8_000)), took_s)
        else:
            simulation.at(simulation.now + answer.seconds, lambda: start(slot, number))

    def run(
        slot: int, number: int, report: Callable[[], object] | None, asked_s: float = 0.0
    ) -> None:
        counted.calls += 1
        ends = simulation.now + asked_s + latency.lognormvariate(0.0, SIGMA) * MEDIAN_S

        def end() -> None:
            reported_s = _timed(report)[0] if report else 0.0
            if WARM_UP_S <= simulation.now - BEGIN < WARM_UP_S + MEASURED_S:
                counted.completed += 1
            simulation.at(simulation.now + reported_s, lambda: start(slot, number + 1))

        simulation.at(ends, end)

    for slot in range(SLOTS):
        simulation.at(BEGIN, partial(start, slot, 0))
    simulation.run(until=BEGIN + WARM_UP_S + MEASURED_S)
    return counted


def test_the_limiter_costs_less_than_five_per_cent_of_the_completed_calls(
    redis_db: redis.Redis,
) -> None:
    without = _completed(redis_db, with_limiter=False)
    redis_db.config_resetstat()
    with_limiter = _completed(redis_db, with_limiter=True)

    scripts = redis_db.info("commandstats")["cmdstat_evalsha"]["calls"]
    # 30 slots make calls of 2.3 s on average.
    assert without.completed > 700
    assert with_limiter.completed >= SHARE * without.completed
    assert scripts <= SCRIPTS_A_CALL * with_limiter.calls


def test_a_limiter_that_delays_each_call_would_be_found(
    redis_db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = _completed(redis_db, with_limiter=False)
    # The measure itself is tested: 150 ms of work in each report are 6 % of a call.
    monkeypatch.setattr(time, "thread_time", iter(n * 0.15 for n in range(10**9)).__next__)
    slow = _completed(redis_db, with_limiter=True)

    assert slow.completed < SHARE * without.completed
