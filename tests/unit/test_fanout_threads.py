"""The fan-out works with its real threads; barriers and events order the threads."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.execution.fanout import (
    AttemptFailed,
    CallTimedOut,
    CancelEvent,
    Fail,
    Failed,
    FanOut,
    Finished,
    GroupSettled,
    Item,
    LateReply,
    Limits,
    Retry,
    Returned,
    Started,
    Stopped,
    Succeeded,
    Tick,
    Unchecked,
)
from pipeline.execution.fanout.scheduler import Scheduler
from pipeline.execution.fanout.thread_pool import ThreadExecutor

PATIENCE_S = 120.0
"""Seconds that a test waits for an event before the test fails."""

Call = Callable[[Item[int, int], int, CancelEvent], str | Unchecked[str]]


def fan_out(call: Call, count: int, limits: Limits, **options: Any) -> FanOut[int, int, str]:
    items = [Item(key=n, group=n % 3, size=1) for n in range(count)]
    options.setdefault("decide", lambda *_: Fail())
    return FanOut(items, call=call, limits=limits, **options)


def test_as_many_calls_as_the_limit_run_at_the_same_time() -> None:
    barrier = threading.Barrier(8, timeout=PATIENCE_S)

    def call(item: Item[int, int], attempt: int, cancel: CancelEvent) -> str:
        barrier.wait()
        return threading.current_thread().name

    with fan_out(call, 24, Limits(calls=8)) as run:
        names = [event.result for event in run.events() if isinstance(event, Succeeded)]

    assert len(names) == 24
    assert len(set(names)) == 8


def test_a_call_starts_while_an_earlier_reply_is_checked() -> None:
    third = threading.Event()

    def check() -> str:
        assert third.wait(PATIENCE_S)
        return "checked"

    def call(item: Item[int, int], attempt: int, cancel: CancelEvent) -> str | Unchecked[str]:
        if item.key == 0:
            return Unchecked(check)
        if item.key == 2:
            third.set()
        assert third.wait(PATIENCE_S)
        return "asked"

    with fan_out(call, 3, Limits(calls=2)) as run:
        results = {e.key: e.result for e in run.events() if isinstance(e, Succeeded)}

    assert results == {0: "checked", 1: "asked", 2: "asked"}


def test_what_a_check_raises_is_the_result_of_its_call() -> None:
    def check() -> str:
        raise ValueError("does not hold")

    with fan_out(lambda *_: Unchecked(check), 1, Limits(calls=2)) as run:
        events = list(run.events())

    assert [type(e) for e in events] == [
        Started,
        AttemptFailed,
        Failed,
        GroupSettled,
        Finished,
    ]


def test_no_call_starts_while_as_many_replies_as_the_limit_are_unchecked() -> None:
    items = [Item(key=n, group=0, size=1) for n in range(9)]
    scheduler: Scheduler[int, int, str] = Scheduler(
        items, lambda *_: Fail(), limits=Limits(calls=2), now=0.0
    )
    first, second = scheduler.start_next(0.0), scheduler.start_next(0.0)
    assert first is not None
    assert second is not None
    assert scheduler.start_next(0.0) is None

    scheduler.answer(first.call_no)
    third = scheduler.start_next(0.0)
    scheduler.answer(second.call_no)
    refused = scheduler.start_next(0.0)
    scheduler.succeed(first.call_no, "", duration_s=1.0)
    fourth = scheduler.start_next(0.0)

    assert third is not None
    assert refused is None
    assert fourth is not None
    assert scheduler.tick().in_flight == 3


def test_threads_are_made_only_when_all_others_have_a_call() -> None:
    names: set[str] = set()

    def call(item: Item[int, int], attempt: int, cancel: CancelEvent) -> str:
        names.add(threading.current_thread().name)
        return ""

    with fan_out(call, 50, Limits(calls=1)) as run:
        last = list(run.events())[-1]

    assert last == Finished()
    assert len(names) == 1


@pytest.mark.parametrize("raised", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_every_exception_of_a_call_is_its_outcome(raised: type[BaseException]) -> None:
    def call(item: Item[int, int], attempt: int, cancel: CancelEvent) -> str:
        if item.key == 0 and attempt == 1:
            raise raised
        return "done"

    def decide(item: Any, attempt: int, error: BaseException, now: float) -> Retry:
        return Retry(delay_s=0, spends_attempt=True)

    with fan_out(call, 4, Limits(calls=2), decide=decide) as run:
        events = list(run.events())

    failed = [event for event in events if isinstance(event, AttemptFailed)]
    assert [(event.key, type(event.error)) for event in failed] == [(0, raised)]
    assert sum(isinstance(event, Succeeded) for event in events) == 4


def test_a_hung_call_is_written_off_and_its_late_reply_is_recognized() -> None:
    release = threading.Event()
    told = threading.Event()

    def call(item: Item[int, int], attempt: int, cancel: CancelEvent) -> str:
        if item.key == 0 and attempt == 1:
            assert cancel.wait(PATIENCE_S)
            assert release.wait(PATIENCE_S)
            return "late"
        if item.key == 0:
            assert told.wait(PATIENCE_S)
        return "in time"

    def decide(item: Any, attempt: int, error: BaseException, now: float) -> Retry:
        assert isinstance(error, CallTimedOut)
        return Retry(delay_s=0, spends_attempt=True)

    limits = Limits(calls=2, call_deadline_s=0.3, tick_s=0.05)
    events = []
    with fan_out(call, 1, limits, decide=decide) as run:
        for event in run.events():
            events.append(event)
            if isinstance(event, Started) and event.attempt == 2:
                release.set()
            if isinstance(event, LateReply):
                told.set()

    late = [event for event in events if isinstance(event, LateReply)]
    done = [event for event in events if isinstance(event, Succeeded)]
    assert [(event.call_no, event.result) for event in late] == [(1, "late")]
    assert [(event.attempt, event.result) for event in done] == [(2, "in time")]


def test_hung_calls_in_every_slot_end_the_run_and_not_the_process() -> None:
    release = threading.Event()

    def call(item: Item[int, int], attempt: int, cancel: CancelEvent) -> str:
        release.wait(PATIENCE_S)
        return ""

    limits = Limits(calls=2, call_deadline_s=0.1)
    with fan_out(call, 5, limits) as run:
        events = list(run.events())
    release.set()

    assert isinstance(events[-1], Stopped)
    assert events[-1].reason == "written_off"
    failed = {event.key for event in events if isinstance(event, Failed)}
    returned = {event.key for event in events if isinstance(event, Returned)}
    assert {0, 3} <= failed
    assert failed | returned == set(range(5))
    assert not failed & returned


def test_a_signal_handler_stops_a_run_that_waits() -> None:
    cut = threading.Event()

    main = threading.get_ident()

    def call(item: Item[int, int], attempt: int, cancel: CancelEvent) -> str:
        while sys._current_frames()[main].f_code is not ThreadExecutor.wait.__code__:
            os.sched_yield()
        signal.pthread_kill(main, signal.SIGUSR1)
        cancel.wait(PATIENCE_S)
        cut.set()
        return "too late"

    run = fan_out(call, 2, Limits(calls=1, tick_s=0.05, grace_s=0))
    before = signal.signal(signal.SIGUSR1, lambda *_: run.stop("sigterm"))
    try:
        with run:
            events = list(run.events())
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert [(e.key, e.call_no) for e in events if isinstance(e, Returned)] == [(0, 1), (1, None)]
    assert events[-1] == Stopped(reason="sigterm", returned=2)
    assert cut.wait(PATIENCE_S), "the call was told that no thread waits"


def test_a_storm_of_stops_from_a_signal_handler_never_deadlocks() -> None:
    stop = threading.Event()
    run = fan_out(lambda *_: "", 200, Limits(calls=4, tick_s=0.001))
    handled = []

    def handler(*_: object) -> None:
        handled.append(1)
        if len(handled) > 100:
            run.stop("sigterm")

    before = signal.signal(signal.SIGUSR1, handler)
    main = threading.main_thread().ident
    assert main is not None

    def storm() -> None:
        while not stop.is_set():
            signal.pthread_kill(main, signal.SIGUSR1)

    pest = threading.Thread(target=storm)
    pest.start()
    try:
        with run:
            last = list(run.events())[-1]
    finally:
        stop.set()
        pest.join()
        signal.signal(signal.SIGUSR1, before)

    assert isinstance(last, Finished | Stopped)


def test_another_thread_stops_a_run_and_calls_in_flight_still_count() -> None:
    started = threading.Event()
    stopping = threading.Event()

    def call(item: Item[int, int], attempt: int, cancel: CancelEvent) -> str:
        started.set()
        assert stopping.wait(PATIENCE_S)
        return "kept"

    events = []
    with fan_out(call, 3, Limits(calls=1, tick_s=0.01, grace_s=PATIENCE_S)) as run:

        def operator() -> None:
            assert started.wait(PATIENCE_S)
            run.stop("cancelled")

        threading.Thread(target=operator).start()
        for event in run.events():
            events.append(event)
            if isinstance(event, Tick) and run.stop_reason is not None:
                stopping.set()

    assert [event.key for event in events if isinstance(event, Succeeded)] == [0]
    assert [event.key for event in events if isinstance(event, Returned)] == [1, 2]
    assert events[-1] == Stopped(reason="cancelled", returned=2)


def test_a_failing_executor_cancels_its_calls_and_releases_its_threads() -> None:
    threads: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()

    def call(item: Item[int, int], attempt: int, cancel: CancelEvent) -> str:
        threads.put(threading.current_thread())
        assert cancel.wait(PATIENCE_S)
        return ""

    def executor() -> None:
        with fan_out(call, 3, Limits(calls=3)) as run:
            for _ in run.events():
                raise LookupError

    with pytest.raises(LookupError):
        executor()

    for _ in range(3):
        thread = threads.get(timeout=PATIENCE_S)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert thread.daemon


def test_slots_are_filled_between_two_statements_of_a_slow_executor() -> None:
    begun: queue.SimpleQueue[int] = queue.SimpleQueue()

    def call(item: Item[int, int], attempt: int, cancel: CancelEvent) -> str:
        begun.put(item.key)
        return ""

    order: list[int] = []
    with fan_out(call, 3, Limits(calls=1)) as run:
        for event in run.events():
            if isinstance(event, Started) and event.key == 0:
                while len(order) < 3:
                    run.dispatch()
                    while not begun.empty():
                        order.append(begun.get())

    assert order == [0, 1, 2]
