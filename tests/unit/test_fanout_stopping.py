"""A fan-out run stops and drains, and returns unfinished items, on a simulated clock."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from pipeline.core.deadline import StepDeadline
from pipeline.execution.fanout import (
    AttemptFailed,
    Fail,
    Failed,
    FanOut,
    Finished,
    GroupSettled,
    Item,
    Limits,
    Park,
    Retry,
    Returned,
    Started,
    Stopped,
    Succeeded,
    Tick,
)
from pipeline.execution.fanout.simulation import SimulatedClock, SimulatedExecutor
from tests.support.simulated_run import BROKEN, SimulatedRun, Steps, once


def test_a_stop_lets_calls_in_flight_finish_and_returns_the_rest() -> None:
    steps: Steps = {"a0": [(4.0, None)], "b0": [(50.0, None)], "c0": [(1.0, None)]}
    limits = Limits(calls=2, grace_s=10, tick_s=1000)

    run = SimulatedRun(steps, limits=limits, stop_at=(2, "sigterm")).play()

    assert run.when(Succeeded) == [(4, "a0")]
    assert run.of(Returned) == [Returned(key="b0", call_no=2), Returned(key="c0", call_no=None)]
    assert not run.of(AttemptFailed)
    assert run.log[-1] == (12, Stopped(reason="sigterm", returned=2))


def test_a_stop_ends_at_once_when_nothing_is_in_flight() -> None:
    run = SimulatedRun(
        {"a0": once()},
        decide=lambda *_: Retry(delay_s=60, spends_attempt=True),
        stop_at=(5, "cancelled"),
    ).play()

    assert run.of(Returned) == [Returned(key="a0", call_no=None)]
    assert run.log[-1] == (5, Stopped(reason="cancelled", returned=1))


def test_a_drain_in_which_everything_settles_returns_nothing() -> None:
    run = SimulatedRun({"a0": [(4.0, None)]}, stop_at=(2, "pause")).play()

    assert run.of(GroupSettled) == [GroupSettled(group="a", failed_keys=())]
    assert run.log[-1] == (4, Stopped(reason="pause", returned=0))


def test_a_failure_during_a_drain_is_not_retried_but_a_final_one_is_final() -> None:
    final = ValueError("final")

    def decide(item: Item[str, str], attempt: int, error: BaseException, now: float) -> Any:
        return Fail() if error is final else Retry(delay_s=1, spends_attempt=True)

    steps: Steps = {"a0": [(4.0, BROKEN)], "b0": [(4.0, final)]}

    run = SimulatedRun(steps, decide=decide, stop_at=(2, "pause")).play()

    assert [(event.key, event.retry_in_s) for event in run.of(AttemptFailed)] == [
        ("a0", None),
        ("b0", None),
    ]
    assert run.of(Failed) == [Failed(key="b0", error=final)]
    assert run.of(Returned) == [Returned(key="a0", call_no=None)]


def test_a_reply_to_a_call_cut_off_by_a_stop_comes_too_late_to_count() -> None:
    def write_slowly(run: FanOut[str, str, str], event: object) -> None:
        if isinstance(event, Returned):
            clock.now += 10

    clock = SimulatedClock()
    steps: Steps = {"a0": [(6.0, None)], "b0": [(6.0, BROKEN)]}
    limits = Limits(grace_s=1, tick_s=1000)

    run = SimulatedRun(steps, limits=limits, stop_at=(2, "lease lost"), clock=clock).play(
        write_slowly
    )

    assert [type(event) for _, event in run.log[-3:]] == [Returned, Returned, Stopped]


def test_the_first_reason_counts_and_a_second_stop_can_only_shorten_the_grace() -> None:
    def hurry(run: FanOut[str, str, str], event: object) -> None:
        if isinstance(event, Started):
            run.stop("give back", grace_s=50)
            run.stop("sigterm", grace_s=3)
            run.stop("again", grace_s=20)

    run = SimulatedRun({"a0": [(90.0, None)]}).play(hurry)

    assert run.log[-1] == (3, Stopped(reason="give back", returned=1))


def test_a_parked_item_spends_nothing_and_drains_the_run() -> None:
    steps: Steps = {"a0": [(1.0, BROKEN)], "b0": [(3.0, None)]}

    run = SimulatedRun(steps, decide=lambda *_: Park(reason="quota")).play()

    failed = run.of(AttemptFailed)[0]
    assert (failed.spends_attempt, failed.retry_in_s) == (False, None)
    assert run.when(Succeeded) == [(3, "b0")]
    assert run.of(Returned) == [Returned(key="a0", call_no=None)]
    assert run.log[-1] == (3, Stopped(reason="quota", returned=1))


def test_the_executor_runs_at_every_tick_while_a_call_is_slow() -> None:
    run = SimulatedRun({"a0": [(5.2, None)]}, limits=Limits(tick_s=2)).play()

    assert run.when(Tick) == [(2, ""), (4, "")]
    assert run.of(Tick)[0] == Tick(
        in_flight=1, ready=0, waiting=0, groups_open=1, written_off=0, unsettled=1
    )


def test_an_executor_slower_than_a_tick_still_gets_every_event() -> None:
    clock = SimulatedClock()
    items = [Item(key=n, group=0, size=1) for n in range(5)]
    fan: FanOut[int, int, None] = FanOut(
        items,
        call=lambda *_: None,
        decide=lambda *_: Fail(),
        limits=Limits(tick_s=1),
        clock=clock,
        executor=partial(SimulatedExecutor, latency=lambda *_: 1.0),
    )
    kinds: list[type] = []

    for event in fan.events():
        kinds.append(type(event))
        clock.now += 3

    assert kinds.count(Succeeded) == 5
    assert kinds[-1] is Finished


def test_freed_slots_are_filled_before_the_executor_sees_an_event() -> None:
    clock = SimulatedClock()
    begun: list[tuple[float, int]] = []
    items = [Item(key=n, group=0, size=1) for n in range(3)]
    fan: FanOut[int, int, None] = FanOut(
        items,
        call=lambda item, *_: begun.append((clock.now, item.key)),
        decide=lambda *_: Fail(),
        limits=Limits(calls=1),
        clock=clock,
        executor=partial(SimulatedExecutor, latency=lambda *_: 1.0),
    )

    for event in fan.events():
        if isinstance(event, Succeeded):
            assert event.key == 2 or begun[-1] == (clock.now, event.key + 1)

    assert [moment for moment, _ in begun] == [0, 1, 2]


def test_an_exception_of_a_policy_reaches_the_executor() -> None:
    def decide(*_: object) -> Retry:
        raise LookupError("no such batch")

    run = SimulatedRun({"a0": [(1.0, BROKEN)]}, decide=decide)

    with pytest.raises(LookupError):
        run.play()


def test_a_run_cannot_be_iterated_twice() -> None:
    run: FanOut[str, str, str] = FanOut([], call=lambda *_: "", decide=lambda *_: Fail())
    list(run.events())

    with pytest.raises(RuntimeError, match="once"):
        list(run.events())


def test_two_items_with_one_key_are_refused() -> None:
    item = Item(key="a0", group="a", size=1)

    with pytest.raises(ValueError, match="same key"):
        FanOut([item, item], call=lambda *_: None, decide=lambda *_: Fail())


@pytest.mark.parametrize(
    "limits",
    [{"groups": 0}, {"calls": 0}, {"tick_s": 0.0}, {"call_deadline_s": 0.0}, {"grace_s": -1.0}],
)
def test_limits_that_could_never_work_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least one|above 0 s|negative"):
        Limits(**limits)


def test_after_the_soft_deadline_nothing_begins_and_what_is_in_flight_has_until_the_hard_one() -> (
    None
):
    steps: Steps = {"a0": [(9.5, None)], "b0": [(50.0, None)], "c0": [(1.0, None)]}
    limits = Limits(calls=2, grace_s=60, tick_s=1000)
    deadline = StepDeadline(10, now=0)
    sizes = {"a0": 3.0, "b0": 2.0}

    run = SimulatedRun(steps, limits=limits, deadline=deadline, sizes=sizes).play()

    assert run.when(Started) == [(0, "a0"), (0, "b0")]
    assert run.when(Succeeded) == [(9.5, "a0")]
    assert run.of(Returned) == [Returned(key="b0", call_no=2), Returned(key="c0", call_no=None)]
    assert run.log[-1] == (10, Stopped(reason="deadline", returned=2))


def test_a_grace_period_never_outlasts_the_deadline() -> None:
    limits = Limits(grace_s=60, tick_s=1000)
    deadline = StepDeadline(10, now=0)
    steps: Steps = {"a0": [(50.0, None)]}

    run = SimulatedRun(steps, limits=limits, deadline=deadline, stop_at=(2, "sigterm")).play()

    assert run.log[-1] == (10, Stopped(reason="sigterm", returned=1))
