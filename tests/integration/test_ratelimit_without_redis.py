"""A process without Redis keeps to its small share, and reports its calls afterwards."""

from __future__ import annotations

import logging
import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import redis
from pytest_django.fixtures import Settings

from medproc.embedded import Places
from medproc.env import Environment
from pipeline.core.errors import ErrorCode
from pipeline.ratelimit import (
    Go,
    Later,
    LocalLimit,
    Outcome,
    Quota,
    RateLimiter,
    Ticket,
    Tuning,
    Why,
)
from pipeline.ratelimit.fallback import AWAY_FOR_S
from pipeline.ratelimit.limiter import limiter_client
from tests.support.limiter_processes import FAST, SPAWN, closed_until_frozen, limiter_on
from tests.support.limiter_simulation import UNLIMITED, admitted, ask, fail
from tests.support.valkey import throw_away_valkey
from tests.support.workers import until


class ManualClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    """Provide a Valkey that a test can stop."""
    with throw_away_valkey() as found:
        yield found


@pytest.fixture
def frozen(places: Places) -> Iterator[int]:
    """Stop Valkey with SIGSTOP, provide its process, and continue Valkey at the end."""
    client = redis.Redis.from_url(places.redis_url)
    client.flushall()
    pid = int(client.info("server")["process_id"])
    os.kill(pid, signal.SIGSTOP)
    yield pid
    os.kill(pid, signal.SIGCONT)
    client.ping()


def limiter_of(
    places: Places, clock: ManualClock, quota: Quota, tuning: Tuning | None = None
) -> RateLimiter:
    return RateLimiter(
        "gemini",
        "m",
        client=limiter_client(places.redis_url),
        quota=quota,
        tuning=tuning or Tuning(),
        clock=clock,
    )


def starts_in(limiter: RateLimiter, clock: ManualClock, seconds: float, tokens: int = 0) -> int:
    """Count the calls that a greedy process may start within seconds of its clock."""
    ends, starts = clock.now + seconds, 0
    while True:
        answer = limiter.admit(ask(tokens=tokens))
        starts += isinstance(answer, Go)
        clock.now += answer.seconds + 0.001 if isinstance(answer, Later) else 0.0
        if clock.now >= ends:
            return starts


@pytest.mark.parametrize(
    ("quota", "tokens", "most"),
    [
        (Quota(requests=300), 0, 60),
        (Quota(requests=300, tokens=1_000_000), 10_000, 20),
        (UNLIMITED, 0, 60),
    ],
    ids=["requests", "tokens", "unlimited"],
)
def test_a_stopped_redis_leaves_each_process_its_documented_part(
    places: Places, frozen: int, quota: Quota, tokens: int, most: int
) -> None:
    clock = ManualClock()
    limiter = limiter_of(places, clock, quota)
    limiter._fallback.retry_at = clock.now
    first = limiter.admit(ask(tokens=tokens))
    limiter._fallback.retry_at = clock.now + 1e6

    starts = starts_in(limiter, clock, 600, tokens)

    assert isinstance(first, Later)
    assert first.why is Why.LOCAL
    assert most - 2 <= starts <= most


def test_a_redis_that_did_not_answer_gets_its_next_request_only_after_a_wait(
    places: Places, frozen: int
) -> None:
    clock = ManualClock()
    limiter = limiter_of(places, clock, UNLIMITED)
    limiter.admit(ask())
    asked_again_at = limiter._fallback.retry_at

    clock.now += AWAY_FOR_S - 0.001
    for _ in range(100):
        limiter.admit(ask())
    not_asked = limiter._fallback.retry_at
    clock.now += 0.002
    limiter.admit(ask())

    assert asked_again_at == not_asked == 1000.0 + AWAY_FOR_S
    assert limiter._fallback.retry_at == clock.now + AWAY_FOR_S


def test_a_process_says_once_a_minute_that_redis_is_away_and_once_that_it_is_back(
    places: Places, frozen: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "pipeline.ratelimit.fallback")
    clock = ManualClock()
    limiter = limiter_of(places, clock, UNLIMITED)
    for _ in range(6):
        limiter.admit(ask())
        clock.now += 20.1
    away = [record.message for record in caplog.records]

    os.kill(frozen, signal.SIGCONT)
    limiter.admit(ask())

    assert len(away) == 2
    assert "2.0%" in away[0]
    assert [record.message for record in caplog.records][2:] == [
        "Redis is back; the rate limiter holds again"
    ]


def test_calls_started_without_redis_are_booked_after_its_return(
    places: Places, frozen: int
) -> None:
    clock = ManualClock()
    limiter = limiter_of(places, clock, UNLIMITED)
    limiter.admit(ask())
    clock.now += 10.001
    limiter._fallback.retry_at = clock.now + 1.0
    ticket = limiter.admit(ask(tokens=700))

    os.kill(frozen, signal.SIGCONT)
    clock.now += AWAY_FOR_S + 0.001
    back = limiter.admit(ask(tokens=100))
    state = limiter.state()

    assert isinstance(ticket, Go)
    assert ticket.ticket.is_local
    assert isinstance(back, Go)
    assert not back.ticket.is_local
    assert (state.requests_used, state.tokens_used) == (2, 800)


def test_without_redis_the_state_says_that_nothing_is_known(places: Places, frozen: int) -> None:
    limiter = limiter_of(places, ManualClock(), UNLIMITED)

    state = limiter.state()

    assert state.is_local
    assert not limiter.pause()


def test_a_redis_that_was_killed_and_comes_back_empty_takes_the_window_as_spent() -> None:
    with throw_away_valkey() as places:
        clock = ManualClock()
        limiter = limiter_of(places, clock, Quota(requests=300))
        limiter.state()
        os.kill(int(redis.Redis.from_url(places.redis_url).info("server")["process_id"]), 9)
        away = limiter.admit(ask())

    assert isinstance(away, Later)
    assert away.why is Why.LOCAL


def test_without_redis_failures_hold_a_process_back_longer_each_time() -> None:
    limit = LocalLimit(Quota(requests=300), Tuning(cooldown_base_s=20), now=0.0)

    first = limit.heed(Outcome(code=ErrorCode.API_5XX), 0.0)
    second = limit.heed(Outcome(code=ErrorCode.API_TIMEOUT), 0.0)
    hinted = limit.heed(Outcome(code=ErrorCode.RATE_LIMIT, retry_after_s=90.0), 0.0)
    limit.heed(Outcome.success(1), 95.0)
    after = limit.heed(Outcome(code=ErrorCode.API_5XX), 100.0)

    assert (first, second, hinted, after) == (20.0, 40.0, 90.0, 20.0)


def test_scripts_that_the_server_lost_are_loaded_again(redis_db: redis.Redis) -> None:
    limiter = RateLimiter("gemini", "m", client=redis_db, quota=UNLIMITED, tuning=Tuning())
    limiter.admit(ask())

    redis_db.script_flush()

    assert isinstance(limiter.admit(ask()), Go)


def test_a_report_that_met_lost_scripts_counts_and_its_answer_reaches_no_other_call(
    redis_db: redis.Redis,
) -> None:
    limiter = RateLimiter(
        "gemini", "m", client=redis_db, quota=Quota(tokens=1_000), tuning=Tuning()
    )
    redis_db.hset("medproc:gate:{gemini:m}:state", "born", "1")
    ticket = admitted(limiter, ask(tokens=100))
    redis_db.script_flush()

    limiter.note(ticket, Outcome.success(40))
    answer = limiter.admit(ask(tokens=100))

    assert isinstance(answer, Go)
    assert limiter.state().tokens_used - answer.ticket.tokens == 40
    assert limiter.state().in_flight == 1


def test_a_limiter_continues_after_the_server_closed_its_connection(redis_db: redis.Redis) -> None:
    limiter = RateLimiter("gemini", "m", client=redis_db, quota=UNLIMITED, tuning=Tuning())
    ticket = admitted(limiter)

    redis_db.client_kill_filter(_type="normal", skipme=True)
    limiter.note(ticket, Outcome.success(40))

    assert isinstance(limiter.admit(ask()), Go)
    assert limiter.state().in_flight == 1


def test_a_limiter_of_the_settings_has_the_documented_figures(
    redis_db: redis.Redis, settings: Settings
) -> None:
    settings.TIME_SCALE = 1.0
    # The suite has its own quota and its own deadline; this test needs the documented ones.
    for name in ("GEMINI_RPM", "GEMINI_TPM", "CALL_DEADLINE_S"):
        setattr(settings, name, Environment.model_fields[name].default)

    limiter = RateLimiter.for_("gemini", "m")
    local = RateLimiter.for_("local", "engine")

    assert limiter._tuning == Tuning()
    assert limiter._quota == Quota(requests=300, tokens=1_000_000)
    assert local._quota == UNLIMITED
    assert isinstance(local.admit(ask()), Go)


def test_the_time_scale_shortens_every_schedule_of_ours(settings: Settings) -> None:
    settings.TIME_SCALE, settings.CALL_DEADLINE_S = 0.1, 120.0

    tuning = Tuning.of_settings()

    assert tuning.cooldown_base_s == pytest.approx(0.5)
    assert tuning.ramp_step_s == pytest.approx(0.1)
    assert tuning.breaker_window_s == pytest.approx(1.0)
    assert tuning.lease_s == pytest.approx(15.0)
    assert tuning.guard_s == 0.15


def test_a_failure_reported_without_redis_holds_the_next_start(places: Places, frozen: int) -> None:
    clock = ManualClock()
    limiter = limiter_of(places, clock, UNLIMITED)
    limiter.admit(ask())
    clock.now += 10.001
    limiter._fallback.retry_at = clock.now + 1000
    answer = limiter.admit(ask())
    assert isinstance(answer, Go)

    reported = fail(limiter, answer.ticket, ErrorCode.RATE_LIMIT, hint_s=30.0)

    assert reported.starts_in_s == pytest.approx(30.0)


@pytest.fixture
def started_without_redis(places: Places) -> tuple[RateLimiter, Ticket, RateLimiter]:
    """Return two rate limiters; the first redistributed a limited item while Redis was away.

    Redis is back, and the first rate limiter has made no request since.
    """
    client = redis.Redis.from_url(places.redis_url)
    client.flushall()
    clock = ManualClock()
    limiter, other = (limiter_of(places, clock, UNLIMITED) for _ in range(2))
    fail(limiter, admitted(limiter, ask(item="limited")), ErrorCode.RATE_LIMIT)
    pid = int(client.info("server")["process_id"])
    os.kill(pid, signal.SIGSTOP)
    try:
        limiter.admit(ask(item="limited"))
        clock.now += 60
        started = limiter.admit(ask(item="limited"))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert isinstance(started, Go)
    assert started.ticket.is_local
    clock.now += AWAY_FOR_S
    return limiter, started.ticket, other


def test_items_redistributed_without_redis_are_reported_at_the_end_of_their_step(
    started_without_redis: tuple[RateLimiter, Ticket, RateLimiter],
) -> None:
    limiter, ticket, other = started_without_redis

    limiter.note(ticket, Outcome.success(1))

    seen = other.state()
    assert (seen.limited_items, seen.counters.rate_limited_items_redistributed) == (0, 1)


def test_an_item_redistributed_without_redis_and_limited_again_is_stored_again(
    started_without_redis: tuple[RateLimiter, Ticket, RateLimiter],
) -> None:
    limiter, ticket, other = started_without_redis

    fail(limiter, ticket, ErrorCode.RATE_LIMIT)

    seen = other.state()
    assert seen.limited_items == 1
    assert seen.counters.rate_limited_items_stored == 2
    assert seen.counters.rate_limited_items_redistributed == 1


@pytest.mark.parametrize("processes", [1, 3])
def test_a_cooldown_that_ends_while_redis_is_away_loses_nothing_and_blocks_no_call(
    places: Places, tmp_path: Path, processes: int
) -> None:
    client = redis.Redis.from_url(places.redis_url)
    client.flushall()
    limiter, pid = limiter_on(client, FAST), int(client.info("server")["process_id"])
    items = [f"item-{n}" for n in range(30)]
    with ProcessPoolExecutor(processes, mp_context=SPAWN) as pool:
        running = [
            pool.submit(
                closed_until_frozen, places.redis_url, f"job-{n}", items[n::processes], tmp_path
            )
            for n in range(processes)
        ]
        until(lambda: limiter.state().counters.rate_limited_items_stored >= 2 * processes)
        os.kill(pid, signal.SIGSTOP)

        try:
            (tmp_path / "frozen").touch()
            until(lambda: all((tmp_path / f"job-{n}").exists() for n in range(processes)))
        finally:
            os.kill(pid, signal.SIGCONT)
        seen = [one.result() for one in running]

    assert all(one.local_starts for one in seen)
    assert Counter(item for one in seen for item in one.succeeded) == Counter(items)
    counters = limiter.state().counters
    assert counters.rate_limited_items_stored == counters.rate_limited_items_redistributed > 0
    assert limiter.state().limited_items == 0
