"""The rate limiter and the fan-out together lose nothing, and spend no attempt on a 429."""

from __future__ import annotations

from collections import Counter

import redis

from pipeline.core.errors import CallError, ErrorCode
from pipeline.execution.fanout.simulation import SimulatedClock
from pipeline.ratelimit import Breaker, Ticket
from tests.support.limited_fanout import Answer, half_limited, limited_calls, simulated_run

ITEMS = [f"item-{n}" for n in range(100)]


def test_a_hundred_items_on_twenty_calls_half_of_them_limited_all_come_through_once(
    redis_db: redis.Redis,
) -> None:
    run, _ = simulated_run(redis_db, ITEMS, lambda clock: half_limited(), calls=20)

    counters = run.limiter.state().counters
    assert Counter(run.succeeded) == Counter(ITEMS)
    assert run.attempts_spent == 0
    assert (
        counters.rate_limited_items_stored
        == counters.rate_limited_items_redistributed
        == counters.rate_limit_generations + counters.rate_limit_participants
        == limited_calls(ITEMS)
    )


def test_an_outage_of_a_minute_spends_fewer_attempts_than_trip_the_breaker(
    redis_db: redis.Redis,
) -> None:
    def answers(clock: SimulatedClock) -> Answer:
        def answer(ticket: Ticket) -> None:
            if 3 <= clock.now < 63:
                raise CallError(code=ErrorCode.API_5XX)

        return answer

    run, clock = simulated_run(redis_db, ITEMS, answers, calls=30)

    state = run.limiter.state()
    assert Counter(run.succeeded) == Counter(ITEMS)
    assert run.attempts_spent < 20
    assert state.breaker is Breaker.CLOSED
    assert state.counters.breaker_trips == 1
    assert clock.now < 90
