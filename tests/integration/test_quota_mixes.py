"""No record fails if all its calls succeed, however small the quota that its job shares.

A mix is a quota (requests, tokens, requests per day) and the records of some hosts. The hosts share
one rate limiter in simulated time (see `simulated_cluster`). Redis may be emptied in between.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.support.simulated_cluster import Mix, SimulatedCall, play

MIXES = 1000
PARTS = 4


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return float(low * (high / low) ** rng.random())


def a_mix(seed: int) -> Mix:
    """Return a mix; its quota alone makes it last from half a minute to an hour."""
    rng = random.Random(seed)
    slowest = log_uniform(rng, 0.5, 119.0)

    def call() -> SimulatedCall:
        tokens = int(log_uniform(rng, 100, 20_000))
        return SimulatedCall(
            estimate=tokens,
            tokens=int(tokens * rng.uniform(0.6, 1.5)),
            seconds=slowest * rng.uniform(0.1, 1.0),
        )

    count = rng.choice([1, 1, 1, 1, 2, 3])
    sizes = [1, 2, 5, 13, 34] if count == 1 else [1, 2, 3, 8]
    hosts = [
        (
            0.0 if number == 0 else log_uniform(rng, 1.0, 200.0),
            [[call() for _ in range(rng.choice(sizes))] for _ in range(rng.choice([1, 1, 2]))],
        )
        for number in range(count)
    ]
    calls = [call for _, records in hosts for record in records for call in record]
    minutes = log_uniform(rng, 0.5, rng.choice([3.0, 60.0]))
    bound = rng.choice(["requests", "tokens", "both"])
    rpm = 300 if bound == "tokens" else max(1, int(len(calls) / minutes))
    tpm = sum(call.estimate for call in calls) / minutes
    return Mix(
        rpm=rpm,
        tpm=1_000_000 if bound == "requests" else max(500, int(tpm)),
        rpd=rng.choice([None, None, None, max(1, len(calls) // 2)]),
        slots=rng.choice([1, 2, 5, 30]),
        emptied_at=rng.choice([None, None, None, minutes * 60 * rng.random()]),
        hosts=hosts,
    )


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.usefixtures("redis_db")
def test_no_record_fails_if_all_its_calls_succeed(part: int, settings: Any) -> None:
    settings.CALL_DEADLINE_S, settings.STEP_DEADLINE_MIN_S = 120.0, 300.0

    for seed in range(part, MIXES, PARTS):
        hosts = play(a_mix(seed))

        assert [host.failed for host in hosts] == [[] for _ in hosts], seed
        assert sum(host.requeued for host in hosts) == 0, seed
