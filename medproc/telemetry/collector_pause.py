"""What a process and its forks know of the collector: whether it is away, and what was dropped.

A horse lives for one step. Without this memory, each step would wait for a collector that hangs.
"""

from __future__ import annotations

import ctypes
import mmap
import time


class _PauseMemory(ctypes.Structure):
    _fields_ = (("paused_until", ctypes.c_double), ("dropped", ctypes.c_int64))


class CollectorPause:
    """Memory that a process shares with its forks. Simultaneous writes can lose a few counts."""

    def __init__(self) -> None:
        self._shared = _PauseMemory.from_buffer(mmap.mmap(-1, ctypes.sizeof(_PauseMemory)))

    @property
    def is_over(self) -> bool:
        """Whether spans may be sent."""
        return time.monotonic() >= float(self._shared.paused_until)

    @property
    def is_first_failure(self) -> bool:
        """Whether the collector has answered since the last failure, or was never asked."""
        return float(self._shared.paused_until) == 0

    def begin(self, seconds: float) -> None:
        """Let no process send for `seconds`, because the collector did not answer."""
        self._shared.paused_until = time.monotonic() + seconds

    def drop(self, spans: int) -> None:
        """Count spans that are never sent."""
        self._shared.dropped += spans

    def end(self) -> int:
        """Note that the collector has answered; return how many spans were dropped before."""
        dropped = int(self._shared.dropped)
        self._shared.dropped, self._shared.paused_until = 0, 0.0
        return dropped
