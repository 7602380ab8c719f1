"""The running step, in memory that a worker shares with the horse that it forks.

The horse writes its lease, its signs of life, its deadline, and whether PostgreSQL refused. The
worker reads them to end a horse that is stuck in C code or stopped, and therefore runs no Python,
and to requeue a step that PostgreSQL refused. Nothing else reads this memory.
"""

from __future__ import annotations

import ctypes
import mmap
import time
from uuid import UUID

from django.conf import settings

from medproc.timing import scaled

_NONE = 0.0
_NO_JOB = UUID(int=0)
LEASE_SHARE = 0.9
"""Part of a lease after which a silent horse is ended. The rest of the lease is the time to note
the hang before another process takes the job."""
LEASELESS_S = 60.0
"""Seconds that a horse may live without a lease: before its claim, and after the end of its step.
Not scaled by TIME_SCALE, because this time passes while a process starts or ends."""


class _Step(ctypes.Structure):
    _fields_ = (
        ("ends_at", ctypes.c_double),
        ("due_at", ctypes.c_double),
        ("job", ctypes.c_ubyte * 16),
        ("gen", ctypes.c_int64),
        ("is_refused", ctypes.c_bool),
    )


class SharedStep:
    """The step that a worker's horse runs, in memory that both processes share.

    Times are seconds of the system's monotonic clock, which is the same in both processes.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Take memory of its own, as each worker must: a pool's children share their parent's."""
        self._step = _Step.from_buffer(mmap.mmap(-1, ctypes.sizeof(_Step)))

    def clear_lease(self) -> None:
        """Note that the horse has no lease: the horse starts, or has ended its step."""
        self._step.ends_at = _NONE
        self._step.due_at = time.monotonic() + LEASELESS_S
        self._step.job[:] = _NO_JOB.bytes

    def claimed(self, job_id: UUID, gen: int, at: float) -> None:
        """Note the lease of the horse; `at` is a time before the claim."""
        self.sign(at)
        # The worker can read between two writes: a job must never have another job's generation.
        self._step.gen = gen
        self._step.job[:] = job_id.bytes

    def sign(self, at: float) -> None:
        """Note a sign of life of the horse."""
        self._step.due_at = at + scaled(settings.LEASE_S) * LEASE_SHARE

    def publish(self, ends_at: float | None) -> None:
        """Write the deadline of the step; None between two steps."""
        self._step.ends_at = _NONE if ends_at is None else ends_at

    def note_refusal(self, is_refused: bool) -> None:
        """Note whether the horse gave up its step because PostgreSQL refused."""
        self._step.is_refused = is_refused

    @property
    def left_s(self) -> float | None:
        """The seconds until the deadline of the step, below 0 afterwards; None without a step."""
        ends_at = self._step.ends_at
        return None if ends_at == _NONE else ends_at - time.monotonic()

    @property
    def sign_left_s(self) -> float | None:
        """The seconds until the horse must give a sign of life; None without a horse."""
        due_at = self._step.due_at
        return None if due_at == _NONE else due_at - time.monotonic()

    @property
    def lease(self) -> tuple[UUID, int] | None:
        """The job and the generation of the horse's lease; None without one."""
        job = UUID(bytes=bytes(self._step.job))
        return None if job == _NO_JOB else (job, self._step.gen)

    @property
    def is_refused(self) -> bool:
        """Whether the horse gave up its step because PostgreSQL refused."""
        return bool(self._step.is_refused)


SHARED_STEP = SharedStep()
"""The memory of this worker and its horse. RQ calls `run_step` by name, so no argument can carry
the memory."""
