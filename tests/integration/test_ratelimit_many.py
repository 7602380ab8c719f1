"""Calls that ask together are admitted like calls that ask one by one, in one round trip."""

from __future__ import annotations

import random

import pytest
import redis

from pipeline.ratelimit import Ask, Go, Later, Outcome, Quota, RateLimiter, Ticket, Tuning, Why
from tests.support.limiter_simulation import (
    UNLIMITED,
    Simulation,
    admitted,
    ask,
    refused,
    settle,
)

STEADY = Tuning(ramp_first=1000)


def asks(count: int, job: str = "job", tokens: int = 0) -> list[Ask]:
    return [ask(job, f"{job}-{n}", tokens) for n in range(count)]


def started(limiter: RateLimiter, wanted: list[Ask]) -> list[Ticket]:
    return [each.ticket for each in limiter.admit_many(wanted) if isinstance(each, Go)]


def scripts(client: redis.Redis) -> int:
    return int(client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"])


def test_many_starts_and_the_outcomes_before_them_take_one_round_trip(
    redis_db: redis.Redis,
) -> None:
    limiter = Simulation(redis_db, tuning=STEADY).limiter()
    # Redis knows both scripts from here on.
    limiter.report(admitted(limiter), Outcome.success(10))
    first = started(limiter, asks(30))
    redis_db.config_resetstat()

    for ticket in first[:8]:
        limiter.note(ticket, Outcome.success(10))
    before = scripts(redis_db)
    again = started(limiter, asks(8, "again"))

    assert (len(first), len(again)) == (30, 8)
    assert len({ticket.id for ticket in first + again}) == 38
    assert before == 0
    # One script takes in the outcomes, and one admits.
    assert scripts(redis_db) == 2
    assert limiter.state().in_flight == 30


def test_noted_outcomes_are_reported_by_a_flush_and_at_the_end_of_a_step(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiter, other = simulation.limiter(), simulation.limiter()
    tickets = started(limiter, asks(3))

    seen = []
    limiter.note(tickets[0], Outcome.success(10))
    seen.append(other.state().in_flight)
    limiter.flush()
    limiter.note(tickets[1], Outcome.success(10))
    seen.append(other.state().in_flight)
    limiter.abandon([])
    seen.append(other.state().in_flight)

    assert seen == [3, 2, 1]


def test_the_first_call_without_room_ends_the_answer(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=10))
    limiter = simulation.limiter()
    settle(simulation, limiter)

    answers = limiter.admit_many(asks(30))

    assert [type(answer) for answer in answers] == [Go] * 10 + [Later]
    assert isinstance(answers[-1], Later)
    assert answers[-1].why is Why.REQUESTS
    assert limiter.state().requests_used == 10


def test_a_job_that_asks_for_many_calls_gets_no_more_than_its_turn(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=10))
    limiter, other = simulation.limiter(), simulation.limiter()
    settle(simulation, limiter)
    started(limiter, asks(10, "greedy"))
    held = refused(other, ask(job="modest"))
    refused(limiter, ask(job="greedy"))

    simulation.now += held.seconds
    greedy = limiter.admit_many(asks(10, "greedy"))
    modest = other.admit_many(asks(10, "modest"))

    assert isinstance(greedy[0], Later)
    assert greedy[0].why is Why.TURN
    # Then it is the turn of the greedy job, although the quota has room.
    assert [type(each) for each in modest] == [Go, Go, Later]
    assert isinstance(modest[-1], Later)
    assert modest[-1].why is Why.TURN


@pytest.mark.parametrize("seed", range(8))
def test_calls_that_ask_together_are_admitted_like_calls_that_ask_one_by_one(
    redis_db: redis.Redis, seed: int
) -> None:
    draw = random.Random(seed)
    quota = draw.choice([UNLIMITED, Quota(requests=40), Quota(requests=40, tokens=30_000)])
    tuning = draw.choice([STEADY, Tuning()])
    simulation = Simulation(redis_db, quota, tuning)
    together, alone = simulation.limiter("together"), simulation.limiter("alone")
    flying: list[tuple[Ticket, Ticket]] = []

    for step in range(120):
        simulation.now += draw.expovariate(2)
        job = f"job-{draw.randrange(3)}"
        wanted = [
            ask(job, f"{step}-{n}", draw.choice([100, 3_000]))
            for n in range(draw.choice([1, 3, 9]))
        ]
        many = together.admit_many(wanted)
        single = []
        for each in wanted:
            single.append(alone.admit(each))
            if isinstance(single[-1], Later):
                break
        assert [_of(answer) for answer in many] == [_of(answer) for answer in single]
        flying += [
            (one.ticket, two.ticket)
            for one, two in zip(many, single, strict=True)
            if isinstance(one, Go) and isinstance(two, Go)
        ]
        for _ in range(min(len(flying), draw.choice([0, 2, 6]))):
            pair = flying.pop(draw.randrange(len(flying)))
            outcome = Outcome.success(draw.choice([80, 3_500]))
            for limiter, ticket in zip((together, alone), pair, strict=True):
                limiter.note(ticket, outcome)

    assert together.state().requests_used == alone.state().requests_used
    assert together.state().tokens_used == alone.state().tokens_used


def _of(answer: Go | Later) -> object:
    """Return what two rate limiters of the same history must answer alike."""
    if isinstance(answer, Later):
        return answer.why, answer.seconds
    return answer.ticket.bucket, answer.ticket.tokens, answer.ticket.item


def test_a_success_drops_the_parts_that_have_left_the_window_of_the_breaker(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db, tuning=STEADY)
    limiter = simulation.limiter()
    tickets = started(limiter, asks(11))
    for ticket in tickets[:6]:
        limiter.report(ticket, Outcome.success(1))

    simulation.now += 60
    limiter.report(admitted(limiter), Outcome.success(1))

    assert redis_db.hlen(limiter._keys[4]) == 1
