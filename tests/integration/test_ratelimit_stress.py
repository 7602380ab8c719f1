"""The rate limiter keeps its promises under stress, in one process and in three.

Real processes share one real rate limiter. The tests count starts by Redis's clock, calls, items
and counters.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise

import pytest
import redis

from pipeline.core.errors import ErrorCode
from pipeline.ratelimit import CooldownRole, RateLimiterState, Tuning
from tests.support.limited_fanout import limited_calls
from tests.support.limiter_processes import (
    FAST,
    SPAWN,
    RunObservations,
    at_once,
    closed_for,
    half_of_calls_limited,
    limited_and_stuck,
    limiter_on,
    open_to_all,
)
from tests.support.limiter_simulation import admitted, fail

ITEMS = [f"item-{n}" for n in range(100)]
ROUNDING_S = 1e-4
in_one_and_in_three = pytest.mark.parametrize("processes", [1, 3])


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    """Provide three limiter processes."""
    with ProcessPoolExecutor(3, mp_context=SPAWN) as pool:
        yield pool


def shares(items: list[str], processes: int) -> list[list[str]]:
    return [items[n::processes] for n in range(processes)]


def state(client: redis.Redis) -> RateLimiterState:
    return limiter_on(client, FAST).state()


def four_counters(client: redis.Redis) -> tuple[int, int, int, int]:
    """Return the numbers of stored items, redistributed items, generations and participants."""
    counters = state(client).counters
    return (
        counters.rate_limited_items_stored,
        counters.rate_limited_items_redistributed,
        counters.rate_limit_generations,
        counters.rate_limit_participants,
    )


def starts_by_generation(seen: list[RunObservations]) -> dict[int, list[float]]:
    """Return the times of all starts of all processes, in order, by their generation."""
    found: dict[int, list[float]] = {}
    for generation, moment in sorted(start for one in seen for start in one.starts):
        found.setdefault(generation, []).append(moment)
    return found


def assert_paused_and_ramped(seen: list[RunObservations], tuning: Tuning) -> None:
    """Assert that no call started within a cooldown, and that a ramp followed each cooldown."""
    by_generation = starts_by_generation(seen)
    cooldowns = {g: length for one in seen for g, length in one.cooldowns.items()}
    for (before, earlier), (generation, later) in pairwise(by_generation.items()):
        assert generation == before + 1
        assert later[0] >= earlier[-1] + cooldowns[generation] - ROUNDING_S
        step = [m for m in later if m < later[0] + tuning.ramp_step_s - ROUNDING_S]
        assert len(step) <= tuning.ramp_first


@in_one_and_in_three
@pytest.mark.parametrize(("limited", "mixed_with"), [(1, 0), (2, 0), (10, 0), (10, 10)])
def test_one_of_the_limited_workers_coordinates_and_each_item_is_redistributed_once(
    redis_db: redis.Redis,
    pool: ProcessPoolExecutor,
    processes: int,
    limited: int,
    mixed_with: int,
) -> None:
    items = ITEMS[: limited + mixed_with]
    url, fails = os.environ["REDIS_URL"], set(items[:limited])

    asked = [
        pool.submit(at_once, url, share, fails, len(items)) for share in shares(items, processes)
    ]
    told = [one for each in asked for one in each.result()]

    roles = Counter(one.role for one in told)
    assert roles[CooldownRole.COORDINATOR] == 1
    assert roles[CooldownRole.PARTICIPANT] == limited - 1
    assert sum(one.was_redistributed for one in told) == limited
    assert four_counters(redis_db) == (limited, limited, 1, limited - 1)
    assert (state(redis_db).in_flight, state(redis_db).limited_items) == (0, 0)


@in_one_and_in_three
def test_an_item_that_ten_workers_hold_is_stored_once_and_redistributed_once(
    redis_db: redis.Redis, pool: ProcessPoolExecutor, processes: int
) -> None:
    url, items = os.environ["REDIS_URL"], ["item"] * 10

    asked = [pool.submit(at_once, url, share, {"item"}, 10) for share in shares(items, processes)]
    told = [one for each in asked for one in each.result()]

    assert sum(one.was_redistributed for one in told) == 1
    assert four_counters(redis_db) == (1, 1, 1, 9)
    assert state(redis_db).limited_items == 0


@in_one_and_in_three
def test_cascading_cooldowns_follow_each_other_longer_and_longer_and_never_nest(
    redis_db: redis.Redis, pool: ProcessPoolExecutor, processes: int
) -> None:
    url, items = os.environ["REDIS_URL"], ITEMS[:30]

    running = [
        pool.submit(closed_for, url, f"job-{n}", share, 10, 4)
        for n, share in enumerate(shares(items, processes))
    ]
    seen = [one.result() for one in running]

    lengths = dict(sorted((g, s) for one in seen for g, s in one.cooldowns.items()))
    assert list(lengths) == [1, 2, 3, 4]
    assert list(lengths.values()) == pytest.approx([0.02, 0.04, 0.05, 0.05], abs=1e-5)
    assert_paused_and_ramped(seen, FAST)
    assert Counter(item for one in seen for item in one.succeeded) == Counter(items)
    assert state(redis_db).counters.rate_limit_generations == 4


@in_one_and_in_three
def test_a_hundred_items_on_twenty_calls_half_of_them_limited_all_come_through_once(
    redis_db: redis.Redis, pool: ProcessPoolExecutor, processes: int
) -> None:
    url, calls = os.environ["REDIS_URL"], {1: [20], 3: [7, 7, 6]}[processes]

    running = [
        pool.submit(half_of_calls_limited, url, f"job-{n}", share, calls[n])
        for n, share in enumerate(shares(ITEMS, processes))
    ]
    seen = [one.result() for one in running]

    assert Counter(item for one in seen for item in one.succeeded) == Counter(ITEMS)
    roles = Counter(role for one in seen for role in one.roles)
    limited = limited_calls(ITEMS)
    assert (
        limited
        == sum(roles.values())
        == roles[CooldownRole.COORDINATOR] + roles[CooldownRole.PARTICIPANT]
    )
    found = state(redis_db)
    assert four_counters(redis_db) == (
        limited,
        limited,
        roles[CooldownRole.COORDINATOR],
        roles[CooldownRole.PARTICIPANT],
    )
    assert (found.in_flight, found.limited_items, found.waiting_jobs) == (0, 0, 0)
    assert_paused_and_ramped(seen, FAST)
    # Each process resumed: its last start was after a cooldown of itself or another process.
    assert all(one.starts[-1][0] > one.starts[0][0] for one in seen)


@pytest.mark.parametrize("others", [0, 2])
def test_a_coordinator_killed_in_its_cooldown_leaves_its_items_to_a_successor_and_blocks_no_step(
    redis_db: redis.Redis, pool: ProcessPoolExecutor, others: int
) -> None:
    url, tuning = os.environ["REDIS_URL"], Tuning(cooldown_base_s=0.5, ramp_step_s=0.05)
    items = [f"killed-{n}" for n in range(7)]
    here, there = SPAWN.Pipe()
    killed = SPAWN.Process(target=limited_and_stuck, args=(url, "killed", items, tuning, there))
    killed.start()
    there.close()
    roles = here.recv()
    until = state(redis_db).cooldown_until or 0.0
    waiting = [
        pool.submit(open_to_all, url, f"job-{n}", ITEMS[n * 20 : n * 20 + 20], 10, tuning)
        for n in range(others)
    ]

    os.kill(killed.pid or 0, signal.SIGKILL)
    killed.join()
    waiting.append(pool.submit(open_to_all, url, "killed", items, 7, tuning))
    seen = [one.result() for one in waiting]

    assert killed.exitcode == -signal.SIGKILL
    assert roles == [CooldownRole.COORDINATOR, *[CooldownRole.PARTICIPANT] * 6]
    assert min(moment for one in seen for _, moment in one.starts) >= until - ROUNDING_S
    wanted = [*items, *ITEMS[: others * 20]]
    assert Counter(item for one in seen for item in one.succeeded) == Counter(wanted)
    assert four_counters(redis_db) == (7, 7, 1, 6)
    assert state(redis_db).limited_items == 0


def test_three_processes_with_thirty_waiting_start_five_in_the_first_second_after_a_cooldown(
    redis_db: redis.Redis, pool: ProcessPoolExecutor
) -> None:
    url, tuning = os.environ["REDIS_URL"], Tuning(cooldown_base_s=1)
    limiter = limiter_on(redis_db, tuning)
    fail(limiter, admitted(limiter), ErrorCode.RATE_LIMIT)
    until = state(redis_db).cooldown_until or 0.0

    running = [
        pool.submit(open_to_all, url, f"job-{n}", [f"{n}-{i}" for i in range(30)], 30, tuning)
        for n in range(3)
    ]
    starts = sorted(moment for one in running for _, moment in one.result().starts)

    assert len(starts) == 90
    assert starts[0] >= until - ROUNDING_S
    assert len([moment for moment in starts if moment < starts[0] + 1 - ROUNDING_S]) <= 5
    seconds = Counter(int(moment - starts[0]) for moment in starts)
    assert all(seconds[n] <= 5 * 2**n for n in range(4))
