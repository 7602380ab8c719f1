"""The circuit breaker opens for the whole cluster, probes with one call, and closes into a ramp."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import pytest
import redis

from pipeline.core.errors import ErrorCode
from pipeline.ratelimit import (
    Breaker,
    Go,
    Later,
    Outcome,
    Quota,
    RateLimiter,
    Standing,
    Ticket,
    Tuning,
    Why,
)
from pipeline.ratelimit.types import OUTCOME_OF_CODE, OutcomeKind
from tests.support.limiter_simulation import (
    BEGIN,
    SimulatedWorker,
    Simulation,
    admitted,
    ask,
    busiest,
    fail,
    refused,
)

STEADY = Tuning(ramp_first=1000)


def opened(simulation: Simulation, limiter: RateLimiter) -> None:
    """Open the circuit breaker with five failed calls."""
    for ticket in [admitted(limiter) for _ in range(5)]:
        fail(limiter, ticket, ErrorCode.API_5XX)


def report_all(limiter: RateLimiter, tickets: list[Ticket], failures: int) -> None:
    for n, ticket in enumerate(tickets):
        if n < len(tickets) - failures:
            limiter.report(ticket, Outcome.success(1))
        else:
            fail(limiter, ticket, ErrorCode.API_TIMEOUT)


@pytest.mark.parametrize(
    ("successes", "failures", "expected"),
    [
        (0, 4, Breaker.CLOSED),
        (0, 5, Breaker.OPEN),
        (5, 5, Breaker.OPEN),
        (6, 5, Breaker.CLOSED),
        (100, 99, Breaker.CLOSED),
        (30, 30, Breaker.OPEN),
    ],
)
def test_the_breaker_opens_at_five_failures_that_are_half_of_the_calls(
    redis_db: redis.Redis, successes: int, failures: int, expected: Breaker
) -> None:
    limiter = Simulation(redis_db, tuning=STEADY).limiter()
    tickets = [admitted(limiter) for _ in range(successes + failures)]

    report_all(limiter, tickets, failures)

    assert limiter.state().breaker is expected


@pytest.mark.parametrize(
    ("tuning", "successes", "failures", "expected"),
    [
        (Tuning(ramp_first=1000, breaker_failures=1), 0, 1, Breaker.OPEN),
        (Tuning(ramp_first=1000, breaker_failures=8), 0, 7, Breaker.CLOSED),
        (Tuning(ramp_first=1000, breaker_failures=8), 0, 8, Breaker.OPEN),
        (Tuning(ramp_first=1000, breaker_share=1.0), 1, 19, Breaker.CLOSED),
        (Tuning(ramp_first=1000, breaker_share=1.0), 0, 5, Breaker.OPEN),
        (Tuning(ramp_first=1000, breaker_share=0.1), 45, 5, Breaker.OPEN),
        (Tuning(ramp_first=1000, breaker_share=0.1), 46, 5, Breaker.CLOSED),
    ],
)
def test_the_breakers_thresholds_are_settings(
    redis_db: redis.Redis, tuning: Tuning, successes: int, failures: int, expected: Breaker
) -> None:
    limiter = Simulation(redis_db, tuning=tuning).limiter()
    tickets = [admitted(limiter) for _ in range(successes + failures)]

    report_all(limiter, tickets, failures)

    assert limiter.state().breaker is expected


@pytest.mark.parametrize(
    ("window_s", "apart_s", "expected"),
    [
        (10, 2.2, Breaker.OPEN),
        (10, 2.6, Breaker.CLOSED),
        (20, 4.4, Breaker.OPEN),
        (20, 5.2, Breaker.CLOSED),
    ],
)
def test_failures_count_within_the_window_only(
    redis_db: redis.Redis, window_s: float, apart_s: float, expected: Breaker
) -> None:
    simulation = Simulation(redis_db, tuning=replace(STEADY, breaker_window_s=window_s))
    limiter = simulation.limiter()

    for _ in range(5):
        fail(limiter, admitted(limiter), ErrorCode.API_5XX)
        simulation.now += apart_s

    assert (limiter.state().breaker is Breaker.CLOSED) == (expected is Breaker.CLOSED)


def test_an_open_breaker_stops_all_processes_and_says_since_when(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiters = [simulation.limiter() for _ in range(5)]
    tickets = [admitted(limiter) for limiter in limiters]
    for limiter, ticket in zip(limiters, tickets, strict=True):
        reported = fail(limiter, ticket, ErrorCode.API_5XX)
        simulation.now += 0.3

    held = refused(simulation.limiter())

    assert reported.outage_since == pytest.approx(BEGIN, abs=0.001)
    assert held.why is Why.BREAKER
    assert held.outage_since == reported.outage_since


def test_exactly_one_call_in_the_cluster_probes(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiters = [simulation.limiter() for _ in range(3)]
    opened(simulation, limiters[0])
    simulation.now += 4.99
    held = [refused(limiter) for limiter in limiters]

    simulation.now += 0.02
    answers = [limiter.admit(ask(job=str(n))) for n, limiter in enumerate(limiters)]

    assert all(later.why is Why.BREAKER for later in held)
    assert [type(answer) for answer in answers] == [Go, Later, Later]
    assert isinstance(answers[0], Go)
    assert answers[0].ticket.is_probe
    assert limiters[0].state().breaker is Breaker.HALF_OPEN


def test_a_probe_that_succeeds_closes_the_breaker_into_a_ramp(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db)
    limiter = simulation.limiter()
    for _ in range(5):
        fail(limiter, admitted(limiter), ErrorCode.API_5XX)
    simulation.now += 5.001
    probe = admitted(limiter)

    limiter.report(probe, Outcome.success(1))

    assert limiter.state().breaker is Breaker.CLOSED
    assert limiter.state().is_ramping
    assert limiter.state().last_outage == pytest.approx((BEGIN, simulation.now), abs=1.0)
    admitted(limiter)
    assert refused(limiter).why is Why.RAMP


@pytest.mark.parametrize("code", [ErrorCode.API_5XX, ErrorCode.CANCELLED])
def test_a_probe_that_tells_nothing_good_is_followed_by_another_after_the_interval(
    redis_db: redis.Redis, code: ErrorCode
) -> None:
    simulation = Simulation(redis_db, tuning=Tuning(ramp_first=1000, probe_s=7))
    limiter = simulation.limiter()
    opened(simulation, limiter)
    simulation.now += 7.001
    probe = admitted(limiter)

    fail(limiter, probe, code)
    held = refused(limiter)
    simulation.now += 7.001

    assert held.seconds == pytest.approx(7, abs=0.002)
    assert admitted(limiter).is_probe
    assert limiter.state().counters.breaker_trips == 1


def test_a_probe_whose_worker_died_is_replaced_when_its_lease_ends(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, tuning=Tuning(ramp_first=1000, lease_s=30))
    limiter = simulation.limiter()
    opened(simulation, limiter)
    simulation.now += 5.001
    lost = admitted(limiter)
    simulation.now += 29.9
    refused(limiter)

    simulation.now += 0.2
    second = admitted(limiter)

    assert second.is_probe
    fail(limiter, lost, ErrorCode.API_TIMEOUT)
    assert refused(limiter).why is Why.BREAKER
    limiter.report(second, Outcome.success(1))
    assert limiter.state().breaker is Breaker.CLOSED


def test_calls_that_began_before_the_outage_neither_close_nor_trip_it_again(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiter = simulation.limiter()
    late = [admitted(limiter) for _ in range(12)]
    opened(simulation, limiter)
    limiter.report(late.pop(), Outcome.success(1))
    still_open = limiter.state().breaker
    simulation.now += 5.001
    limiter.report(admitted(limiter), Outcome.success(1))

    for ticket in late:
        fail(limiter, ticket, ErrorCode.API_TIMEOUT)

    assert still_open is Breaker.OPEN
    assert limiter.state().breaker is Breaker.CLOSED


def test_a_probe_that_is_limited_closes_the_breaker_and_begins_a_cooldown(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiter = simulation.limiter()
    opened(simulation, limiter)
    simulation.now += 5.001

    fail(limiter, admitted(limiter), ErrorCode.RATE_LIMIT)

    assert limiter.state().breaker is Breaker.CLOSED
    assert refused(limiter).why is Why.COOLDOWN


@pytest.mark.parametrize("fails_after_s", [0.02, 5.0])
def test_a_minutes_outage_at_full_work_is_seen_within_two_seconds_and_costs_few_calls(
    redis_db: redis.Redis, fails_after_s: float
) -> None:
    simulation = Simulation(redis_db, Quota(requests=300))
    reported: list[float] = []

    def answer(moment: float, tokens: int) -> Outcome:
        if BEGIN + 100 <= moment < BEGIN + 160:
            reported.append(moment + fails_after_s)
            return Outcome(code=ErrorCode.API_5XX)
        return Outcome.success(0)

    workers = [
        SimulatedWorker(
            simulation,
            f"job-{n}",
            ((f"{n}-{i}", 0) for i in range(400)),
            answer,
            latency_s=5,
            fails_after_s=fails_after_s,
            seed=n,
        )
        for n in range(3)
    ]

    simulation.run(until=BEGIN + 600)

    starts = [start.moment for worker in workers for start in worker.starts]
    again = sorted(s for s in starts if s >= BEGIN + 160)
    fifth = sorted(reported)[4]
    assert all(len(worker.succeeded) == 400 for worker in workers)
    assert [s for s in starts if fifth + 2 < s < fifth + 5] == []
    assert len(reported) <= 50
    assert again[0] <= BEGIN + 166 + fails_after_s
    assert busiest([s for s in again[1:] if s < again[1] + 1], 1.0) <= 5
    assert workers[0].limiter.state().counters.breaker_trips == 1


def test_after_a_flush_the_breaker_is_armed_again_from_the_incident(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db)
    limiter = simulation.limiter()
    redis_db.flushdb()

    assert limiter.rearm(Standing(outage_since=BEGIN - 30))

    held = refused(limiter)
    assert held.why is Why.BREAKER
    assert held.outage_since == pytest.approx(BEGIN - 30)


def test_reports_of_calls_from_before_a_flush_still_count(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiter = simulation.limiter()
    opened(simulation, limiter)
    simulation.now += 5.001
    limiter.report(admitted(limiter), Outcome.success(1))
    tickets = [admitted(limiter) for _ in range(3)]

    redis_db.flushdb()
    reported = [fail(limiter, ticket, ErrorCode.RATE_LIMIT) for ticket in tickets]

    assert [r.role for r in reported] == ["coordinator", "participant", "participant"]
    assert refused(limiter).why is Why.COOLDOWN


def test_every_code_of_a_call_that_says_something_of_the_provider_has_its_kind() -> None:
    feeds = {code for code, kind in OUTCOME_OF_CODE.items() if kind is OutcomeKind.FAILED}

    assert feeds == {ErrorCode.API_5XX, ErrorCode.API_TIMEOUT}
    assert ErrorCode.CANCELLED not in OUTCOME_OF_CODE
    assert ErrorCode.INTERNAL_ERROR not in OUTCOME_OF_CODE


def a_step_before_its_end(simulation: Simulation, limiter: RateLimiter) -> None:
    """Make 40 calls that succeed, the last one now."""
    for _ in range(40):
        ticket = admitted(limiter)
        simulation.now += 0.2
        limiter.report(ticket, Outcome.success(1))


def test_slow_failures_at_the_end_of_a_step_do_not_open_the_breaker(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiter = simulation.limiter()
    slow = [admitted(limiter) for _ in range(6)]
    a_step_before_its_end(simulation, limiter)
    simulation.now += 8.5

    # Only these calls were in flight. The first of them starts again while the others fail.
    for ticket in slow[:2]:
        fail(limiter, ticket, ErrorCode.API_5XX)
    again = [admitted(limiter) for _ in range(2)]
    fail(limiter, again.pop(), ErrorCode.API_5XX)
    for ticket in slow[2:]:
        fail(limiter, ticket, ErrorCode.API_5XX)
    limiter.report(again.pop(), Outcome.success(1))

    assert limiter.state().breaker is Breaker.CLOSED
    assert limiter.state().counters.breaker_trips == 0


@pytest.mark.parametrize("in_flight", [2, 3, 4, 5])
@pytest.mark.parametrize("fails_after_s", [0.02, 1.0])
def test_an_outage_that_begins_at_the_end_of_a_step_opens_the_breaker_within_two_seconds(
    redis_db: redis.Redis, in_flight: int, fails_after_s: float
) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiter = simulation.limiter()
    calls = [admitted(limiter) for _ in range(in_flight)]
    a_step_before_its_end(simulation, limiter)
    reported: list[float] = []
    opened_at: list[float] = []

    def end(ticket: Ticket, attempt: int) -> None:
        reported.append(simulation.now)
        if fail(limiter, ticket, ErrorCode.API_5XX).is_breaker_open:
            opened_at.append(simulation.now)
            return
        simulation.at(simulation.now + 2.0**attempt, lambda: start(attempt + 1))

    def start(attempt: int) -> None:
        if not opened_at:
            ticket = admitted(limiter)
            simulation.at(simulation.now + fails_after_s, lambda: end(ticket, attempt))

    for ticket in calls:
        simulation.at(simulation.now, partial(end, ticket, 0))
    simulation.run()

    assert opened_at[0] <= sorted(reported)[4] + 2


def test_calls_that_all_hang_open_the_breaker_at_their_fifth_failure(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiter = simulation.limiter()
    a_step_before_its_end(simulation, limiter)
    hanging = [admitted(limiter) for _ in range(5)]
    simulation.now += 120

    reported = [fail(limiter, ticket, ErrorCode.API_TIMEOUT) for ticket in hanging]

    assert [each.is_breaker_open for each in reported] == [False] * 4 + [True]


@pytest.mark.parametrize("seed", range(4))
def test_a_step_with_a_tenth_of_faults_ends_without_a_trip(
    redis_db: redis.Redis, seed: int
) -> None:
    draw = random.Random(seed)
    simulation = Simulation(redis_db, tuning=STEADY)
    limiter = simulation.limiter()
    left = 300
    due: list[float] = []

    def start() -> None:
        nonlocal left
        if due:
            due.pop()
        elif left:
            left -= 1
        else:
            return
        ticket = admitted(limiter)
        kind = draw.random()
        took_s = 0.02 if kind < 0.05 else 20.0 if kind < 0.1 else draw.lognormvariate(2.0, 0.5)
        simulation.at(simulation.now + took_s, lambda: end(ticket, fails=kind < 0.1))

    def end(ticket: Ticket, *, fails: bool) -> None:
        if fails:
            fail(limiter, ticket, ErrorCode.API_5XX)
            due.append(simulation.now)
            simulation.at(simulation.now + 1, start)
        else:
            limiter.report(ticket, Outcome.success(1))
        start()

    for _ in range(30):
        start()
    simulation.run()

    assert limiter.state().counters.breaker_trips == 0
