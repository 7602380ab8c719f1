"""The fan-out follows its rules one by one on a simulated clock, without threads or sleep."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipeline.core.deadline import StepDeadline
from pipeline.execution.fanout import (
    AttemptFailed,
    CallTimedOut,
    DeadlineExceeded,
    Fail,
    Failed,
    FanOut,
    Finished,
    GroupSettled,
    Item,
    LateReply,
    Limits,
    Park,
    Replace,
    Replaced,
    Retry,
    Returned,
    Started,
    Stopped,
    Succeeded,
    Tick,
)
from tests.support.simulated_run import BROKEN, SimulatedRun, Steps, once


def test_a_run_ends_when_every_item_has_succeeded() -> None:
    run = SimulatedRun({"a0": [(2, None)], "b0": [(3, None)]}).play()

    assert run.when(Succeeded) == [(2, "a0"), (3, "b0")]
    assert [event.group for event in run.of(GroupSettled)] == ["a", "b"]
    assert run.log[-1] == (3, Finished())


def test_a_group_without_items_settles_at_once_and_a_run_without_items_ends_at_once() -> None:
    run = SimulatedRun({}, groups=["a"]).play()

    assert [event for _, event in run.log] == [GroupSettled(group="a", failed_keys=()), Finished()]
    assert run.ended_at == 0


def test_the_largest_item_starts_first_then_the_earlier_group_then_the_earlier_item() -> None:
    keys = ["a0", "a1", "b0", "b1", "c0"]
    sizes = {"a0": 1, "a1": 5, "b0": 9, "b1": 5, "c0": 5}

    run = SimulatedRun(
        {key: [(1, None)] for key in keys}, sizes=sizes, limits=Limits(calls=1)
    ).play()

    assert [event.key for event in run.of(Started)] == ["b0", "a1", "b1", "c0", "a0"]


def test_open_groups_are_not_finished_before_a_larger_item_of_another() -> None:
    sizes = {"a0": 9, "a1": 1, "b0": 5}

    run = SimulatedRun(
        {key: [(1, None)] for key in sizes}, sizes=sizes, limits=Limits(calls=1)
    ).play()

    assert [event.key for event in run.of(Started)] == ["a0", "b0", "a1"]


def test_a_full_set_of_open_groups_keeps_larger_items_of_others_waiting() -> None:
    sizes = {"a0": 9, "a1": 1, "b0": 5}

    run = SimulatedRun(
        {key: [(1, None)] for key in sizes}, sizes=sizes, limits=Limits(calls=1, groups=1)
    ).play()

    assert [event.key for event in run.of(Started)] == ["a0", "a1", "b0"]


def test_a_refused_item_goes_behind_the_items_that_were_not_refused() -> None:
    steps: Steps = {
        "a0": [(1, BROKEN), (1, BROKEN), (1, None)],
        "b0": [(1, None)] * 2,
        "c0": once(),
    }
    sizes = {"a0": 9, "b0": 5, "c0": 1}

    run = SimulatedRun(
        steps,
        sizes=sizes,
        limits=Limits(calls=1),
        decide=lambda *_: Retry(delay_s=0, spends_attempt=False),
    ).play()

    assert [event.key for event in run.of(Started)] == ["a0", "b0", "c0", "a0", "c0", "a0"]


def test_a_waiting_retry_holds_no_call_slot() -> None:
    steps: Steps = {"a0": once(), "b0": [(1, None)]}

    run = SimulatedRun(
        steps,
        limits=Limits(calls=1),
        decide=lambda *_: Retry(delay_s=10, spends_attempt=True),
    ).play()

    assert run.when(Started) == [(0, "a0"), (1, "b0"), (11, "a0")]


def test_a_group_that_only_waits_gives_up_its_place_and_takes_one_again() -> None:
    steps: Steps = {"a0": once(), "b0": [(1, None)], "b1": [(1, None)]}

    run = SimulatedRun(steps, limits=Limits(calls=1, groups=1)).play()

    assert run.when(Started) == [(0, "a0"), (1, "b0"), (2, "b1"), (3, "a0")]
    assert [event.group for event in run.of(GroupSettled)] == ["b", "a"]


def test_the_policy_sees_what_the_item_has_spent_so_far() -> None:
    seen: list[tuple[int, int, int]] = []

    def decide(item: Item[str, str], attempt: int, error: BaseException, now: float) -> Retry:
        seen.append((attempt, item.attempts, item.free_retries))
        return Retry(delay_s=1, spends_attempt=len(seen) != 2)

    steps: Steps = {"a0": [*[(1.0, BROKEN)] * 3, (1.0, None)]}

    run = SimulatedRun(steps, decide=decide).play()

    assert seen == [(1, 0, 0), (2, 1, 0), (2, 1, 1)]
    assert [event.attempt for event in run.of(Started)] == [1, 2, 2, 3]
    assert [event.spends_attempt for event in run.of(AttemptFailed)] == [True, False, True]
    assert [event.call_no for event in run.of(Started)] == [1, 2, 3, 4]


def test_a_failed_item_leaves_its_siblings_and_other_groups_alone() -> None:
    steps: Steps = {"a0": [(1.0, BROKEN)], "a1": [(5.0, None)], "b0": [(2.0, None)]}

    run = SimulatedRun(steps, decide=lambda *_: Fail()).play()

    assert run.of(Failed) == [Failed(key="a0", error=BROKEN)]
    assert run.of(GroupSettled) == [
        GroupSettled(group="b", failed_keys=()),
        GroupSettled(group="a", failed_keys=("a0",)),
    ]


def test_the_failed_items_of_a_group_are_named_in_the_order_given() -> None:
    steps: Steps = {"a0": [(3.0, BROKEN)], "a1": [(1.0, BROKEN)], "a2": [(2.0, BROKEN)]}

    run = SimulatedRun(steps, decide=lambda *_: Fail()).play()

    assert run.of(GroupSettled) == [GroupSettled(group="a", failed_keys=("a0", "a1", "a2"))]


def test_a_policy_may_name_the_error_that_an_item_fails_with() -> None:
    exhausted = ValueError("exhausted")

    run = SimulatedRun({"a0": [(1.0, BROKEN)]}, decide=lambda *_: Fail(error=exhausted)).play()

    assert [event.error for event in run.of(AttemptFailed)] == [BROKEN]
    assert [event.error for event in run.of(Failed)] == [exhausted]


def test_a_replaced_item_is_done_when_those_in_its_place_are() -> None:
    halves = tuple(Item(key=f"a0.{n}", group="a", size=1) for n in range(2))

    run = SimulatedRun({"a0": [(1.0, BROKEN)]}, decide=lambda *_: Replace(items=halves)).play()

    assert run.of(Replaced) == [Replaced(key="a0", items=halves)]
    assert run.when(Succeeded) == [(2, "a0.0"), (2, "a0.1")]
    assert run.of(GroupSettled) == [GroupSettled(group="a", failed_keys=())]


@pytest.mark.parametrize("group", ["b", None])
def test_a_replacement_must_be_items_of_the_same_group(group: str | None) -> None:
    items = () if group is None else (Item(key="b0", group=group, size=1),)
    run = SimulatedRun({"a0": [(1.0, BROKEN)]}, decide=lambda *_: Replace(items=items))

    with pytest.raises(ValueError, match="of its own group"):
        run.play()


def test_a_call_past_its_deadline_is_written_off_and_its_late_reply_changes_nothing() -> None:
    steps: Steps = {"a0": [(8.0, None), (1.0, None)], "b0": [(20.0, None)]}

    run = SimulatedRun(steps, limits=Limits(calls=3, call_deadline_s=5, tick_s=1000)).play()

    failed = run.of(AttemptFailed)[0]
    assert isinstance(failed.error, CallTimedOut)
    assert (failed.error.elapsed_s, failed.error.deadline_s) == (5, 5)
    assert run.when(Succeeded) == [(7, "a0")]
    late = run.of(LateReply)[0]
    assert (late.key, late.call_no, late.result) == ("a0", 1, "a0 on attempt 1")


def test_a_written_off_call_frees_its_slot_for_another() -> None:
    steps: Steps = {"a0": [(100.0, None)], "b0": [(1.0, None)], "c0": [(1.0, None)]}
    limits = Limits(calls=2, call_deadline_s=5, tick_s=1000)

    run = SimulatedRun(steps, limits=limits, decide=lambda *_: Fail()).play()

    assert run.when(Started) == [(0, "a0"), (0, "b0"), (1, "c0")]
    assert run.log[-1] == (5, Finished())


def test_as_many_hung_calls_as_slots_drain_the_run() -> None:
    steps: Steps = {key: [(100.0, None)] for key in ("a0", "b0", "c0")}
    limits = Limits(calls=2, call_deadline_s=5, tick_s=1000)

    run = SimulatedRun(
        steps, limits=limits, decide=lambda *_: Retry(delay_s=9, spends_attempt=True)
    ).play()

    assert run.log[-1][1] == Stopped(reason="written_off", returned=3)
    assert {event.key for event in run.of(Returned)} == {"a0", "b0", "c0"}


def test_a_late_reply_makes_room_for_another_hung_call() -> None:
    steps: Steps = {"a0": [(6.0, None)], "b0": [(6.0, None)], "c0": [(1.0, None)]}
    limits = Limits(calls=2, call_deadline_s=5, tick_s=1000)
    sizes = {"a0": 3.0, "c0": 2.0}

    run = SimulatedRun(steps, limits=limits, sizes=sizes, decide=lambda *_: Fail()).play()

    assert [event.key for event in run.of(LateReply)] == ["a0"]
    assert run.log[-1] == (6, Finished())


def test_a_retry_past_the_deadline_of_the_run_fails_now_and_says_both_numbers() -> None:
    run = SimulatedRun(
        {"a0": [(4.0, BROKEN)]},
        deadline=StepDeadline(10, now=0),
        decide=lambda *_: Retry(delay_s=7, spends_attempt=True),
    ).play()

    error = run.of(Failed)[0].error
    assert isinstance(error, DeadlineExceeded)
    assert (error.remaining_s, error.delay_s, error.original) == (5, 7, BROKEN)
    assert "7.0 s" in str(error)
    assert "5.0 s" in str(error)
    assert run.ended_at == 4


def test_time_that_does_not_count_moves_the_deadline_of_the_run() -> None:
    deadline = StepDeadline(10, now=0)

    def grant(run: FanOut[str, str, str], event: object) -> None:
        if isinstance(event, Started) and event.attempt == 1:
            deadline.extend(5)

    run = SimulatedRun(
        {"a0": once(seconds=4)},
        deadline=deadline,
        decide=lambda *_: Retry(delay_s=7, spends_attempt=True),
    ).play(grant)

    assert run.when(Succeeded) == [(12, "a0")]


def test_a_limiter_that_says_park_ends_an_idle_run_at_once() -> None:
    run = SimulatedRun(
        {"a0": once(), "b0": once()}, admit=lambda item, now: Park(reason="parked")
    ).play()

    assert run.of(Returned) == [
        Returned(key="a0", call_no=None),
        Returned(key="b0", call_no=None),
    ]
    assert run.log[-1] == (0, Stopped(reason="parked", returned=2))


def test_calls_that_were_admitted_before_a_park_still_run() -> None:
    run = SimulatedRun(
        {"a0": [(1.0, None)], "b0": [(1.0, None)], "c0": [(1.0, None)]},
        admit_many=lambda items, now: (2, Park(reason="parked")),
    ).play()

    assert [event.key for event in run.of(Succeeded)] == ["a0", "b0"]
    assert run.of(Returned) == [Returned(key="c0", call_no=None)]
    assert run.log[-1] == (1, Stopped(reason="parked", returned=1))


def test_a_question_is_about_as_many_items_as_there_are_free_slots_and_fewer_after_a_refusal() -> (
    None
):
    asked: list[tuple[float, int]] = []

    def admit_many(items: Sequence[Item[str, str]], now: float) -> tuple[int, float | None]:
        asked.append((now, len(items)))
        return (0, 1.0) if now == 1 else (len(items), None)

    SimulatedRun(
        {f"a{n}": [(1.0, None)] for n in range(12)},
        limits=Limits(calls=4, tick_s=1000),
        admit_many=admit_many,
    ).play()

    # After the refusal at 1 s, one item asks, then two, then as many as are free.
    assert asked == [(0, 4), (1, 4), (2, 1), (2, 2), (2, 1), (3, 2), (3, 2)]


def test_a_limiter_that_says_wait_holds_neither_a_slot_nor_a_place() -> None:
    asked: list[tuple[float, str]] = []

    def admit(item: Item[str, str], now: float) -> float | None:
        asked.append((now, item.key))
        return 3.0 if now < 3 else None

    ticks: list[Tick] = []
    run = SimulatedRun(
        {"a0": [(1, None)], "b0": [(1, None)]},
        limits=Limits(groups=1, calls=1, tick_s=1),
        admit=admit,
    ).play(lambda _, event: ticks.append(event) if isinstance(event, Tick) else None)

    assert asked == [(0, "a0"), (3, "a0"), (4, "b0")]
    assert run.when(Started) == [(3, "a0"), (4, "b0")]
    assert [(tick.in_flight, tick.groups_open, tick.ready) for tick in ticks[:2]] == [(0, 0, 2)] * 2
    assert [event.queue_wait_s for event in run.of(Started)] == [3, 4]


def test_the_next_request_to_a_limiter_follows_its_hint_and_not_the_next_tick() -> None:
    run = SimulatedRun(
        {"a0": [(1, None)]}, admit=lambda item, now: 2.5 if now < 2.5 else None
    ).play()

    assert run.when(Started) == [(2.5, "a0")]


def test_a_limiter_that_says_zero_seconds_cannot_make_the_run_spin() -> None:
    asked: list[float] = []

    def admit(item: Item[str, str], now: float) -> float | None:
        asked.append(now)
        return 0.0 if now < 0.01 else None

    SimulatedRun({"a0": [(1, None)]}, admit=admit).play()

    assert len(asked) <= 12
