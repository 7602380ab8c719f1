"""The watch of a worker over its horse: the signs of life of the step, and the end of the process.

A horse hangs if it is stuck in C code or stopped. Such a horse renews no lease, and would keep its
worker from all other work.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connections

from medproc.timing import scaled
from pipeline import transitions
from pipeline.core.db_errors import is_away
from pipeline.core.server_faults import explain
from pipeline.workers.shared_step import SHARED_STEP

logger = logging.getLogger(__name__)

STALL_S = 2.0
"""A pause between two looks from which the worker learns that it was stopped itself, for example
with its host. Its horse was stopped too and did not hang."""


class SilenceWatch:
    """Tells a worker when its horse hangs: no renewal of the lease, or too long without a lease."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Watch a new horse."""
        self._looked_at = time.monotonic()
        self._lenient_until = 0.0
        self._is_over = False

    def is_first_silence(self) -> bool:
        """Look at the signs of life; return True, once per horse, if the horse hangs."""
        now = time.monotonic()
        stalled_s, self._looked_at = now - self._looked_at, now
        if stalled_s > STALL_S:
            self._lenient_until = now + scaled(settings.HEARTBEAT_S)
        sign_left_s = SHARED_STEP.sign_left_s
        if sign_left_s is None or sign_left_s > 0 or self._is_over or self.is_lenient:
            return False
        self._is_over = True
        return True

    @property
    def is_lenient(self) -> bool:
        """Whether the horse has just been stopped together with its worker."""
        return time.monotonic() < self._lenient_until


class HorseEnd(threading.Thread):
    """Waits for the end of one horse: `join` has a timeout, `wait4` has none. The thread ends
    before the next horse is forked."""

    def __init__(self, horse_pid: int) -> None:
        super().__init__(name="horse-end", daemon=True)
        self._horse_pid = horse_pid
        self.pid: int | None = None
        self.status: int | None = None
        self.usage: Any = None
        self.start()

    def run(self) -> None:
        """Wait; without a child there is nothing to note."""
        try:
            self.pid, self.status, self.usage = os.wait4(self._horse_pid, 0)
        except ChildProcessError:
            return


def note_hang(job_id: UUID, gen: int, worker: str) -> None:
    """Note in the row that the job's step hung, so that the job is claimed last.

    Call this after the horse was killed, and before its lease ends: after that, the job could be
    recovered as the job of a lost worker. Leaves no connection open.
    """
    try:
        if transitions.mark_hung(job_id, gen, worker):
            logger.error(
                "step_hung job=%s worker=%s",
                job_id,
                worker,
                extra={"action": "step_hung", "job": str(job_id), "lease_gen": gen},
            )
    except (DatabaseError, InterfaceError) as error:
        logger.error("worker %s: a hang was not noted: %s", worker, explain(error))
        # The horse waited for PostgreSQL, like this worker now, and did not hang.
        SHARED_STEP.note_refusal(is_away(error))
    finally:
        connections.close_all()


def expire_leases_of(worker: str) -> None:
    """Expire the leases of a worker whose horse died, so that the job need not wait for their end.

    Leaves no connection open.
    """
    try:
        if transitions.expire_leases(worker):
            logger.warning("worker %s: its horse died, its lease ends", worker)
    except (DatabaseError, InterfaceError) as error:
        # The lease expires by itself.
        logger.warning("worker %s: its horse died: %s", worker, explain(error))
    finally:
        connections.close_all()
