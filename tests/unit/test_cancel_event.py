"""The event of a call holds like `threading.Event`, also if it is set while a thread waits."""

from __future__ import annotations

import threading

from pipeline.execution.fanout.cancel_event import CancelEvent


def test_a_thread_that_waits_is_woken() -> None:
    event, woken = CancelEvent(), []
    thread = threading.Thread(target=lambda: woken.append(event.wait(60)))
    thread.start()

    event.set()
    thread.join(60)

    assert woken == [True]
    assert event.is_set()


def test_a_wait_that_comes_late_returns_at_once_and_a_wait_in_vain_ends() -> None:
    event = CancelEvent()

    in_vain = event.wait(0.001)
    event.set()

    assert (in_vain, event.wait(60), event.wait()) == (False, True, True)


def test_no_thread_misses_the_event_however_both_meet() -> None:
    for _ in range(200):
        event, meet = CancelEvent(), threading.Barrier(2)
        woken: list[bool] = []

        def wait(event: CancelEvent = event, meet: threading.Barrier = meet) -> None:
            meet.wait()
            woken.append(event.wait(60))  # noqa: B023 - the thread ends within its round

        thread = threading.Thread(target=wait)
        thread.start()
        meet.wait()
        event.set()
        thread.join(60)
        assert woken == [True]
