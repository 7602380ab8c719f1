"""A cooldown has one coordinator, is never nested, lost or doubled, and ends in a ramp."""

from __future__ import annotations

from collections import Counter

import pytest
import redis

from pipeline.core.errors import ErrorCode
from pipeline.ratelimit import CooldownRole, Counters, Outcome, Tuning, Why
from tests.support.limiter_simulation import (
    BEGIN,
    SimulatedWorker,
    Simulation,
    admitted,
    ask,
    fail,
    refused,
)

STEADY = Tuning(ramp_first=1000)
"""A tuning without a ramp, for the tests of other subjects."""


@pytest.mark.parametrize("limited", [1, 2, 10])
def test_the_first_of_those_limited_at_once_coordinates_and_the_others_take_part(
    redis_db: redis.Redis, limited: int
) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiters = [simulation.limiter() for _ in range(limited)]
    tickets = [admitted(limiter, ask(item=f"item-{n}")) for n, limiter in enumerate(limiters)]

    reported = [
        fail(limiter, ticket, ErrorCode.RATE_LIMIT)
        for limiter, ticket in zip(limiters, tickets, strict=True)
    ]
    opens_in = {
        refused(limiter, ask(item=f"item-{n}")).seconds for n, limiter in enumerate(limiters)
    }
    simulation.now += 5.001
    again = [admitted(limiter, ask(item=f"item-{n}")) for n, limiter in enumerate(limiters)]

    assert [r.role for r in reported] == [
        CooldownRole.COORDINATOR,
        *[CooldownRole.PARTICIPANT] * (limited - 1),
    ]
    assert opens_in == {5.001}
    assert all(ticket.is_redistributed for ticket in again)
    assert limiters[0].state().counters == Counters(
        rate_limited_items_stored=limited,
        rate_limited_items_redistributed=limited,
        rate_limit_generations=1,
        rate_limit_participants=limited - 1,
    )
    assert limiters[0].state().limited_items == 0


@pytest.mark.parametrize(
    ("hint_s", "cooldown_s"), [(None, 5.0), (0.0, 5.0), (4.999, 5.0), (5.5, 5.5), (600.0, 600.0)]
)
def test_a_cooldown_is_the_longer_of_hint_and_backoff(
    redis_db: redis.Redis, hint_s: float | None, cooldown_s: float
) -> None:
    limiter = Simulation(redis_db).limiter()

    reported = fail(limiter, admitted(limiter), ErrorCode.RATE_LIMIT, hint_s)

    assert reported.starts_in_s == pytest.approx(cooldown_s, abs=0.001)


def test_cooldowns_in_a_row_double_up_to_the_cap(redis_db: redis.Redis) -> None:
    simulation = Simulation(
        redis_db, tuning=Tuning(cooldown_base_s=3, cooldown_cap_s=20, quiet_s=60)
    )
    limiter = simulation.limiter()

    lengths = []
    for _ in range(5):
        lengths.append(fail(limiter, admitted(limiter), ErrorCode.RATE_LIMIT).starts_in_s)
        simulation.now += lengths[-1] + 0.001

    assert lengths == pytest.approx([3, 6, 12, 20, 20], abs=0.001)
    assert limiter.state().consecutive == 5
    assert limiter.state().counters.rate_limit_generations == 5


@pytest.mark.parametrize(("quiet_s", "expected"), [(59.9, 10.0), (60.1, 5.0)])
def test_after_a_quiet_time_a_cooldown_is_the_first_in_a_row_again(
    redis_db: redis.Redis, quiet_s: float, expected: float
) -> None:
    simulation = Simulation(redis_db)
    limiter = simulation.limiter()
    simulation.now += fail(limiter, admitted(limiter), ErrorCode.RATE_LIMIT).starts_in_s

    simulation.now += quiet_s
    reported = fail(limiter, admitted(limiter), ErrorCode.RATE_LIMIT)

    assert reported.starts_in_s == pytest.approx(expected, abs=0.001)


def test_a_429_of_a_call_from_before_the_cooldown_opens_no_other_one(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiter = simulation.limiter()
    early, late = admitted(limiter, ask(item="a")), admitted(limiter, ask(item="b"))
    fail(limiter, early, ErrorCode.RATE_LIMIT)
    simulation.now += 6

    reported = fail(limiter, late, ErrorCode.RATE_LIMIT)

    assert reported.role is CooldownRole.PARTICIPANT
    assert reported.starts_in_s == 0
    admitted(limiter, ask(item="b"))


def test_a_later_hint_prolongs_the_cooldown_without_nesting(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiter = simulation.limiter()
    first, second = admitted(limiter, ask(item="a")), admitted(limiter, ask(item="b"))
    fail(limiter, first, ErrorCode.RATE_LIMIT)
    simulation.now += 2

    reported = fail(limiter, second, ErrorCode.RATE_LIMIT, hint_s=30)

    assert reported.role is CooldownRole.PARTICIPANT
    assert reported.starts_in_s == pytest.approx(30, abs=0.001)
    assert limiter.state().generation == 1


def test_two_hosts_wait_out_a_long_hint_together_and_then_send_one_call_to_try(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db)
    refused_at: list[float] = []

    def answer(moment: float, tokens: int) -> Outcome:
        if moment >= BEGIN + 106:
            return Outcome.success(0)
        refused_at.append(moment)
        return Outcome(code=ErrorCode.RATE_LIMIT, retry_after_s=53)

    hosts = [
        SimulatedWorker(
            simulation, f"job-{n}", ((f"{n}-{i}", 0) for i in range(10)), answer, slots=10
        )
        for n in range(2)
    ]

    simulation.run(until=BEGIN + 200)

    assert len([moment for moment in refused_at if moment < BEGIN + 1]) == 20
    assert len(refused_at) == 21
    assert refused_at[-1] >= BEGIN + 53
    assert hosts[0].limiter.state().counters.rate_limit_generations == 2
    assert all(len(host.succeeded) == 10 for host in hosts)


def test_cascading_cooldowns_back_off_and_all_items_come_through_once(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db)

    def answer(moment: float, tokens: int) -> Outcome:
        is_closed = moment < BEGIN + 40
        return Outcome(code=ErrorCode.RATE_LIMIT) if is_closed else Outcome.success(0)

    workers = [
        SimulatedWorker(
            simulation,
            f"job-{n}",
            ((f"{n}-{i}", 0) for i in range(30)),
            answer,
            latency_s=2,
            seed=n,
        )
        for n in range(3)
    ]

    simulation.run(until=BEGIN + 200)

    state = workers[0].limiter.state()
    assert state.counters.rate_limit_generations == 4
    assert sorted(item for w in workers for item in w.succeeded) == sorted(
        f"{n}-{i}" for n in range(3) for i in range(30)
    )
    assert (
        state.counters.rate_limited_items_stored == state.counters.rate_limited_items_redistributed
    )


def test_a_limited_item_that_is_given_up_is_forgotten(redis_db: redis.Redis) -> None:
    limiter = Simulation(redis_db).limiter()
    fail(limiter, admitted(limiter, ask(item="a")), ErrorCode.RATE_LIMIT)

    limiter.abandon(["a", "b"])

    assert limiter.state().limited_items == 0
    assert limiter.state().counters.rate_limited_items_redistributed == 0


def test_a_limited_item_without_a_new_request_is_forgotten_after_a_day(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db)
    limiter = simulation.limiter()
    fail(limiter, admitted(limiter, ask(item="of-a-dead-job")), ErrorCode.RATE_LIMIT)

    simulation.now += 86_000
    fail(limiter, admitted(limiter, ask(item="another")), ErrorCode.RATE_LIMIT)
    before = limiter.state().limited_items
    simulation.now += 401

    assert (before, limiter.state().limited_items) == (2, 1)


@pytest.mark.parametrize(
    ("first", "growth", "expected"),
    [(5, 2.0, [5, 10, 20, 40]), (1, 1.1, [1, 1, 1, 1]), (3, 10.0, [3, 30, 300, None])],
)
def test_the_ramp_after_a_cooldown_grows_as_set(
    redis_db: redis.Redis, first: int, growth: float, expected: list[int | None]
) -> None:
    simulation = Simulation(redis_db, tuning=Tuning(ramp_first=first, ramp_growth=growth))
    limiter = simulation.limiter()
    fail(limiter, admitted(limiter), ErrorCode.RATE_LIMIT)
    simulation.now += 5.001
    begins = simulation.now

    starts: Counter[int] = Counter()
    while simulation.now < begins + 4 and sum(starts.values()) < 400:
        answer = limiter.admit(ask())
        if hasattr(answer, "ticket"):
            starts[int(simulation.now - begins)] += 1
        else:
            simulation.now += answer.seconds

    for second, most in enumerate(expected):
        assert most is None or most - 1 <= starts[second] <= most


def test_a_ramp_waits_for_the_first_start_and_ends_at_the_quota(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db)
    limiter = simulation.limiter()
    fail(limiter, admitted(limiter), ErrorCode.RATE_LIMIT)
    simulation.now += 500

    admitted(limiter)
    held = refused(limiter)
    simulation.now += 30
    admitted(limiter)

    assert held.why is Why.RAMP
    assert held.seconds == pytest.approx(0.2, abs=0.002)
    assert not limiter.state().is_ramping
