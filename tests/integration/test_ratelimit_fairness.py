"""Jobs share the quota equally, and no job waits long."""

from __future__ import annotations

from collections import Counter

import pytest
import redis

from pipeline.ratelimit import Go, Later, Quota, Why
from tests.support.limiter_simulation import (
    BEGIN,
    SimulatedProvider,
    SimulatedWorker,
    Simulation,
    admitted,
    ask,
    refused,
    settle,
)


@pytest.mark.parametrize(
    ("quota", "tokens", "minutes"),
    [(Quota(requests=60), 0, 10), (Quota(requests=300, tokens=500_000), 8_000, 10)],
    ids=["requests", "tokens"],
)
def test_three_equal_jobs_share_the_quota_within_fifteen_per_cent(
    redis_db: redis.Redis, quota: Quota, tokens: int, minutes: int
) -> None:
    simulation = Simulation(redis_db, quota)
    provider = SimulatedProvider(requests=quota.requests or 0, tokens=quota.tokens or 0)
    workers = [
        SimulatedWorker(
            simulation,
            f"job-{n}",
            ((f"{n}-{i}", tokens) for i in range(2000)),
            provider.answer,
            seed=n,
        )
        for n in range(3)
    ]

    simulation.run(until=BEGIN + 60 * minutes)

    shares = [len(worker.starts) for worker in workers]
    longest = max(start.waited_s for worker in workers for start in worker.starts[3:])
    assert max(shares) <= 1.15 * min(shares)
    assert longest <= 6.0
    assert provider.refusals == []


def test_a_job_with_calls_three_times_as_large_gets_as_many_tokens_not_as_many_calls(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, Quota(tokens=300_000))
    provider = SimulatedProvider(tokens=300_000)
    small, large = (
        SimulatedWorker(
            simulation,
            f"job-{size}",
            ((f"{size}-{i}", size) for i in range(2000)),
            provider.answer,
            slots=60,
        )
        for size in (2_000, 6_000)
    )

    simulation.run(until=BEGIN + 600)

    assert len(small.starts) == pytest.approx(3 * len(large.starts), rel=0.15)
    assert provider.refusals == []


def test_only_the_least_served_starts_while_others_wait(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=4))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    for _ in range(4):
        admitted(limiter, ask(job="greedy"))
        simulation.now += 1
    newcomer = refused(limiter, ask(job="new"))
    simulation.now += newcomer.seconds - 0.05

    greedy = refused(limiter, ask(job="greedy"))
    simulation.now += 0.051

    assert greedy.why is Why.TURN
    assert isinstance(limiter.admit(ask(job="greedy")), Later)
    admitted(limiter, ask(job="new"))


def test_a_job_that_does_not_return_at_its_time_loses_its_turn(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, Quota(requests=2))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    admitted(limiter, ask(job="greedy"))
    simulation.now += 0.2
    admitted(limiter, ask(job="greedy"))
    dead = refused(limiter, ask(job="dead"))

    simulation.now += dead.seconds + 0.2
    held = limiter.admit(ask(job="greedy"))
    simulation.now += 0.06

    assert isinstance(held, Later)
    assert isinstance(limiter.admit(ask(job="greedy")), Go)


def test_a_job_that_was_away_does_not_claim_what_it_did_not_use(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=60))
    provider = SimulatedProvider(requests=60)
    steady = SimulatedWorker(
        simulation, "steady", ((f"s{i}", 0) for i in range(2000)), provider.answer
    )
    simulation.run(until=BEGIN + 300)
    late = SimulatedWorker(simulation, "late", ((f"l{i}", 0) for i in range(2000)), provider.answer)

    simulation.run(until=BEGIN + 420)

    since = Counter(
        start.job for w in (steady, late) for start in w.starts if start.moment > BEGIN + 300
    )
    assert since["late"] == pytest.approx(since["steady"], rel=0.15)


def test_a_job_that_asks_no_more_is_not_counted_as_waiting(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=1))
    first, second = simulation.limiter(), simulation.limiter()
    # An empty Redis counts the window as spent, so both jobs must wait.
    refused(first, ask("one"))
    refused(second, ask("two"))
    both = first.state().waiting_jobs

    first.leave()
    left = first.state().waiting_jobs
    simulation.now += 3600
    late = first.state().waiting_jobs

    assert (both, left, late) == (2, 1, 0)
