"""The fan-out's rules one by one, on a simulated clock: no thread runs and nothing sleeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from pipeline.fanout import (
    Admit,
    AttemptFailed,
    CallTimedOut,
    DeadlineExceeded,
    Decision,
    Event,
    Executor,
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
from pipeline.fanout.simulated import SimulatedClock, SimulatedExecutor

Step = tuple[float, BaseException | None]
"""How one call goes: it takes so many seconds and raises this, or succeeds."""
Steps = Mapping[str, Sequence[Step]]


@dataclass
class Run:
    """A simulated run: what each item's calls do, in order; the last one repeats."""

    steps: Steps
    limits: Limits = field(default_factory=lambda: Limits(tick_s=1000))
    decide: Callable[[Item[str, str], int, BaseException, float], Decision[str, str]] = (
        lambda item, attempt, error, now: Retry(delay_s=1, spends_attempt=True)
    )
    admit: Admit[str, str] | None = None
    groups: Iterable[str] = ()
    sizes: Mapping[str, float] = field(default_factory=dict)
    stop_at: tuple[float, str] | None = None
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    log: list[tuple[float, Event[str, str, str]]] = field(default_factory=list)

    def play(self, on_event: Callable[[FanOut[str, str, str], Any], None] | None = None) -> Run:
        clock = self.clock
        begun: dict[str, int] = {}

        def step(item: Item[str, str]) -> Step:
            plan = self.steps.get(item.key, [(1.0, None)])
            return plan[min(begun.get(item.key, 0), len(plan) - 1)]

        def latency(item: Item[str, str], attempt: int) -> float:
            return step(item)[0]

        def call(item: Item[str, str], attempt: int, cancel: object) -> str:
            error = step(item)[1]
            begun[item.key] = begun.get(item.key, 0) + 1
            if error is not None:
                raise error
            return f"{item.key} on attempt {attempt}"

        made: list[SimulatedExecutor[str, str, str]] = []

        def executor(call: Any, clock: Any) -> Executor[str, str, str]:
            made.append(SimulatedExecutor(call, clock, latency=latency))
            return made[0]

        items = [Item(key=key, group=key[0], size=self.sizes.get(key, 1.0)) for key in self.steps]
        with FanOut(
            items,
            call=call,
            decide=self.decide,
            limits=self.limits,
            groups=self.groups,
            admit=self.admit,
            clock=clock,
            executor=executor,
        ) as run:
            if self.stop_at is not None:
                made[0].at(self.stop_at[0], partial(run.stop, self.stop_at[1]))
            for event in run.events():
                self.log.append((clock.now, event))
                if on_event is not None:
                    on_event(run, event)
        return self

    def of(self, kind: type) -> list[Any]:
        return [event for _, event in self.log if isinstance(event, kind)]

    def when(self, kind: type) -> list[tuple[float, str]]:
        return [
            (now, getattr(event, "key", "")) for now, event in self.log if isinstance(event, kind)
        ]

    @property
    def ended_at(self) -> float:
        return self.log[-1][0]


BROKEN = RuntimeError("broken")


def once(error: BaseException = BROKEN, seconds: float = 1.0) -> list[Step]:
    return [(seconds, error), (1.0, None)]


def test_a_run_ends_when_every_item_has_succeeded() -> None:
    run = Run({"a0": [(2, None)], "b0": [(3, None)]}).play()

    assert run.when(Succeeded) == [(2, "a0"), (3, "b0")]
    assert [event.group for event in run.of(GroupSettled)] == ["a", "b"]
    assert run.log[-1] == (3, Finished())


def test_a_group_without_items_settles_at_once_and_a_run_without_items_ends_at_once() -> None:
    run = Run({}, groups=["a"]).play()

    assert [event for _, event in run.log] == [GroupSettled(group="a", failed_keys=()), Finished()]
    assert run.ended_at == 0


def test_the_largest_item_starts_first_then_the_earlier_group_then_the_earlier_item() -> None:
    keys = ["a0", "a1", "b0", "b1", "c0"]
    sizes = {"a0": 1, "a1": 5, "b0": 9, "b1": 5, "c0": 5}

    run = Run({key: [(1, None)] for key in keys}, sizes=sizes, limits=Limits(calls=1)).play()

    assert [event.key for event in run.of(Started)] == ["b0", "a1", "b1", "c0", "a0"]


def test_open_groups_are_not_finished_before_a_larger_item_of_another() -> None:
    sizes = {"a0": 9, "a1": 1, "b0": 5}

    run = Run({key: [(1, None)] for key in sizes}, sizes=sizes, limits=Limits(calls=1)).play()

    assert [event.key for event in run.of(Started)] == ["a0", "b0", "a1"]


def test_a_full_set_of_open_groups_keeps_larger_items_of_others_waiting() -> None:
    sizes = {"a0": 9, "a1": 1, "b0": 5}

    run = Run(
        {key: [(1, None)] for key in sizes}, sizes=sizes, limits=Limits(calls=1, groups=1)
    ).play()

    assert [event.key for event in run.of(Started)] == ["a0", "a1", "b0"]


def test_a_waiting_retry_holds_no_call_slot() -> None:
    steps: Steps = {"a0": once(), "b0": [(1, None)]}

    run = Run(
        steps,
        limits=Limits(calls=1),
        decide=lambda *_: Retry(delay_s=10, spends_attempt=True),
    ).play()

    assert run.when(Started) == [(0, "a0"), (1, "b0"), (11, "a0")]


def test_a_group_that_only_waits_gives_up_its_place_and_takes_one_again() -> None:
    steps: Steps = {"a0": once(), "b0": [(1, None)], "b1": [(1, None)]}

    run = Run(steps, limits=Limits(calls=1, groups=1)).play()

    assert run.when(Started) == [(0, "a0"), (1, "b0"), (2, "b1"), (3, "a0")]
    assert [event.group for event in run.of(GroupSettled)] == ["b", "a"]


def test_the_policy_sees_what_the_item_has_spent_so_far() -> None:
    seen: list[tuple[int, int, int]] = []

    def decide(item: Item[str, str], attempt: int, error: BaseException, now: float) -> Retry:
        seen.append((attempt, item.attempts, item.waits))
        return Retry(delay_s=1, spends_attempt=len(seen) != 2)

    steps: Steps = {"a0": [*[(1.0, BROKEN)] * 3, (1.0, None)]}

    run = Run(steps, decide=decide).play()

    assert seen == [(1, 0, 0), (2, 1, 0), (2, 1, 1)]
    assert [event.attempt for event in run.of(Started)] == [1, 2, 2, 3]
    assert [event.spends_attempt for event in run.of(AttemptFailed)] == [True, False, True]
    assert [event.call_no for event in run.of(Started)] == [1, 2, 3, 4]


def test_a_failed_item_leaves_its_siblings_and_other_groups_alone() -> None:
    steps: Steps = {"a0": [(1.0, BROKEN)], "a1": [(5.0, None)], "b0": [(2.0, None)]}

    run = Run(steps, decide=lambda *_: Fail()).play()

    assert run.of(Failed) == [Failed(key="a0", error=BROKEN)]
    assert run.of(GroupSettled) == [
        GroupSettled(group="b", failed_keys=()),
        GroupSettled(group="a", failed_keys=("a0",)),
    ]


def test_the_failed_items_of_a_group_are_named_in_the_order_given() -> None:
    steps: Steps = {"a0": [(3.0, BROKEN)], "a1": [(1.0, BROKEN)], "a2": [(2.0, BROKEN)]}

    run = Run(steps, decide=lambda *_: Fail()).play()

    assert run.of(GroupSettled) == [GroupSettled(group="a", failed_keys=("a0", "a1", "a2"))]


def test_a_policy_may_name_the_error_that_an_item_fails_with() -> None:
    exhausted = ValueError("exhausted")

    run = Run({"a0": [(1.0, BROKEN)]}, decide=lambda *_: Fail(error=exhausted)).play()

    assert [event.error for event in run.of(AttemptFailed)] == [BROKEN]
    assert [event.error for event in run.of(Failed)] == [exhausted]


def test_a_replaced_item_is_done_when_those_in_its_place_are() -> None:
    halves = tuple(Item(key=f"a0.{n}", group="a", size=1) for n in range(2))

    run = Run({"a0": [(1.0, BROKEN)]}, decide=lambda *_: Replace(items=halves)).play()

    assert run.of(Replaced) == [Replaced(key="a0", items=halves)]
    assert run.when(Succeeded) == [(2, "a0.0"), (2, "a0.1")]
    assert run.of(GroupSettled) == [GroupSettled(group="a", failed_keys=())]


@pytest.mark.parametrize("group", ["b", None])
def test_a_replacement_must_be_items_of_the_same_group(group: str | None) -> None:
    items = () if group is None else (Item(key="b0", group=group, size=1),)
    run = Run({"a0": [(1.0, BROKEN)]}, decide=lambda *_: Replace(items=items))

    with pytest.raises(ValueError, match="of its own group"):
        run.play()


def test_a_call_past_its_deadline_is_written_off_and_its_late_reply_changes_nothing() -> None:
    steps: Steps = {"a0": [(8.0, None), (1.0, None)], "b0": [(20.0, None)]}

    run = Run(steps, limits=Limits(calls=3, call_deadline_s=5, tick_s=1000)).play()

    failed = run.of(AttemptFailed)[0]
    assert isinstance(failed.error, CallTimedOut)
    assert (failed.error.elapsed_s, failed.error.deadline_s) == (5, 5)
    assert run.when(Succeeded) == [(7, "a0")]
    late = run.of(LateReply)[0]
    assert (late.key, late.call_no, late.result) == ("a0", 1, "a0 on attempt 1")


def test_a_written_off_call_frees_its_slot_for_another() -> None:
    steps: Steps = {"a0": [(100.0, None)], "b0": [(1.0, None)], "c0": [(1.0, None)]}
    limits = Limits(calls=2, call_deadline_s=5, tick_s=1000)

    run = Run(steps, limits=limits, decide=lambda *_: Fail()).play()

    assert run.when(Started) == [(0, "a0"), (0, "b0"), (1, "c0")]
    assert run.log[-1] == (5, Finished())


def test_as_many_hung_calls_as_slots_drain_the_run() -> None:
    steps: Steps = {key: [(100.0, None)] for key in ("a0", "b0", "c0")}
    limits = Limits(calls=2, call_deadline_s=5, tick_s=1000)

    run = Run(steps, limits=limits, decide=lambda *_: Retry(delay_s=9, spends_attempt=True)).play()

    assert run.log[-1][1] == Stopped(reason="written_off", returned=3)
    assert {event.key for event in run.of(Returned)} == {"a0", "b0", "c0"}


def test_a_late_reply_makes_room_for_another_hung_call() -> None:
    steps: Steps = {"a0": [(6.0, None)], "b0": [(6.0, None)], "c0": [(1.0, None)]}
    limits = Limits(calls=2, call_deadline_s=5, tick_s=1000)
    sizes = {"a0": 3.0, "c0": 2.0}

    run = Run(steps, limits=limits, sizes=sizes, decide=lambda *_: Fail()).play()

    assert [event.key for event in run.of(LateReply)] == ["a0"]
    assert run.log[-1] == (6, Finished())


def test_a_retry_past_the_deadline_of_the_run_fails_now_and_says_both_numbers() -> None:
    limits = Limits(run_deadline_s=10, tick_s=1000)

    run = Run(
        {"a0": [(4.0, BROKEN)]},
        limits=limits,
        decide=lambda *_: Retry(delay_s=7, spends_attempt=True),
    ).play()

    error = run.of(Failed)[0].error
    assert isinstance(error, DeadlineExceeded)
    assert (error.remaining_s, error.delay_s, error.original) == (6, 7, BROKEN)
    assert "7.0 s" in str(error)
    assert "6.0 s" in str(error)
    assert run.ended_at == 4


def test_time_that_does_not_count_moves_the_deadline_of_the_run() -> None:
    def grant(run: FanOut[str, str, str], event: object) -> None:
        if isinstance(event, Started) and event.attempt == 1:
            run.extend_deadline(5)

    run = Run(
        {"a0": once(seconds=4)},
        limits=Limits(run_deadline_s=10, tick_s=1000),
        decide=lambda *_: Retry(delay_s=7, spends_attempt=True),
    ).play(grant)

    assert run.when(Succeeded) == [(12, "a0")]


def test_a_gate_that_says_wait_holds_neither_a_slot_nor_a_place() -> None:
    asked: list[tuple[float, str]] = []

    def admit(item: Item[str, str], now: float) -> float | None:
        asked.append((now, item.key))
        return 3.0 if now < 3 else None

    ticks: list[Tick] = []
    run = Run(
        {"a0": [(1, None)], "b0": [(1, None)]},
        limits=Limits(groups=1, calls=1, tick_s=1),
        admit=admit,
    ).play(lambda _, event: ticks.append(event) if isinstance(event, Tick) else None)

    assert asked == [(0, "a0"), (3, "a0"), (4, "b0")]
    assert run.when(Started) == [(3, "a0"), (4, "b0")]
    assert [(tick.in_flight, tick.groups_open, tick.ready) for tick in ticks[:2]] == [(0, 0, 2)] * 2
    assert [event.queue_wait_s for event in run.of(Started)] == [3, 4]


def test_a_gate_is_asked_again_when_it_said_and_not_at_the_next_tick() -> None:
    run = Run({"a0": [(1, None)]}, admit=lambda item, now: 2.5 if now < 2.5 else None).play()

    assert run.when(Started) == [(2.5, "a0")]


def test_a_gate_that_says_zero_seconds_cannot_make_the_run_spin() -> None:
    asked: list[float] = []

    def admit(item: Item[str, str], now: float) -> float | None:
        asked.append(now)
        return 0.0 if now < 0.01 else None

    Run({"a0": [(1, None)]}, admit=admit).play()

    assert len(asked) <= 12


def test_a_stop_lets_calls_in_flight_finish_and_returns_the_rest() -> None:
    steps: Steps = {"a0": [(4.0, None)], "b0": [(50.0, None)], "c0": [(1.0, None)]}
    limits = Limits(calls=2, grace_s=10, tick_s=1000)

    run = Run(steps, limits=limits, stop_at=(2, "sigterm")).play()

    assert run.when(Succeeded) == [(4, "a0")]
    assert run.of(Returned) == [Returned(key="b0", call_no=2), Returned(key="c0", call_no=None)]
    assert not run.of(AttemptFailed)
    assert run.log[-1] == (12, Stopped(reason="sigterm", returned=2))


def test_a_stop_ends_at_once_when_nothing_is_in_flight() -> None:
    run = Run(
        {"a0": once()},
        decide=lambda *_: Retry(delay_s=60, spends_attempt=True),
        stop_at=(5, "cancelled"),
    ).play()

    assert run.of(Returned) == [Returned(key="a0", call_no=None)]
    assert run.log[-1] == (5, Stopped(reason="cancelled", returned=1))


def test_a_drain_in_which_everything_settles_returns_nothing() -> None:
    run = Run({"a0": [(4.0, None)]}, stop_at=(2, "pause")).play()

    assert run.of(GroupSettled) == [GroupSettled(group="a", failed_keys=())]
    assert run.log[-1] == (4, Stopped(reason="pause", returned=0))


def test_a_failure_during_a_drain_is_not_retried_but_a_final_one_is_final() -> None:
    final = ValueError("final")

    def decide(item: Item[str, str], attempt: int, error: BaseException, now: float) -> Any:
        return Fail() if error is final else Retry(delay_s=1, spends_attempt=True)

    steps: Steps = {"a0": [(4.0, BROKEN)], "b0": [(4.0, final)]}

    run = Run(steps, decide=decide, stop_at=(2, "pause")).play()

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

    run = Run(steps, limits=limits, stop_at=(2, "lease lost"), clock=clock).play(write_slowly)

    assert [type(event) for _, event in run.log[-3:]] == [Returned, Returned, Stopped]


def test_the_first_reason_stands_and_a_second_stop_can_only_shorten_the_grace() -> None:
    def hurry(run: FanOut[str, str, str], event: object) -> None:
        if isinstance(event, Started):
            run.stop("give back", grace_s=50)
            run.stop("sigterm", grace_s=3)
            run.stop("again", grace_s=20)

    run = Run({"a0": [(90.0, None)]}).play(hurry)

    assert run.log[-1] == (3, Stopped(reason="give back", returned=1))


def test_a_parked_item_spends_nothing_and_drains_the_run() -> None:
    steps: Steps = {"a0": [(1.0, BROKEN)], "b0": [(3.0, None)]}

    run = Run(steps, decide=lambda *_: Park(reason="quota")).play()

    failed = run.of(AttemptFailed)[0]
    assert (failed.spends_attempt, failed.retry_in_s) == (False, None)
    assert run.when(Succeeded) == [(3, "b0")]
    assert run.of(Returned) == [Returned(key="a0", call_no=None)]
    assert run.log[-1] == (3, Stopped(reason="quota", returned=1))


def test_the_owner_has_the_floor_at_every_tick_while_a_call_is_slow() -> None:
    run = Run({"a0": [(5.2, None)]}, limits=Limits(tick_s=2)).play()

    assert run.when(Tick) == [(2, ""), (4, "")]
    assert run.of(Tick)[0] == Tick(
        in_flight=1, ready=0, waiting=0, groups_open=1, written_off=0, unsettled=1
    )


def test_an_owner_slower_than_a_tick_still_gets_every_event() -> None:
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


def test_freed_slots_are_filled_before_the_owner_sees_an_event() -> None:
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


def test_what_a_policy_raises_reaches_the_owner() -> None:
    def decide(*_: object) -> Retry:
        raise LookupError("no such batch")

    run = Run({"a0": [(1.0, BROKEN)]}, decide=decide)

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
