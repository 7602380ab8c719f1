"""The event that says that the result of a call is not needed.

Most calls never wait for it, and `threading.Event` costs 5 µs, because it makes a lock and a
condition. This event is a flag until a thread waits.
"""

from __future__ import annotations

import threading


class CancelEvent(threading.Event):
    """A `threading.Event` that only the thread of its call waits for, and that is never cleared."""

    def __init__(self) -> None:
        # Without `super().__init__()`, whose lock and condition are what costs.
        self._is_cancelled = False
        self._awaited: threading.Event | None = None

    def is_set(self) -> bool:
        """Return whether the result is not needed."""
        return self._is_cancelled

    def set(self) -> None:
        """Say that the result is not needed."""
        # First the flag, then the look: `wait` does the reverse, so one of them sees the other.
        self._is_cancelled = True
        if self._awaited is not None:
            self._awaited.set()

    def clear(self) -> None:
        """Raise NotImplementedError: a call that was cancelled stays cancelled."""
        raise NotImplementedError

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the result is not needed; return whether this is so."""
        self._awaited = self._awaited or threading.Event()
        return self._is_cancelled or self._awaited.wait(timeout)
