"""Gate and fan-out together: nothing lost, nothing doubled, no attempt spent on a limit."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import redis

from pipeline.errors import CallError, ErrorCode
from pipeline.fanout.simulated import SimulatedClock
from pipeline.gate import Breaker, Gate, Tuning
from tests.gate_simulation import UNLIMITED
from tests.gated_fanout import Answer, half_limited, real_run, simulated_run

ITEMS = [f"item-{n}" for n in range(100)]


def test_a_hundred_items_on_twenty_calls_half_of_them_limited_all_come_through_once(
    redis_db: redis.Redis,
) -> None:
    run, _ = simulated_run(redis_db, ITEMS, lambda clock: half_limited(1, 50), calls=20)

    counters = run.gate.state().counters
    assert Counter(run.succeeded) == Counter(ITEMS)
    assert run.attempts_spent == 0
    assert counters.rate_limited_items_stored == counters.rate_limited_items_redistributed > 0
    assert (
        counters.rate_limit_generations + counters.rate_limit_participants
        >= counters.rate_limited_items_stored
    )


def test_a_hundred_items_in_three_processes_half_of_them_limited_all_come_through_once(
    redis_db: redis.Redis,
) -> None:
    spawn = multiprocessing.get_context("spawn")
    shares = [ITEMS[n::3] for n in range(3)]
    with ProcessPoolExecutor(3, mp_context=spawn) as pool:
        running = [
            pool.submit(real_run, os.environ["REDIS_URL"], f"job{'x' * n}", share, 7, 17)
            for n, share in enumerate(shares)
        ]
        succeeded = [item for one in running for item in one.result()]

    state = Gate("gemini", "m", client=redis_db, quota=UNLIMITED, tuning=Tuning()).state()
    assert Counter(succeeded) == Counter(ITEMS)
    assert (
        state.counters.rate_limited_items_stored
        == state.counters.rate_limited_items_redistributed
        > 0
    )
    assert (state.in_flight, state.parked_items) == (0, 0)


def test_an_outage_of_a_minute_spends_fewer_attempts_than_trip_the_breaker(
    redis_db: redis.Redis,
) -> None:
    def answers(clock: SimulatedClock) -> Answer:
        def answer(item: str) -> None:
            if 3 <= clock.now < 63:
                raise CallError(code=ErrorCode.API_5XX)

        return answer

    run, clock = simulated_run(redis_db, ITEMS, answers, calls=30)

    state = run.gate.state()
    assert Counter(run.succeeded) == Counter(ITEMS)
    assert run.attempts_spent < 20
    assert state.breaker is Breaker.CLOSED
    assert state.counters.breaker_trips == 1
    assert clock.now < 90
