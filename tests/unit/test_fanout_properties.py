"""The fan-out is right for random plans, latencies, faults, limits and stops (Hypothesis).

Two oracles are independent of the scheduler. `expected` follows an item's script without time or
limit. `Observer` derives from the events which items are ready, open and in flight.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipeline.execution.fanout import (
    AdmitMany,
    AttemptFailed,
    CallTimedOut,
    Decision,
    Event,
    Fail,
    Failed,
    FanOut,
    Finished,
    GroupSettled,
    Item,
    LateReply,
    Limits,
    Replace,
    Replaced,
    Retry,
    Returned,
    Started,
    Stopped,
    Succeeded,
)
from pipeline.execution.fanout.simulation import SimulatedClock, SimulatedExecutor

Key = tuple[int, ...]
AnyEvent = Event[Key, int, str]


MAX_ATTEMPTS = 3
WAIT_BUDGET = 2
CALL_DEADLINE_S = 5.0


class BrokenError(Exception):
    """A fault that spends an attempt."""


class LimitedError(Exception):
    """A fault that spends no attempt, but has a separate budget."""


class RefusedError(Exception):
    """A fault that no retry cures."""


class TooLongError(Exception):
    """A fault that halves the item."""


FAULTS: dict[str, type[Exception]] = {
    "broken": BrokenError,
    "limited": LimitedError,
    "refused": RefusedError,
    "too long": TooLongError,
}
multiples = st.integers(1, 16).map(lambda n: n / 4)
ENDINGS = ["ok", "ok", "ok", "ok", *FAULTS]
calls = st.tuples(multiples, st.sampled_from(ENDINGS))
hanging_calls = st.one_of(calls, calls, st.tuples(st.sampled_from([6.0, 9.0, 90.0]), st.just("ok")))


@dataclass(frozen=True)
class RunPlan:
    """Items per group, with sizes and scripts; the last call of a script repeats."""

    groups: list[list[tuple[int, list[tuple[float, str]]]]]
    retry_delay_s: float

    def items(self) -> list[Item[Key, int]]:
        return [
            Item(key=(group, index), group=group, size=size)
            for group, items in enumerate(self.groups)
            for index, (size, _) in enumerate(items)
        ]

    def step(self, key: Key, number: int) -> tuple[float, str]:
        """Return the ending of a call by its number (from 0); a half follows its item's script."""
        script = self.groups[key[0]][key[1]][1]
        seconds, ending = script[min(number + len(key) - 2, len(script) - 1)]
        return seconds, "broken" if ending == "too long" and len(key) > 2 else ending

    def decide(
        self, item: Item[Key, int], attempt: int, error: BaseException, now: float
    ) -> Decision[Key, int]:
        match error:
            case RefusedError():
                return Fail()
            case TooLongError():
                half = partial(Item, group=item.group, size=item.size / 2)
                return Replace(items=(half(key=(*item.key, 0)), half(key=(*item.key, 1))))
            case LimitedError() if item.free_retries >= WAIT_BUDGET:
                return Fail(spends_attempt=False)
            case LimitedError():
                return Retry(delay_s=self.retry_delay_s * 2, spends_attempt=False)
            case _ if attempt >= MAX_ATTEMPTS:
                return Fail()
            case _:
                return Retry(delay_s=self.retry_delay_s, spends_attempt=True)


def expected(plan: RunPlan, key: Key) -> dict[Key, tuple[str, int]]:
    """Return the end, and the number of calls, of each item that results from this item."""
    attempts = waits = number = 0
    while True:
        ending = plan.step(key, number)[1]
        number += 1
        if ending == "ok":
            return {key: ("succeeded", number)}
        if ending == "too long":
            halves = expected(plan, (*key, 0)) | expected(plan, (*key, 1))
            return halves | {key: ("replaced", number)}
        attempts += ending == "broken"
        over_budget = ending == "limited" and waits >= WAIT_BUDGET
        if ending == "refused" or attempts >= MAX_ATTEMPTS or over_budget:
            return {key: ("failed", number)}
        waits += ending == "limited"


def plans(call: st.SearchStrategy[tuple[float, str]]) -> st.SearchStrategy[RunPlan]:
    item = st.tuples(st.integers(1, 5), st.lists(call, min_size=1, max_size=4))
    groups = st.lists(st.lists(item, max_size=5), max_size=6)
    return st.builds(RunPlan, groups=groups, retry_delay_s=st.sampled_from([0.0, 0.25, 2.0, 7.0]))


limits_of = st.builds(
    Limits,
    groups=st.integers(1, 4),
    calls=st.integers(1, 4),
    call_deadline_s=st.just(CALL_DEADLINE_S),
    grace_s=st.sampled_from([0.0, 1.0, 30.0]),
    tick_s=st.sampled_from([0.5, 1000.0]),
)


@dataclass
class Observer:
    """An observer that derives the state of a run from its events, and checks each start."""

    limits: Limits
    items: dict[Key, Item[Key, int]]
    order: dict[Key, int]
    ready_at: dict[Key, float] = field(default_factory=dict)
    in_flight: set[Key] = field(default_factory=set)
    opened: set[int] = field(default_factory=set)
    gone: Counter[Key] = field(default_factory=Counter)
    waits: Counter[Key] = field(default_factory=Counter)

    def see(self, now: float, event: AnyEvent) -> None:
        match event:
            case Started():
                self._start(event.key, now)
            case Succeeded():
                self._land(event.key, now, timers_first=False)
                self.gone[event.key] += 1
            case AttemptFailed():
                timed_out = isinstance(event.error, CallTimedOut)
                self._land(event.key, now, timers_first=timed_out)
                if event.retry_in_s is not None:
                    self.ready_at[event.key] = now + event.retry_in_s
                    self.waits[event.key] += not event.spends_attempt
            case Failed() | Returned():
                self.gone[event.key] += 1
            case Replaced():
                self.gone[event.key] += 1
                for item in event.items:
                    self.items[item.key] = item
                    self.order[item.key] = len(self.order)
                    # Ready at once, without a timer, so before any other event of this moment.
                    self.ready_at[item.key] = 0.0
            case _:
                pass

    def _rank(self, key: Key) -> tuple[int, float, int, int]:
        item = self.items[key]
        return (self.waits[key], -item.size, item.group, self.order[key])

    def _start(self, key: Key, now: float) -> None:
        eligible = [
            other
            for other, at in self.ready_at.items()
            if at <= now
            and (self.items[other].group in self.opened or len(self.opened) < self.limits.groups)
        ]
        assert len(self.in_flight) < self.limits.calls
        assert key in eligible
        assert key == min(eligible, key=self._rank), "the largest of those sent away least"
        del self.ready_at[key]
        self.in_flight.add(key)
        self.opened.add(self.items[key].group)
        assert len(self.opened) <= self.limits.groups

    def _land(self, key: Key, now: float, *, timers_first: bool) -> None:
        group = self.items[key].group
        self.in_flight.remove(key)
        busy = any(self.items[other].group == group for other in self.in_flight) or any(
            self.items[other].group == group and (at < now or (timers_first and at == now))
            for other, at in self.ready_at.items()
        )
        if not busy:
            self.opened.discard(group)


@dataclass
class Play:
    """A run of a plan with limits, on a simulated clock."""

    plan: RunPlan
    limits: Limits
    stop_at: float | None = None
    admit: Callable[[Item[Key, int], float], float | None] | None = None
    admit_many: AdmitMany[Key, int] | None = None
    owner_takes_s: float = 0.0
    events: list[AnyEvent] = field(default_factory=list)

    def run(self, observer: Observer | None = None) -> Play:
        clock = SimulatedClock()
        numbers: Counter[Key] = Counter()
        executors: list[SimulatedExecutor[Key, int, str]] = []

        def latency(item: Item[Key, int], attempt: int) -> float:
            return self.plan.step(item.key, numbers[item.key])[0]

        def call(item: Item[Key, int], attempt: int, cancel: object) -> str:
            running = executors[0].running
            assert len(running) < self.limits.calls
            groups = {other.item.group for other in running} | {item.group}
            assert len(groups) <= self.limits.groups
            ending = self.plan.step(item.key, numbers[item.key])[1]
            numbers[item.key] += 1
            if ending in FAULTS:
                raise FAULTS[ending]
            return f"{item.key} {attempt}"

        def executor(call: Any, clock: Any) -> SimulatedExecutor[Key, int, str]:
            executors.append(SimulatedExecutor(call, clock, latency=latency))
            return executors[0]

        fan = FanOut(
            self.plan.items(),
            call=call,
            decide=self.plan.decide,
            limits=self.limits,
            groups=range(len(self.plan.groups)),
            admit=self.admit,
            admit_many=self.admit_many,
            clock=clock,
            executor=executor,
        )
        if self.stop_at is not None:
            executors[0].at(self.stop_at, partial(fan.stop, "sigterm"))
        with fan:
            for event in fan.events():
                self.events.append(event)
                if observer is not None:
                    observer.see(clock.now, event)
                clock.now += self.owner_takes_s
        return self

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def observer_of(plan: RunPlan, limits: Limits) -> Observer:
    items = {item.key: item for item in plan.items()}
    order = {key: number for number, key in enumerate(items)}
    return Observer(limits, items, order, ready_at=dict.fromkeys(items, 0.0))


def outcomes(play: Play) -> dict[Key, tuple[str, int]]:
    calls = Counter(event.key for event in play.of(Started))
    ends = {Succeeded: "succeeded", Failed: "failed", Replaced: "replaced"}
    return {
        event.key: (name, calls[event.key])
        for kind, name in ends.items()
        for event in play.of(kind)
    }


@given(plan=plans(calls), limits=limits_of)
def test_each_item_ends_as_its_script_says_whatever_the_limits(
    plan: RunPlan, limits: Limits
) -> None:
    observer = observer_of(plan, limits)

    play = Play(plan, limits).run(observer)

    ends: dict[Key, tuple[str, int]] = {}
    for item in plan.items():
        ends |= expected(plan, item.key)
    assert outcomes(play) == ends
    assert set(observer.gone.values()) <= {1}
    assert set(observer.gone) == set(ends)
    assert isinstance(play.events[-1], Finished)


@given(plan=plans(calls))
def test_nothing_deadlocks_at_limits_of_one(plan: RunPlan) -> None:
    play = Play(plan, Limits(groups=1, calls=1)).run()

    settled = [event.group for event in play.of(GroupSettled)]
    assert sorted(settled) == list(range(len(plan.groups)))
    assert isinstance(play.events[-1], Finished)


@given(plan=plans(calls), limits=limits_of)
def test_a_group_settles_once_right_after_its_last_item(plan: RunPlan, limits: Limits) -> None:
    play = Play(plan, limits).run()

    settled = [event.group for event in play.of(GroupSettled)]
    assert sorted(settled) == list(range(len(plan.groups)))
    for at, event in enumerate(play.events):
        if isinstance(event, GroupSettled):
            ends = [e for e in play.events if isinstance(e, Succeeded | Failed | Replaced)]
            own = [e for e in ends if e.key[0] == event.group]
            assert set(event.failed_keys) == {e.key for e in own if isinstance(e, Failed)}
            assert not own or play.events[at - 1] is own[-1]


@given(plan=plans(calls), limits=limits_of)
def test_events_of_one_group_never_change_another_group(plan: RunPlan, limits: Limits) -> None:
    alone = [
        outcomes(Play(RunPlan([[]] * group + [items], plan.retry_delay_s), limits).run())
        for group, items in enumerate(plan.groups)
    ]

    together = outcomes(Play(plan, limits).run())

    assert together == {key: end for ends in alone for key, end in ends.items()}


@given(
    plan=plans(hanging_calls),
    limits=limits_of,
    stop_at=st.one_of(st.none(), st.integers(0, 80).map(lambda n: n / 4)),
    owner_takes_s=st.sampled_from([0.0, 0.0, 0.25]),
)
def test_a_stopped_run_accounts_for_every_item_and_spends_nothing_it_cut(
    plan: RunPlan, limits: Limits, stop_at: float | None, owner_takes_s: float
) -> None:
    play = Play(plan, limits, stop_at=stop_at, owner_takes_s=owner_takes_s).run()

    replaced = play.of(Replaced)
    keys = [item.key for item in plan.items()]
    keys += [item.key for event in replaced for item in event.items]
    ends = [e.key for e in play.events if isinstance(e, Succeeded | Failed | Replaced | Returned)]
    assert sorted(ends) == sorted(keys)
    last = play.events[-1]
    returned = play.of(Returned)
    assert isinstance(last, Stopped) or (isinstance(last, Finished) and not returned)
    assert not isinstance(last, Stopped) or last.returned == len(returned)
    _check_calls(play)


def _check_calls(play: Play) -> None:
    """Check that every call ends once, and that an attempt number counts the spent attempts."""
    ended = [e.call_no for e in play.events if isinstance(e, Succeeded | AttemptFailed)]
    cut = [event.call_no for event in play.of(Returned) if event.call_no is not None]
    assert sorted(ended + cut) == [event.call_no for event in play.of(Started)]
    late = [event.call_no for event in play.of(LateReply)]
    timed_out = [e.call_no for e in play.of(AttemptFailed) if isinstance(e.error, CallTimedOut)]
    assert len(late) == len(set(late))
    assert set(late) <= set(timed_out)
    spent: Counter[Key] = Counter()
    for event in play.events:
        if isinstance(event, Started):
            assert event.attempt == spent[event.key] + 1
        elif isinstance(event, AttemptFailed):
            spent[event.key] += event.spends_attempt


@given(
    plan=plans(calls),
    limits=limits_of,
    open_s=st.sampled_from([0.25, 1.0, 3.0]),
    shut_s=st.sampled_from([0.5, 4.0]),
)
def test_nothing_starts_while_the_limiter_is_shut_and_all_ends_well(
    plan: RunPlan, limits: Limits, open_s: float, shut_s: float
) -> None:
    answers: list[bool] = []

    def admit(item: Item[Key, int], now: float) -> float | None:
        into = now % (open_s + shut_s)
        answers.append(into < open_s)
        return None if into < open_s else open_s + shut_s - into

    play = Play(plan, limits, admit=admit).run(observer_of(plan, limits))

    ends: dict[Key, tuple[str, int]] = {}
    for item in plan.items():
        ends |= expected(plan, item.key)
    assert outcomes(play) == ends
    assert answers.count(True) == len(play.of(Started)), "one admission for one start"


@given(
    plan=plans(calls),
    limits=limits_of,
    holds=st.lists(st.sampled_from([None, None, None, 0.0, 0.5]), min_size=1, max_size=40),
)
def test_items_that_are_admitted_together_start_like_items_that_are_admitted_one_by_one(
    plan: RunPlan, limits: Limits, holds: list[float | None]
) -> None:
    def one_by_one() -> Callable[[Item[Key, int], float], float | None]:
        left = [*holds, *holds]
        return lambda item, now: left.pop() if left else None

    def together() -> AdmitMany[Key, int]:
        admit = one_by_one()

        def admit_many(items: Sequence[Item[Key, int]], now: float) -> tuple[int, float | None]:
            for number, item in enumerate(items):
                if (hold := admit(item, now)) is not None:
                    return number, hold
            return len(items), None

        return admit_many

    alone = Play(plan, limits, admit=one_by_one()).run(observer_of(plan, limits))
    joined = Play(plan, limits, admit_many=together()).run(observer_of(plan, limits))

    # Two equal errors are not the same object.
    assert repr(joined.events) == repr(alone.events)
