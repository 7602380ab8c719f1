"""The end of a step whose horse hung beyond its deadline and was killed, written by its worker.

A worker runs one horse at a time, so after the horse's death all its leases were the horse's. If
PostgreSQL does not answer, the lease expires instead.
"""

from __future__ import annotations

import logging

from django.db import DatabaseError, InterfaceError, connections

from pipeline.core.errors import ErrorCode, LeaseLostError
from pipeline.core.redaction import redacted
from pipeline.core.states import JobStatus, Step
from pipeline.models import Job, Session
from pipeline.transitions import Failure, Lease, fail_step, fenced, mark_hung
from pipeline.transitions.rollup import Leaving, settle

logger = logging.getLogger(__name__)


def end_steps_of(worker_id: str) -> int:
    """Fail the steps that this worker holds with DEADLINE_EXCEEDED; count them.

    Leaves no connection open.
    """
    try:
        leases = leases_of(worker_id)
        for lease in leases:
            _end(lease)
    except (DatabaseError, InterfaceError, LeaseLostError) as error:
        logger.error("a stuck step was not ended: %s", redacted(error))
        return 0
    finally:
        # The next horse is forked from this process and must not inherit a connection.
        connections.close_all()
    return len(leases)


def leases_of(worker_id: str) -> list[Lease]:
    """Return the leases that this worker holds, from the rows."""
    jobs = Job.objects.filter(worker_id=worker_id, status=JobStatus.PROCESSING)
    return [
        Lease(
            job_id=job.id,
            shell_file_id=job.shell_file_id,
            session_id=Session.objects.values_list("id", flat=True).get(
                shell_file_id=job.shell_file_id
            ),
            step=Step(job.current_step),
            gen=job.lease_gen,
            worker_id=worker_id,
            record_batch_id=job.record_batch_id,
        )
        for job in jobs
    ]


def _end(lease: Lease) -> None:
    with fenced(lease):
        mark_hung(lease.job_id, lease.gen, lease.worker_id)
        fail_step(
            lease,
            Failure(
                code=ErrorCode.DEADLINE_EXCEEDED,
                message=f"{lease.step} hung beyond its deadline and was killed;"
                " completed work is kept, and a retry continues from there",
            ),
        )
        # A worker does not enqueue: the reconciler wakes the jobs that waited for this one.
        event = f"{lease.step}: {ErrorCode.DEADLINE_EXCEEDED}"
        settle([Leaving.by(lease, event, has_ended=True)])
    logger.error(
        "step_stuck job=%s step=%s",
        lease.job_id,
        lease.step.value,
        extra={"action": "step_stuck", **lease.log_context()},
    )
