"""How long the step of this process may take: set by its owner, seen by the process's parent.

Imports the standard library only. The end lies in memory that a horse shares with its worker, as
seconds of the system's monotonic clock, so that the worker can end a horse that hangs in C code.
A step has one deadline: soft at `SOFT_SHARE` of it, when nothing more is begun, then hard.
"""

from __future__ import annotations

import mmap
import struct
import time

SOFT_SHARE = 0.9
"""Part of a deadline after which nothing is begun (`spec.md` points 26 and 44: 270 of 300 s)."""

_END = struct.Struct("d")
_NONE = 0.0


class Deadline:
    """The deadline of one process's step, and of the horses that it forks."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Take memory of its own, as each worker must: a pool's children share their parent's."""
        self._shared = mmap.mmap(-1, _END.size)
        self._reserve_s = 0.0

    def allow(self, seconds: float) -> None:
        """Give the step so many seconds from now."""
        self._reserve_s = seconds * (1 - SOFT_SHARE)
        self._write(time.monotonic() + seconds)

    def extend(self, seconds: float) -> None:
        """Move the deadline by time that does not count: parked, or cooling down."""
        end = self._read()
        if end != _NONE:
            self._write(end + seconds)

    def forget(self) -> None:
        """Have none, as between two steps."""
        self._write(_NONE)

    @property
    def left_s(self) -> float | None:
        """The seconds until the step ends whatever it does, below 0 when it has; None without."""
        end = self._read()
        return None if end == _NONE else end - time.monotonic()

    @property
    def soft_left_s(self) -> float | None:
        """The seconds in which something may still be begun; None without a deadline."""
        left_s = self.left_s
        return None if left_s is None else left_s - self._reserve_s

    def _read(self) -> float:
        found: tuple[float] = _END.unpack_from(self._shared)
        return found[0]

    def _write(self, end: float) -> None:
        _END.pack_into(self._shared, 0, end)


DEADLINE = Deadline()


def is_soft_passed() -> bool:
    """Tell whether the step should begin nothing more."""
    left_s = DEADLINE.soft_left_s
    return left_s is not None and left_s <= 0


def is_passed() -> bool:
    """Tell whether the step's time is used up."""
    left_s = DEADLINE.left_s
    return left_s is not None and left_s <= 0
