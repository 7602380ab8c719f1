"""The steps that a horse gave up because PostgreSQL refused, requeued by their worker.

A horse that cannot renew its lease, or cannot write how its step ended, sets a mark and exits. No
process has crashed then. So the worker waits for PostgreSQL and requeues the step at no cost. If
the worker stops before, the reconciler recovers the step like the step of a dead worker.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError, connections, transaction

from pipeline.core.db_errors import is_away
from pipeline.core.errors import LeaseLostError
from pipeline.core.redaction import redacted
from pipeline.core.server_faults import FaultLog
from pipeline.core.states import JobStatus
from pipeline.models import Job
from pipeline.transitions import cancel_asked, fenced, requeue_interrupted
from pipeline.transitions.rollup import Leaving, settle
from pipeline.workers.stuck_steps import leases_of

logger = logging.getLogger(__name__)

REASON = "PostgreSQL refused"
WAIT_FIRST_S, WAIT_MAX_S = 0.25, 2.0


def requeue_steps_of(worker_id: str, goes_on: Callable[[], bool]) -> None:
    """Wait until PostgreSQL accepts writes, then requeue the steps that this worker holds.

    Tries once, then as long as `goes_on` returns True: a worker that stops still leaves no step if
    PostgreSQL accepts writes. Leaves no connection open, because the next horse is forked from
    this process.
    """
    faults, wait_s = FaultLog(), WAIT_FIRST_S
    while True:
        try:
            _requeue(worker_id)
        except (DatabaseError, InterfaceError) as error:
            if not is_away(error):
                logger.error("a step was not requeued: %s", redacted(error))
                return
            if line := faults.line_if_due(error):
                logger.warning("worker %s: %s", worker_id, line, extra={"action": "db_refuses"})
            connections.close_all()
            if not goes_on():
                return
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, WAIT_MAX_S)
        else:
            return
        finally:
            connections.close_all()


def _requeue(worker_id: str) -> None:
    with transaction.atomic():
        # A lock is a write, also without a row. So this statement fails while writes are refused.
        held = Job.objects.select_for_update(no_key=True).filter(worker_id=worker_id)
        list(held.filter(status=JobStatus.PROCESSING).values_list("id"))
    for lease in leases_of(worker_id):
        try:
            with fenced(lease):
                requeue_interrupted(lease)
                # A worker does not enqueue; the reconciler sends the wake-ups.
                event = f"{lease.step}: interrupted ({REASON})"
                settle([Leaving.by(lease, event, has_ended=cancel_asked(lease))])
        except LeaseLostError:
            continue
        logger.warning(
            "step_requeued job=%s step=%s: PostgreSQL accepts writes again",
            lease.job_id,
            lease.step.value,
            extra={"action": "step_requeued", **lease.log_context()},
        )
