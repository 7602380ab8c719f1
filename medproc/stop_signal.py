"""The stop request of a process that runs others: set by Ctrl-C or SIGTERM, awaited by its loop.

`threading.Event` cannot be set in a signal handler: a signal that interrupts `wait`, or a second
signal that interrupts `set`, waits for a lock that the same thread holds.
"""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from types import FrameType


class StopSignal:
    """Whether a signal asked this process to stop. Made in the main thread, never closed."""

    def __init__(self) -> None:
        self._is_set = False
        # A byte stays in the pipe, so every later wait returns at once.
        self._wake_r, self._wake_w = os.pipe()
        os.set_blocking(self._wake_w, False)

    def catch(self) -> None:
        """Become the handler of SIGINT and SIGTERM."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def is_set(self) -> bool:
        """Return whether a signal arrived."""
        return self._is_set

    def wait(self, timeout_s: float) -> bool:
        """Wait for a signal, at most `timeout_s` seconds, and return whether a signal arrived."""
        select.select([self._wake_r], [], [], timeout_s)
        return self._is_set

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._is_set = True
        with suppress(BlockingIOError):  # the pipe is full of earlier signals
            os.write(self._wake_w, b"!")
