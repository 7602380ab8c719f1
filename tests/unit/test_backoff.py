"""The ordinary retry follows its tables of budgets, delays and hints."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import ERRORS, Budget, ErrorCode
from pipeline.execution.backoff import RetryDecision, RetryLimits, backoff_s, decide


def decision(
    code: ErrorCode,
    *,
    attempts: int = 0,
    limited_calls: int = 0,
    max_attempts: int = 3,
    hint_s: float | None = None,
    seed: int = 1,
    limits: RetryLimits | None = None,
) -> RetryDecision:
    return decide(
        code,
        attempts=attempts,
        limited_calls=limited_calls,
        max_attempts=max_attempts,
        hint_s=hint_s,
        rng=random.Random(seed),
        limits=limits,
    )


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 30), (7, 30), (500, 30)]
)
def test_the_backoff_doubles_up_to_thirty_seconds(failures: int, seconds: float) -> None:
    assert backoff_s(failures) == seconds


RETRYABLE = [code for code in ErrorCode if ERRORS[code].budget is Budget.ATTEMPT]
FINAL = [
    code for code in ErrorCode if ERRORS[code].budget not in {Budget.ATTEMPT, Budget.RATE_LIMIT}
]


@pytest.mark.parametrize("code", RETRYABLE)
def test_a_transient_error_is_tried_again_until_its_attempts_are_spent(code: ErrorCode) -> None:
    decisions = [decision(code, attempts=spent) for spent in range(3)]

    assert [v.delay_s is not None for v in decisions] == [True, True, False]
    assert all(v.spends_attempt for v in decisions)
    assert decisions[-1].code is ErrorCode.MAX_RETRIES_EXCEEDED
    assert decisions[-1].message == f"all 3 attempts are used up; the last one failed with {code}"


@pytest.mark.parametrize("code", FINAL)
def test_an_error_without_a_budget_of_calls_is_never_tried_again(code: ErrorCode) -> None:
    found = decision(code)

    assert found.delay_s is None
    assert found.code is code
    assert found.budget is ERRORS[code].budget


@pytest.mark.parametrize("code", [ErrorCode.CONTEXT_TOO_LARGE, ErrorCode.QUOTA_EXHAUSTED])
def test_splitting_and_parking_spend_nothing(code: ErrorCode) -> None:
    assert not decision(code).spends_attempt


def test_a_limited_call_spends_a_wait_and_no_attempt() -> None:
    found = decision(ErrorCode.RATE_LIMIT, attempts=2, limited_calls=0)

    assert found.delay_s is not None
    assert not found.spends_attempt


def test_the_twentieth_limited_call_is_the_last() -> None:
    nineteenth = decision(ErrorCode.RATE_LIMIT, limited_calls=18)
    twentieth = decision(ErrorCode.RATE_LIMIT, limited_calls=19)

    assert nineteenth.delay_s is not None
    assert twentieth.delay_s is None
    assert twentieth.code is ErrorCode.MAX_RETRIES_EXCEEDED
    assert "all 20 limited calls are used up" in twentieth.message


def test_limited_calls_do_not_shorten_the_attempts() -> None:
    assert decision(ErrorCode.API_5XX, attempts=0, limited_calls=19).delay_s is not None


@pytest.mark.parametrize("hint_s", [0.5, 5.0, 53.0, 600.0])
def test_the_servers_hint_is_a_floor_that_the_time_scale_leaves_alone(hint_s: float) -> None:
    limits = RetryLimits(scale=0.05)

    delays = [
        decision(ErrorCode.RATE_LIMIT, hint_s=hint_s, seed=seed, limits=limits).delay_s
        for seed in range(50)
    ]

    assert all(delay is not None and hint_s <= delay <= hint_s + 0.05 for delay in delays)
    assert len(set(delays)) == 50


def test_the_backoff_stays_where_the_hint_is_shorter() -> None:
    delay = decision(ErrorCode.RATE_LIMIT, limited_calls=5, hint_s=0.1).delay_s

    assert delay is not None
    assert 22.5 <= delay <= 30.0


@given(
    attempts=st.integers(0, 8),
    seed=st.integers(0, 1_000),
    scale=st.sampled_from([1.0, 0.05]),
)
def test_jitter_shortens_a_backoff_by_a_quarter_at_most(
    attempts: int, seed: int, scale: float
) -> None:
    limits = RetryLimits(scale=scale)

    delay = decision(
        ErrorCode.API_5XX, attempts=attempts, max_attempts=10, seed=seed, limits=limits
    ).delay_s

    longest = backoff_s(attempts + 1) * scale
    assert delay is not None
    assert 0.75 * longest <= delay <= longest


def test_the_same_randomness_gives_the_same_delay() -> None:
    assert decision(ErrorCode.API_5XX, seed=7) == decision(ErrorCode.API_5XX, seed=7)
