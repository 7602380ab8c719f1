"""Jobs keep one lease holder, lose nothing, and reach an end, in every order of moves."""

from __future__ import annotations

import os
from typing import Any

import redis
from hypothesis import HealthCheck
from hypothesis import settings as bounds
from hypothesis.stateful import run_state_machine_as_test

from tests.support.job_machine import LEASE, UNIT_S, JobMachine

WALKS = int(os.environ.get("MEDPROC_TEST_WALKS", "25"))
"""Number of walks in the suite; a long run has thousands."""
MOVES = 40
"""Number of moves of the longest walk."""


def test_each_job_has_one_lease_holder_one_effect_and_an_end_in_every_order_of_moves(
    cloned_db: str, redis_db: redis.Redis, settings: Any, monkeypatch: Any
) -> None:
    settings.TIME_SCALE = 1.0
    settings.SKIPPED_PASSES = ()
    settings.LEASE_S = LEASE * UNIT_S
    monkeypatch.setattr(JobMachine, "redis", redis_db, raising=False)

    run_state_machine_as_test(
        JobMachine,
        settings=bounds(
            max_examples=WALKS,
            stateful_step_count=MOVES,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        ),
    )
