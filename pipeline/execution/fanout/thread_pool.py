"""The threads in which calls run, and the clock that times them.

A signal handler and any thread may call `post`, even during `wait`. Everything that a call raises
is its result. No thread is ever joined, not even at exit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeAlias

from pipeline.execution.fanout.cancel_event import CancelEvent
from pipeline.execution.fanout.events import G, Item, K, R
from pipeline.execution.fanout.scheduler import Call


@dataclass(frozen=True, slots=True)
class Unchecked(Generic[R]):
    """What a call returns whose provider has answered: `check` computes the result.

    The slot of the call is free while its thread runs `check`.
    """

    check: Callable[[], R]


CallFunction: TypeAlias = Callable[[Item[K, G], int, CancelEvent], R | Unchecked[R]]


class Clock(Protocol):
    """A source of seconds that never go back."""

    def monotonic(self) -> float:
        """Return the time in seconds since some fixed moment."""
        ...


class SystemClock:
    """The machine's monotonic clock."""

    def monotonic(self) -> float:
        """Return `time.monotonic()`."""
        return time.monotonic()


@dataclass(frozen=True, kw_only=True, slots=True)
class CallResult(Generic[R]):
    """How a call ended: `error` is None when it returned `result`."""

    call_no: int
    result: R | None
    error: BaseException | None
    duration_s: float


@dataclass(frozen=True, slots=True)
class Answered:
    """The provider has answered a call, whose thread now checks the reply."""

    call_no: int


@dataclass(frozen=True, kw_only=True, slots=True)
class StopRequest:
    """A request to stop the run."""

    reason: str
    grace_s: float | None


Message: TypeAlias = CallResult[R] | Answered | StopRequest


class Executor(Protocol[K, G, R]):
    """Runs calls and returns their results; tests use a simulation instead."""

    def submit(self, call: Call[K, G]) -> None:
        """Begin a call; never blocks."""
        ...

    def post(self, request: StopRequest) -> None:
        """Pass a request to the waiting thread; takes no lock."""
        ...

    def wait(self, timeout_s: float) -> list[Message[R]]:
        """Return all that has come in, in order; block for at most `timeout_s` for the first."""
        ...

    def close(self) -> None:
        """End idle threads; the results of running calls are dropped."""
        ...


class ThreadExecutor(Generic[K, G, R]):
    """Daemon threads, grown one at a time when every thread has a call.

    `ThreadPoolExecutor` joins its threads when the interpreter exits, so one hung call would keep
    a stopped worker alive without limit.
    """

    def __init__(self, call: CallFunction[K, G, R], clock: Clock) -> None:
        self._call = call
        self._clock = clock
        self._calls: SimpleQueue[Call[K, G] | None] = SimpleQueue()
        # SimpleQueue.put is re-entrant: a signal handler may call it inside our own get.
        self._inbox: SimpleQueue[Message[R]] = SimpleQueue()
        self._threads = 0
        self._outstanding = 0

    def submit(self, call: Call[K, G]) -> None:
        """Queue a call, with a new thread if all others have one."""
        self._calls.put(call)
        self._outstanding += 1
        if self._outstanding > self._threads:
            self._grow()

    def post(self, request: StopRequest) -> None:
        """Pass a request to the waiting thread."""
        self._inbox.put(request)

    def wait(self, timeout_s: float) -> list[Message[R]]:
        """Return all that has come in, blocking for at most `timeout_s` for the first."""
        messages: list[Message[R]] = []
        try:
            messages.append(self._inbox.get(block=timeout_s > 0, timeout=max(timeout_s, 0)))
            while True:
                messages.append(self._inbox.get_nowait())
        except Empty:
            pass
        self._outstanding -= sum(isinstance(message, CallResult) for message in messages)
        return messages

    def close(self) -> None:
        """End idle threads at once, and each busy thread when its call ends."""
        for _ in range(self._threads):
            self._calls.put(None)

    def _grow(self) -> None:
        name = f"fanout-call-{self._threads + 1}"
        try:
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except RuntimeError:
            # The machine has no thread left to give: the call waits for one of ours.
            if self._threads == 0:
                raise
        else:
            self._threads += 1

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            self._inbox.put(self._run(call))

    def _run(self, call: Call[K, G]) -> CallResult[R]:
        began = self._clock.monotonic()
        try:
            result = self._call(call.item, call.attempt, call.cancel)
            if isinstance(result, Unchecked):
                self._inbox.put(Answered(call.call_no))
                result = result.check()
        except BaseException as exc:  # noqa: BLE001 - a lost outcome would never free its slot
            return self._outcome(call, began, error=exc)
        return self._outcome(call, began, result=result)

    def _outcome(
        self,
        call: Call[K, G],
        began: float,
        *,
        result: R | None = None,
        error: BaseException | None = None,
    ) -> CallResult[R]:
        duration_s = self._clock.monotonic() - began
        return CallResult(call_no=call.call_no, result=result, error=error, duration_s=duration_s)
