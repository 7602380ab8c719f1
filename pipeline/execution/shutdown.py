"""The stop request of this process: set by a signal, read by the step that runs.

A request takes no lock, so a signal handler may make one at any point of the main thread. Callbacks
run on a thread of their own and may take locks. A forked child starts without the request and
without the callbacks.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from django.conf import settings

from medproc.timing import scaled

WATCHER = "stop-watcher"
"""The name of the thread that calls the callbacks; the thread lives as long as the process."""


class StopFlag:
    """Whether this process should drain, and the callbacks that a stop request calls."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget request and callbacks; a forked child must, because it has no watcher thread."""
        self._requested_at: float | None = None
        self._callbacks: tuple[Callable[[], object], ...] = ()
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._watcher: threading.Thread | None = None

    @property
    def requested(self) -> bool:
        """Whether the step should stop admitting work and drain."""
        return self._requested_at is not None

    def request(self) -> None:
        """Request a drain; safe in a signal handler, and harmless a second time."""
        if self._requested_at is None:
            self._requested_at = time.monotonic()
        # SimpleQueue.put is re-entrant by contract; Event.set and Condition.notify are not, and
        # would deadlock a main thread that the signal interrupts inside them.
        self._wakes.put(None)

    def grace_left(self) -> float | None:
        """Return the seconds until the process is killed; None without a stop request."""
        if self._requested_at is None:
            return None
        return max(0.0, self._requested_at + grace_s() - time.monotonic())

    def on_stop(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call `callback` on a stop request, also on an earlier one; return its cancellation.

        The callback runs on the watcher's thread, possibly more than once, and must not raise.
        """
        self._callbacks = (*self._callbacks, callback)
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name=WATCHER, daemon=True)
            self._watcher.start()
        if self.requested:
            self._wakes.put(None)
        return lambda: self._forget(callback)

    def _forget(self, callback: Callable[[], object]) -> None:
        self._callbacks = tuple(known for known in self._callbacks if known is not callback)

    def _watch(self) -> None:
        wakes = self._wakes
        while wakes is self._wakes:
            wakes.get()
            for callback in self._callbacks:
                callback()


def grace_s() -> float:
    """Return the seconds that a step has between the first SIGTERM and its end."""
    return scaled(settings.STOP_GRACE_S)


STOP = StopFlag()
os.register_at_fork(after_in_child=STOP.reset)

on_stop = STOP.on_stop
request_stop = STOP.request
grace_left = STOP.grace_left


def stop_requested() -> bool:
    """Return whether the step should stop admitting work and drain."""
    return STOP.requested
