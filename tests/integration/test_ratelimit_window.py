"""The limiter's windows of requests, input tokens and days are never exceeded, and well used."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
import redis

from pipeline.core.errors import ErrorCode
from pipeline.ratelimit import Go, Later, Outcome, Quota, Tuning, Why
from pipeline.ratelimit.quota_reset import day_ends_at
from tests.support.limiter_simulation import (
    BEGIN,
    SimulatedProvider,
    SimulatedWorker,
    Simulation,
    admitted,
    ask,
    busiest,
    fail,
    refused,
    settle,
)

MIDNIGHT = day_ends_at(datetime.fromtimestamp(BEGIN, UTC)).timestamp()


def test_an_hour_at_the_quota_draws_no_429_and_uses_it(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=60))
    provider = SimulatedProvider(requests=60)
    workers = [
        SimulatedWorker(
            simulation, f"job-{n}", ((f"{n}-{i}", 0) for i in range(4000)), provider.answer
        )
        for n in range(3)
    ]

    simulation.run(until=BEGIN + 3600)

    starts = [start.moment for worker in workers for start in worker.starts]
    assert provider.refusals == []
    assert busiest(starts, 60.0) <= 60
    assert len([s for s in starts if s > BEGIN + 60]) >= 0.97 * 59 * 60


def test_input_tokens_bind_before_requests_do(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=300, tokens=100_000))
    provider = SimulatedProvider(requests=300, tokens=100_000)
    worker = SimulatedWorker(
        simulation, "job", ((str(i), 2_000) for i in range(2000)), provider.answer, slots=60
    )

    simulation.run(until=BEGIN + 660)

    starts = [start.moment for start in worker.starts]
    assert provider.refusals == []
    assert busiest(starts, 60.0) <= 50
    assert len([s for s in starts if s > BEGIN + 60]) >= 0.97 * 10 * 50


def test_estimates_that_are_too_low_and_scattered_draw_no_429_after_a_minute(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, Quota(requests=300, tokens=1_000_000))
    provider = SimulatedProvider(requests=300, tokens=1_000_000)
    draw = random.Random(3)
    workers = [
        SimulatedWorker(
            simulation,
            f"job-{n}",
            ((f"{n}-{i}", int(8_000 * draw.uniform(0.7, 1.3))) for i in range(2000)),
            provider.answer,
            latency_s=18,
            estimate=lambda tokens: int(tokens * 0.7 * draw.uniform(0.85, 1.15)),
            seed=n,
        )
        for n in range(3)
    ]

    simulation.run(until=BEGIN + 660)

    starts = [start.moment for worker in workers for start in worker.starts]
    assert [moment for moment in provider.refusals if moment > BEGIN + 60] == []
    assert len([s for s in starts if s > BEGIN + 60]) >= 0.95 * 10 * 125


def test_estimates_that_are_wrong_by_half_are_corrected_for_each_prompt_version(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, Quota(tokens=1_000_000))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    for _ in range(3):
        limiter.report(admitted(limiter, ask(tokens=1_000)), Outcome.success(1_500))

    learned = admitted(limiter, ask(tokens=1_000))
    other = admitted(limiter, ask(tokens=1_000, version="v2"))

    assert learned.tokens == 1_500
    assert other.tokens == 1_000


def test_a_reply_gives_back_what_was_reserved_in_excess(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(tokens=10_000))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    ticket = admitted(limiter, ask(tokens=10_000))
    held = refused(limiter, ask(tokens=5_000))

    limiter.report(ticket, Outcome.success(4_000))

    assert held.why is Why.TOKENS
    assert limiter.state().tokens_used == 4_000
    admitted(limiter, ask(tokens=5_000, version="v2"))


def test_a_call_that_is_reported_twice_is_reconciled_once(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(tokens=10_000))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    ticket = admitted(limiter, ask(tokens=8_000))

    for _ in range(2):
        limiter.report(ticket, Outcome.success(4_000))

    assert limiter.state().tokens_used == 4_000
    assert limiter.state().in_flight == 0


def test_a_call_larger_than_the_quota_goes_into_an_empty_window(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(tokens=10_000))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    small = admitted(limiter, ask(tokens=100))
    limiter.report(small, Outcome.success(100))

    held = refused(limiter, ask(tokens=50_000, version="v2"))
    simulation.now += 60.3

    assert held.why is Why.TOKENS
    admitted(limiter, ask(tokens=50_000, version="v2"))


def test_a_refused_request_learns_when_the_window_has_room(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=2))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    admitted(limiter)
    simulation.now += 10
    admitted(limiter)

    held = refused(limiter)
    simulation.now += held.seconds

    assert held.why is Why.REQUESTS
    assert 50.15 <= held.seconds <= 50.202
    admitted(limiter)
    refused(limiter)


def test_the_window_is_lengthened_by_the_slowest_ways_to_the_provider(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, Quota(requests=2))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    ticket = admitted(limiter)
    simulation.now += 2.0
    limiter.sent(ticket)
    admitted(limiter)

    simulation.now += 58.3
    held = refused(limiter)

    assert limiter.state().guard_s == pytest.approx(2.0)
    assert 1.7 <= held.seconds <= 1.8


def test_an_empty_redis_counts_the_window_as_spent_and_begins_with_a_ramp(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, Quota(requests=300, tokens=1_000_000))
    limiter = simulation.limiter()

    held = refused(limiter, ask(tokens=1_000))
    state = limiter.state()

    assert 0.15 <= held.seconds <= 0.3
    assert (state.requests_used, state.tokens_used) == (300, 1_000_000)
    assert state.is_ramping


def test_an_empty_redis_lets_through_no_more_than_the_quota_at_its_own_rate(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, Quota(requests=300))
    worker = SimulatedWorker(
        simulation,
        "job",
        ((str(i), 0) for i in range(1000)),
        SimulatedProvider().answer,
        slots=500,
    )

    simulation.run(until=BEGIN + 50)

    starts = [start.moment for start in worker.starts]
    assert busiest(starts, 1.0) <= 6
    assert len(starts) >= 0.97 * 50 * 300 / 60.2


def test_a_flush_in_the_middle_of_full_work_draws_no_429(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=60, tokens=300_000))
    provider = SimulatedProvider(requests=60, tokens=300_000)
    worker = SimulatedWorker(
        simulation, "job", ((str(i), 4_000) for i in range(1000)), provider.answer, slots=60
    )
    for minute in (2.5, 5.1, 5.2):
        simulation.at(BEGIN + 60 * minute, simulation.flush)

    simulation.run(until=BEGIN + 480)

    assert provider.refusals == []
    assert len(worker.starts) >= 0.9 * 8 * 60


def test_a_days_quota_holds_until_midnight_in_california(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(per_day=2))
    limiter = simulation.limiter()
    admitted(limiter)
    admitted(limiter)

    held = refused(limiter)
    simulation.now += held.seconds + 0.001

    assert held.why is Why.DAY
    assert BEGIN + held.seconds == pytest.approx(MIDNIGHT, abs=0.01)
    admitted(limiter)


def test_a_provider_whose_day_is_used_up_closes_the_limiter_until_midnight_whatever_its_hint(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db)
    limiter = simulation.limiter()
    outcome = Outcome(
        code=ErrorCode.QUOTA_EXHAUSTED,
        retry_after_s=5.0,
        quota_id="GenerateRequestsPerDayPerProjectPerModel-FreeTier",
    )

    reported = limiter.report(admitted(limiter), outcome)

    assert reported.starts_in_s == pytest.approx(MIDNIGHT - BEGIN, abs=0.01)
    assert refused(limiter).why is Why.QUOTA
    assert limiter.state().closed_until == pytest.approx(MIDNIGHT, abs=0.01)


def test_a_spend_limit_closes_the_limiter_for_its_rolling_ten_minutes(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db)
    limiter = simulation.limiter()
    outcome = Outcome(code=ErrorCode.QUOTA_EXHAUSTED, retry_after_s=700.0, quota_id="SpendPerHour")

    reported = limiter.report(admitted(limiter), outcome)

    assert reported.starts_in_s == pytest.approx(700, abs=0.01)


def test_a_call_that_goes_out_late_holds_its_place_in_the_window_from_then(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, Quota(requests=1, tokens=1_000))
    limiter, other = simulation.limiter(), simulation.limiter()
    settle(simulation, limiter)
    ticket = admitted(limiter, ask(tokens=100))
    admitted_at = simulation.now
    for _ in range(200):
        limiter.sent(ticket)

    simulation.now += 3
    limiter.sent(ticket)
    limiter.report(ticket, Outcome.success(80))

    simulation.now = admitted_at + 61
    held = refused(other)
    state = other.state()
    assert held.why is Why.REQUESTS
    assert held.seconds == pytest.approx(2.15, abs=0.1)
    assert (state.requests_used, state.tokens_used) == (1, 80)
    simulation.now += held.seconds + 0.001
    admitted(other)
    assert other.state().tokens_used == 0


def test_a_call_whose_way_may_outlast_the_guard_is_booked_again(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=1))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    ticket = admitted(limiter)
    # The guard is 150 ms, and the call needs some of them to arrive.
    simulation.now += 0.14
    limiter.sent(ticket)

    simulation.now += 60.1
    held = refused(limiter)

    assert held.why is Why.REQUESTS
    assert held.seconds == pytest.approx(0.1, abs=0.06)


def test_the_lease_of_an_unreported_call_expires(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, tuning=Tuning(lease_s=150))
    limiter = simulation.limiter()
    admitted(limiter)

    simulation.now += 149.9
    before = limiter.state().in_flight
    simulation.now += 0.2

    assert before == 1
    assert limiter.state().in_flight == 0


def test_a_pause_holds_everything_until_it_is_released_into_a_ramp(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db)
    limiter, other = simulation.limiter(), simulation.limiter()
    assert limiter.pause()

    held = refused(other)
    was_paused = limiter.state().is_paused
    assert limiter.resume()

    assert held.why is Why.PAUSED
    assert was_paused
    assert limiter.state().is_ramping
    assert isinstance(other.admit(ask()), Go)
    assert isinstance(other.admit(ask()), Later)


def test_providers_and_models_have_limiters_of_their_own(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db)
    limiter, other = simulation.limiter(), simulation.limiter(model="n")
    fail(limiter, admitted(limiter), ErrorCode.RATE_LIMIT)

    answer = other.admit(ask())

    assert isinstance(answer, Go)
    assert refused(limiter).why is Why.COOLDOWN


def test_memory_is_bounded_by_the_buckets_of_a_window(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=100_000))
    limiter = simulation.limiter()
    settle(simulation, limiter)

    for n in range(3_000):
        simulation.now += 0.06
        limiter.report(
            admitted(limiter, ask(job=f"job-{n}", item=f"item-{n}")), Outcome.success(10)
        )

    sizes = [redis_db.memory_usage(key) or 0 for key in redis_db.keys("medproc:gate:*")]
    assert redis_db.llen(limiter._keys[2]) <= 1_205
    assert redis_db.hlen(limiter._keys[1]) <= 2 * 1_205
    assert sum(sizes) < 400_000
