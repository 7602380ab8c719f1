"""The next pass in the same horse, where no other work is due first.

A fork, its connections and its wake-up cost 60 to 100 ms of CPU, and a record has six passes. A
horse that goes on claims the next pass like any other worker, so lease, fence, crash count and the
order of claims stay the same. Only the wake-up is left out: the claim of the horse takes its place.
If the horse dies before the claim, the reconciler sends the wake-up.

A record that is not small has its fork for each pass: the fork is a small part of its time, and a
process keeps the memory of a pass.
"""

from __future__ import annotations

import threading
import time

from pipeline.core.states import Step
from pipeline.execution.shutdown import WATCHER, stop_requested
from pipeline.models import Job
from pipeline.queueing.queues import nothing_waits_in
from pipeline.stages.registry import next_step
from pipeline.transitions import Lease
from pipeline.workers.identity import served_before

SMALL = 0
"""The size class of a small record; see `pages.size_class`."""
THREADS_END_S = 0.1
"""Seconds for which the threads of the completed step may still end."""


def step_to_continue(lease: Lease) -> Step | None:
    """Return the pass with which this process goes on after a completed step, or None.

    None without a next pass that the worker serves, after a step of a record that is not small,
    during a stop, while a thread of the step still runs, while the workers are suspended, and while
    a wake-up waits that the worker prefers.
    """
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
