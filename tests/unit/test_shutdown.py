"""A stop request wakes every callback, works from a signal handler, and spares children."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.execution.shutdown import STOP, StopFlag, grace_left, stop_requested


@pytest.fixture
def flag() -> StopFlag:
    return StopFlag()


def test_a_new_flag_has_no_stop_request(flag: StopFlag) -> None:
    assert not flag.requested
    assert flag.grace_left() is None


def test_a_request_wakes_every_callback(flag: StopFlag) -> None:
    first, second = threading.Event(), threading.Event()
    flag.on_stop(first.set)
    flag.on_stop(second.set)

    flag.request()

    assert first.wait(60)
    assert second.wait(60)
    assert flag.requested


def test_a_callback_that_comes_after_the_request_is_called_too(flag: StopFlag) -> None:
    flag.request()
    woken = threading.Event()

    flag.on_stop(woken.set)

    assert woken.wait(60)


def test_a_cancelled_callback_is_not_called(flag: StopFlag) -> None:
    called: list[str] = []
    woken = threading.Event()
    forget = flag.on_stop(lambda: called.append("forgotten"))
    flag.on_stop(woken.set)

    forget()
    flag.request()

    assert woken.wait(60)
    assert called == []


def test_the_grace_counts_from_the_first_request(flag: StopFlag, settings: Any) -> None:
    settings.STOP_GRACE_S, settings.TIME_SCALE = 100.0, 1.0
    flag.request()
    first = flag.grace_left()

    flag.request()

    second = flag.grace_left()
    assert first is not None
    assert second is not None
    assert 0 < second <= first <= 100


def test_a_reset_forgets_the_request_and_the_callbacks(flag: StopFlag) -> None:
    called: list[str] = []
    flag.on_stop(lambda: called.append("old"))
    flag.reset()
    woken = threading.Event()
    flag.on_stop(woken.set)

    flag.request()

    assert woken.wait(60)
    assert called == []


@pytest.fixture
def signalled() -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, lambda signum, frame: STOP.request())
    yield
    signal.signal(signal.SIGUSR1, before)
    STOP.reset()


@pytest.mark.usefixtures("signalled")
def test_a_signal_inside_the_very_lock_that_its_callback_takes_does_not_deadlock() -> None:
    condition = threading.Condition(threading.Lock())
    woken = threading.Event()

    def notify() -> None:
        with condition:
            woken.set()

    STOP.on_stop(notify)

    with condition:
        os.kill(os.getpid(), signal.SIGUSR1)
        requested_while_locked = stop_requested()

    assert requested_while_locked
    assert woken.wait(60)


@pytest.mark.usefixtures("signalled")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_without_the_request() -> None:
    STOP.request()

    pid = os.fork()
    if pid == 0:
        os._exit(0 if not stop_requested() and grace_left() is None else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert stop_requested()
