"""When a large step makes room: it has run for a while, and smaller records wait for its worker.

Imports transitions. Looks at the database every so often and no oftener; the step then begins
nothing more, keeps what it has in flight, and goes back in line behind what it made room for.
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
        """Tell whether the step should stop and give itself back now; mostly without a look."""
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + scaled(LOOK_S)
        return should_preempt(self._lease.job_id, self._lease.step)
