"""Preemption: a large step that has run for a while makes room for smaller records that wait.

The step looks at the database every `LOOK_S` only. A preempted step begins nothing more, keeps
its calls in flight, and queues again behind the work that it made room for.
"""

from __future__ import annotations

import time

from medproc.timing import scaled
from pipeline.transitions import Lease, preempt_after_s, should_preempt

PREEMPTED = "preempted"
"""Why such a step was interrupted."""
LOOK_S = 2.0


class Preemption:
    """The looks of one step, from its start."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._look_at = time.monotonic() + preempt_after_s()

    def is_due(self) -> bool:
        """Return whether the step should stop now; most calls answer without a look."""
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + scaled(LOOK_S)
        return should_preempt(self._lease.job_id, self._lease.step)
