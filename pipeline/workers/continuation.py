"""The next pass in the same horse, where no other work is due first.

A fork, its connections and its wake-up cost 60 to 100 ms of CPU, and a record has six passes. A
horse that goes on claims the next pass like any other worker, so lease, fence, crash count and the
order of claims stay the same. Only the wake-ups are left out: the claim of the horse takes their
place. If the claim finds nothing, the horse sends them. If the horse dies before, the reconciler
does.

A record that is not small has its fork for each pass: the fork is a small part of its time, and a
process keeps the memory of a pass.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from django.db import connection

from pipeline.core.redaction import redacted
from pipeline.core.states import Step
from pipeline.core.types import Due
from pipeline.execution.shutdown import WATCHER, stop_requested
from pipeline.models import Job
from pipeline.queueing.queues import nothing_waits_in
from pipeline.queueing.record_places import Place
from pipeline.stages.registry import next_step
from pipeline.transitions import Lease
from pipeline.workers.identity import served_before

logger = logging.getLogger(__name__)

SMALL = 0
"""The size class of a small record; see `pages.size_class`."""
THREADS_END_S = 0.1
"""Seconds for which the threads of the completed step may still end."""


@dataclass(frozen=True, kw_only=True)
class GoingOn:
    """The next pass of this process, and the wake-ups that are left out for it."""

    step: Step
    due: Due
    """The record, as its wake-up would name it."""
    place: Place | None
    """The record's place in its record batch."""

    @classmethod
    def after(cls, lease: Lease, step: Step) -> GoingOn:
        """Return the next pass after the step of a lease."""
        return cls(
            step=step,
            # The dispatch number of the row was not sent. It only makes an id unique.
            due=Due(job_id=lease.job_id, step=step, dispatch_no=0, is_sent_again=True),
            place=None if lease.record_batch_id is None else (lease.record_batch_id, lease.job_id),
        )


def step_to_continue(lease: Lease) -> Step | None:
    """Return the pass with which this process goes on after a completed step, or None.

    None without a next pass that the worker serves, after a step of a record that is not small,
    during a stop, while a thread of the step still runs, while the workers are suspended, and while
    a wake-up waits that the worker prefers. Also None if this cannot be found out: the
    end of the completed step must be written whatever happens here.
    """
    try:
        return _asked(lease)
    except Exception as error:  # noqa: BLE001 - whatever it is, the completed step must be written
        logger.warning("the next pass gets a horse of its own: %s", redacted(error))
        connection.close()
        return None


def _asked(lease: Lease) -> Step | None:
    following = next_step(lease.step)
    if following is None or stop_requested() or _a_thread_is_left():
        return None
    preferred = served_before(following)
    if preferred is None or not nothing_waits_in(preferred):
        return None
    is_small = Job.objects.filter(id=lease.job_id, size_class=SMALL).exists()
    return following if is_small else None


def _a_thread_is_left() -> bool:
    """Return whether a thread of the step still runs: a call that hangs, or a reader."""
    ends_at = time.monotonic() + THREADS_END_S
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and thread.name != WATCHER:
            thread.join(max(0.0, ends_at - time.monotonic()))
            if thread.is_alive():
                return True
    return False
