"""The event that says that the result of a call is not needed.

Most calls never wait for the event, and `threading.Event` costs 5 µs, because it makes a lock and a
condition. A `CancelEvent` is a flag until a thread waits.
"""

from __future__ import annotations

import threading


class CancelEvent:
    """A `threading.Event` without `clear`. Only the thread of the call waits for the event."""

    def __init__(self) -> None:
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

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the result is not needed; return whether this is so."""
        self._awaited = self._awaited or threading.Event()
        return self._is_cancelled or self._awaited.wait(timeout)
