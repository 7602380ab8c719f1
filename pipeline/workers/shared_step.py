"""The running step, in memory that a worker shares with the horse that it forks.

The horse writes its lease, its signs of life and its deadline. The worker reads them to end a horse
that is stuck in C code or stopped, and therefore runs no Python. Nothing else reads this memory.
"""

from __future__ import annotations

import mmap
import struct
import time
from uuid import UUID

from django.conf import settings

from medproc.timing import scaled

_STEP = struct.Struct("dd16sq")
_NONE = 0.0
_NO_JOB = UUID(int=0)
LEASE_SHARE = 0.9
"""Part of a lease after which a silent horse is ended. The rest of the lease is the time to note
the hang before another process takes the job."""
LEASELESS_S = 60.0
"""Seconds that a horse may live without a lease: before its claim, and after the end of its step.
Not scaled by TIME_SCALE, because this time passes while a process starts or ends."""


class SharedStep:
    """The step that a worker's horse runs, in memory that both processes share.

    Times are seconds of the system's monotonic clock, which is the same in both processes.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Take memory of its own, as each worker must: a pool's children share their parent's."""
        self._memory = mmap.mmap(-1, _STEP.size)

    def clear_lease(self) -> None:
        """Note that the horse has no lease: the horse starts, or has ended its step."""
        self._write(ends_at=_NONE, due_at=time.monotonic() + LEASELESS_S, job=_NO_JOB, gen=0)

    def claimed(self, job_id: UUID, gen: int, at: float) -> None:
        """Note the lease of the horse; `at` is a time before the claim."""
        self._write(job=job_id, gen=gen, due_at=_due_after(at))

    def sign(self, at: float) -> None:
        """Note a sign of life of the horse."""
        self._write(due_at=_due_after(at))

    def publish(self, ends_at: float | None) -> None:
        """Write the deadline of the step; None between two steps."""
        self._write(ends_at=_NONE if ends_at is None else ends_at)

    @property
    def left_s(self) -> float | None:
        """The seconds until the deadline of the step, below 0 afterwards; None without a step."""
        ends_at = self._read()[0]
        return None if ends_at == _NONE else ends_at - time.monotonic()

    @property
    def sign_left_s(self) -> float | None:
        """The seconds until the horse must give a sign of life; None without a horse."""
        due_at = self._read()[1]
        return None if due_at == _NONE else due_at - time.monotonic()

    @property
    def lease(self) -> tuple[UUID, int] | None:
        """The job and the generation of the horse's lease; None without one."""
        _, _, job, gen = self._read()
        return None if job == _NO_JOB else (job, gen)

    def _read(self) -> tuple[float, float, UUID, int]:
        ends_at, due_at, job, gen = _STEP.unpack_from(self._memory)
        return ends_at, due_at, UUID(bytes=job), gen

    def _write(
        self,
        *,
        ends_at: float | None = None,
        due_at: float | None = None,
        job: UUID | None = None,
        gen: int | None = None,
    ) -> None:
        was = self._read()
        _STEP.pack_into(
            self._memory,
            0,
            was[0] if ends_at is None else ends_at,
            was[1] if due_at is None else due_at,
            (was[2] if job is None else job).bytes,
            was[3] if gen is None else gen,
        )


def _due_after(at: float) -> float:
    return at + scaled(settings.LEASE_S) * LEASE_SHARE


SHARED_STEP = SharedStep()
"""The memory of this worker and its horse. RQ calls `run_step` by name, so no argument can carry
the memory."""
