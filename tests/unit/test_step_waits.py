"""A step's time is planned by its quota, its waits are left out and named, and it still ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipeline.core.deadline import StepDeadline
from pipeline.execution.fanout import (
    DEADLINE,
    AttemptFailed,
    CallTimedOut,
    Fail,
    Failed,
    Finished,
    Item,
    Limits,
    Retry,
    Returned,
    Stopped,
)
from pipeline.execution.step_time import step_time_s
from pipeline.execution.step_waits import REASONS, StepWaits
from pipeline.providers.base import Provider
from pipeline.ratelimit import Why
from tests.support.simulated_run import BROKEN, SimulatedRun

GEMINI = cast(Provider, SimpleNamespace(name="gemini", model="m", max_calls=None))
LOCAL = cast(Provider, SimpleNamespace(name="local", model="m", max_calls=2))
CHAIN_S = 3 * 120 + 1 + 2


@pytest.fixture(autouse=True)
def _unscaled(settings: Any) -> None:
    settings.TIME_SCALE, settings.GATE_WINDOW_S = 1.0, 60.0
    settings.CALL_DEADLINE_S, settings.STEP_DEADLINE_MIN_S = 120.0, 300.0
    settings.PASS1_MAX_RETRIES, settings.PASS1_CONCURRENCY_LIMIT = 3, 30
    settings.GEMINI_RPM, settings.GEMINI_TPM = 300, 1_000_000


def test_the_slowest_plan_and_the_longest_chain_of_retries_give_a_step_its_time(
    settings: Any,
) -> None:
    by_slots = 60 / 30 * 120 / 0.9
    assert step_time_s([100.0] * 60, GEMINI) == pytest.approx(by_slots + CHAIN_S)

    settings.GEMINI_RPM = 2
    assert step_time_s([100.0] * 60, GEMINI) == 60 / 1 * 60 + CHAIN_S

    settings.GEMINI_RPM, settings.GEMINI_TPM = 300, 8_000
    assert step_time_s([4_000.0] * 20, GEMINI) == 20 * 60 + CHAIN_S
    assert step_time_s([4_000.0] * 20, GEMINI, jobs=3) == 3 * 20 * 60 + CHAIN_S


def test_the_local_engine_has_no_quota_to_plan_for(settings: Any) -> None:
    settings.GEMINI_RPM = settings.GEMINI_TPM = 1

    assert step_time_s([4_000.0] * 2, LOCAL) == pytest.approx(120 / 0.9 + CHAIN_S)


def test_a_step_has_a_least_time(settings: Any) -> None:
    settings.CALL_DEADLINE_S = 1.0

    assert step_time_s([], GEMINI) == 300


def test_the_waits_of_a_step_are_named_the_longest_first() -> None:
    waits = StepWaits()
    waits.ask(None, 0)
    waits.begin_call(0)
    waits.ask(Why.TURN, 10)
    waits.ask(Why.TOKENS, 15)
    waits.end_call(40)
    waits.ask(Why.TOKENS, 50)
    waits.ask(None, 615)
    waits.begin_call(615)
    waits.begin_call(616)
    waits.end_call(618)

    assert waits.in_words(635) == (
        "waited 10 min for input tokens per minute (GEMINI_TPM),"
        " 5.0 s for its turn among the jobs that share the quota; calls in flight for 60 s"
    )


def test_a_cooldown_is_counted_once_whether_the_step_asks_meanwhile_or_not() -> None:
    waits = StepWaits()
    waits.hold(Why.COOLDOWN, 20, 0)
    waits.hold(Why.COOLDOWN, 20, 5)
    waits.ask(Why.COOLDOWN, 10)
    waits.ask(Why.RAMP, 25)
    waits.ask(None, 27)
    waits.hold(Why.COOLDOWN, 100, 40)

    assert waits.in_words(50) == waits.in_words(50)
    assert waits.in_words(50).startswith(
        "waited 35 s for the cooldown after a 429, 2.0 s for the ramp after a cooldown,"
    )


def test_a_step_without_waits_says_so() -> None:
    assert StepWaits().in_words(5) == "waited for no quota; calls in flight for 0.0 s"


def test_each_reason_of_the_rate_limiter_has_words() -> None:
    assert set(REASONS) == set(Why)


def test_the_moment_until_a_waiting_step_asks_again_is_left_out_as_well() -> None:
    deadline = StepDeadline(100, now=0)

    deadline.leave_out(10, now=20)
    deadline.leave_out_until(32)
    deadline.leave_out(10, now=32)

    assert deadline.ends_at == 122


def test_nothing_is_left_out_until_a_step_has_waited() -> None:
    deadline = StepDeadline(100, now=0)

    deadline.leave_out_until(32)

    assert deadline.ends_at == 100


@pytest.mark.parametrize(
    ("has_progressed", "delay_s", "is_kept"),
    [(False, 5, False), (True, 5, True), (True, 95, False)],
)
def test_a_retry_beyond_the_deadline_is_kept_for_the_next_run_of_a_step_that_has_progressed(
    has_progressed: bool, delay_s: float, is_kept: bool
) -> None:
    deadline = StepDeadline(100, now=0)
    deadline.has_progressed = has_progressed

    run = SimulatedRun(
        {"a": [(88.0, BROKEN)]},
        deadline=deadline,
        decide=lambda item, attempt, error, now: Retry(delay_s=delay_s, spends_attempt=True),
    ).play()

    if is_kept:
        assert run.when(Returned) == [(90, "a")]
        assert run.of(Stopped) == [Stopped(reason=DEADLINE, returned=1)]
    else:
        assert run.when(Failed) == [(88, "a")]


def test_a_step_whose_calls_hang_ends_although_its_waits_are_left_out() -> None:
    deadline = StepDeadline(100, now=0)
    started: list[float] = []

    def admit(item: Item[str, str], now: float) -> float | None:
        # The rate limiter admits one call a minute, and so refuses the step nearly all the time.
        if not started or now >= started[-1] + 60:
            started.append(now)
            return None
        wait_s = started[-1] + 60 - now
        deadline.leave_out(wait_s, now=now)
        return wait_s

    run = SimulatedRun(
        {key: [(1e9, None)] for key in "abcd"},
        limits=Limits(calls=100, call_deadline_s=120, tick_s=1e9),
        deadline=deadline,
        admit=admit,
        decide=lambda item, attempt, error, now: (
            Fail() if attempt == 3 else Retry(delay_s=1, spends_attempt=True)
        ),
    ).play()

    assert {type(event.error) for event in run.of(AttemptFailed)} == {CallTimedOut}
    assert isinstance(run.log[-1][1], Finished | Stopped)
    assert run.ended_at < 15 * 60
