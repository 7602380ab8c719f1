"""A short absence of Redis delays the outcomes of calls and loses none."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from medproc.embedded import Places
from pipeline.core.errors import CallError, ErrorCode
from pipeline.ratelimit import (
    Go,
    Later,
    Outcome,
    PastCalls,
    Quota,
    RateLimiter,
    Standing,
    Ticket,
    Why,
)
from pipeline.ratelimit.fallback import AWAY_FOR_S
from pipeline.ratelimit.limiter import FRESH_S, REDIS_TIMEOUT_S, limiter_client
from pipeline.ratelimit.types import Breaker
from tests.support.limiter_simulation import Simulation, admitted, ask, fail, refused, settle
from tests.support.valkey import throw_away_valkey

PROBE_S = 5.1
"""Seconds after which a probe call may start; see `GATE_PROBE_S`."""


def lose(limiter: RateLimiter) -> None:
    """Let one command of the process have timed out."""
    limiter._fallback.lose(redis.TimeoutError("a stall"))


def outage(simulation: Simulation) -> tuple[RateLimiter, Ticket]:
    """Open the breaker; return the limiter and the ticket of the probe call."""
    limiter = simulation.limiter()
    for ticket in [admitted(limiter) for _ in range(6)]:
        fail(limiter, ticket, ErrorCode.API_5XX)
    assert limiter.state().breaker is Breaker.OPEN
    simulation.now += PROBE_S
    probe = admitted(limiter)
    assert probe.is_probe
    return limiter, probe


def test_a_success_of_the_probe_during_the_absence_closes_the_breaker(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db)
    limiter, probe = outage(simulation)

    lose(limiter)
    limiter.note(probe, Outcome.success(10))
    limiter.flush()
    simulation.now += AWAY_FOR_S + 0.1

    assert isinstance(limiter.admit(ask()), Go)
    assert limiter.state().breaker is Breaker.CLOSED


def test_a_failure_of_the_probe_during_the_absence_frees_the_place_of_the_probe(
    redis_db: redis.Redis,
) -> None:
    simulation = Simulation(redis_db)
    limiter, probe = outage(simulation)

    lose(limiter)
    fail(limiter, probe, ErrorCode.API_5XX)
    simulation.now += AWAY_FOR_S + 0.1
    held = refused(limiter)
    simulation.now += held.seconds

    assert held.seconds <= PROBE_S
    assert admitted(limiter).is_probe


def test_a_429_during_the_absence_begins_its_cooldown(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db)
    limiter = simulation.limiter()
    ticket = admitted(limiter)

    lose(limiter)
    fail(limiter, ticket, ErrorCode.RATE_LIMIT, 30.0)
    simulation.now += AWAY_FOR_S + 0.1
    held = refused(limiter)

    assert held.why is Why.COOLDOWN
    assert held.seconds == pytest.approx(30, abs=0.1)


def test_an_old_outcome_begins_nothing_but_returns_its_tokens(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(tokens=1_000))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    ticket = admitted(limiter, ask(tokens=900))

    lose(limiter)
    limited = Outcome(code=ErrorCode.RATE_LIMIT, retry_after_s=30.0, input_tokens=100)
    limiter.report(ticket, limited)
    simulation.now += FRESH_S + 1

    state = limiter.state()
    assert (state.tokens_used, state.in_flight, state.cooldown_until) == (100, 0, None)
    admitted(limiter)


def test_an_unanswered_ask_gives_the_place_of_its_probe_back(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db)
    limiter, probe = outage(simulation)
    fail(limiter, probe, ErrorCode.API_5XX)
    simulation.now += PROBE_S
    answer = limiter._wire._last_answer

    def admitted_but_unread() -> None:
        answer()
        raise redis.TimeoutError("the reply did not arrive in time")

    limiter._wire._last_answer = admitted_but_unread  # type: ignore[method-assign]  # a lost reply
    assert isinstance(limiter.admit(ask()), Later)
    limiter._wire._last_answer = answer  # type: ignore[method-assign]  # the network is back
    simulation.now += AWAY_FOR_S + 0.1
    first = limiter.admit(ask())
    simulation.now += PROBE_S

    assert isinstance(first, Later)
    assert admitted(limiter).is_probe


def test_a_call_that_never_reached_the_provider_closes_no_breaker(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db)
    limiter, probe = outage(simulation)

    unsent = CallError("the attached pages are too large", code=ErrorCode.CONTEXT_TOO_LARGE)
    limiter.report(probe, Outcome.failure(unsent))

    assert limiter.state().breaker is Breaker.OPEN


def test_a_call_from_before_the_loss_of_redis_closes_no_breaker(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db)
    limiter, probe = outage(simulation)
    limiter.report(probe, Outcome.success(10))
    simulation.now += 200
    old = admitted(limiter)
    assert old.epoch == 1

    simulation.flush()
    limiter.rearm(Standing(outage_since=simulation.now - 5, past=PastCalls()))
    limiter.report(old, Outcome.success(10))

    assert limiter.state().breaker is Breaker.OPEN


def test_calls_of_one_speed_are_not_booked_again(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=100_000))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    moved = []

    for number in range(300):
        ticket = admitted(limiter)
        simulation.now += 0.30 + number % 30 / 1_000
        limiter.sent(ticket)
        moved.append(ticket.id in limiter._moved)
        limiter.report(ticket, Outcome.success(1))

    # Each of the first 30 calls is slower than all calls before it.
    assert sum(moved) <= 30 + 300 * 0.01


def test_a_call_that_leaves_twice_is_booked_once(redis_db: redis.Redis) -> None:
    simulation = Simulation(redis_db, Quota(requests=100, tokens=10_000))
    limiter = simulation.limiter()
    settle(simulation, limiter)
    ticket = admitted(limiter, ask(tokens=100))

    for _ in range(2):
        simulation.now += 1
        limiter.sent(ticket)
    limiter.report(ticket, Outcome.success(80))
    used = limiter.state()
    simulation.now += 70
    refused_or_go = limiter.admit(ask(tokens=100))

    assert (used.requests_used, used.tokens_used) == (1, 80)
    assert isinstance(refused_or_go, Go)
    assert limiter.state().requests_used == 1


@pytest.fixture
def places() -> Iterator[Places]:
    """Provide a Valkey that a test can stop."""
    with throw_away_valkey() as found:
        yield found


def test_threads_that_wait_for_a_hanging_redis_wait_for_one_timeout_together(
    places: Places,
) -> None:
    client = limiter_client(places.redis_url)
    limiter = Simulation(client).limiter()
    tickets = [admitted(limiter, ask(item=f"{n}")) for n in range(12)]
    pid = int(client.info("server")["process_id"])
    together = threading.Barrier(len(tickets))

    def late(ticket: Ticket) -> None:
        together.wait()
        limiter._run(limiter._scripts.control, "late", ticket.bucket, ticket.tokens)

    os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        with ThreadPoolExecutor(len(tickets)) as threads:
            list(threads.map(late, tickets))
        took_s = time.monotonic() - began
    finally:
        os.kill(pid, signal.SIGCONT)

    # One timeout after the other takes 12 of them.
    assert took_s < 6 * REDIS_TIMEOUT_S
    assert limiter_client(places.redis_url).ping()
