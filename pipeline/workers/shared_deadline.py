"""The end of the running step, in memory that a worker shares with the horse that it forks.

The horse's `StepDeadline` publishes each new end here. The worker reads the end to stop a horse
that hangs in C code and runs no Python. Nothing else reads this memory.
"""

from __future__ import annotations

import mmap
import struct
import time

_END = struct.Struct("d")
_NONE = 0.0


class SharedDeadline:
    """The end of the step that a worker's horse runs, in memory that both processes share.

    The worker reads the end here to stop a horse that hangs in C code and runs no Python.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Take memory of its own, as each worker must: a pool's children share their parent's."""
        self._memory = mmap.mmap(-1, _END.size)

    def publish(self, ends_at: float | None) -> None:
        """Write the end of the step; None between two steps."""
        _END.pack_into(self._memory, 0, _NONE if ends_at is None else ends_at)

    @property
    def left_s(self) -> float | None:
        """The seconds until the step must end, below 0 when that has passed; None without one."""
        ends_at: float = _END.unpack_from(self._memory)[0]
        return None if ends_at == _NONE else ends_at - time.monotonic()


SHARED_DEADLINE = SharedDeadline()
"""The memory of this worker and its horse. RQ calls `run_step` by name, so nothing can pass it."""
