"""The end of a step: completed, failed, dead, parked or requeued; for job, session and summary.

Call each function with the job's row locked: inside `leases.fenced`, or in `recovery` after it took
the lease. The caller writes the pass's own rows in the same transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Coalesce

from pipeline.core.errors import ErrorCode, LeaseLostError
from pipeline.core.states import (
    COMPLETES,
    STATUS_AFTER,
    WORKFLOW_STEP,
    JobStatus,
    PassStatus,
    SessionStatus,
    Step,
    SummaryStatus,
)
from pipeline.models import (
    DiscoverySession,
    IncidentJob,
    Job,
    Session,
    ShellFile,
    Summary,
)
from pipeline.models.fields import ClockTimestamp
from pipeline.models.work_tables import WORK_TABLES
from pipeline.transitions.failure_list import lost_work
from pipeline.transitions.history import noted
from pipeline.transitions.in_flight import requeue_in_flight
from pipeline.transitions.leases import Lease
from pipeline.transitions.run_time import RunUntilNow

_NO_FAILURE: dict[str, Any] = {"failure_encounter": None, "error_code": None}
"""A completed record shows no failure of an earlier run."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The reason why a run of a step failed. Messages are fixed texts without PHI."""

    code: ErrorCode
    message: str
    encounter_id: UUID | None = None
    batch_index: int | None = None
    underlying: ErrorCode | None = None
    attempt_history: list[dict[str, Any]] = field(default_factory=list)
    drill_down: list[dict[str, Any]] = field(default_factory=list)
    """Every failure of the step: {encounter_id, batch_index, pages, error_code, ...}. Read from the
    rows by `with_lost_work`, never listed by a pass."""

    def details(self, step: Step) -> dict[str, Any]:
        """Return the value of `job_queue.error_details` (requirement 18)."""
        return {
            "stage": step,
            "error_code": self.code,
            "failure_encounter_id": str(self.encounter_id) if self.encounter_id else None,
            "failure_batch_index": self.batch_index,
            "underlying_error": self.underlying or self.code,
            "attempt_history": self.attempt_history,
        }

    def noted(self, step: Step) -> dict[str, Any]:
        """Return the facts of the failure that stay in the job's history."""
        return {
            "step": step,
            "error_code": self.code,
            "underlying_error": self.underlying or self.code,
            "message": self.message,
            "failures": len(self.drill_down) or 1,
        }


@dataclass(frozen=True, kw_only=True)
class Parking:
    """Why a step waits, and for what. Raises ValueError if nothing would release it."""

    reason: str
    """A fixed text without PHI."""
    until: datetime | None = None
    incident_id: UUID | None = None
    pause_id: UUID | None = None
    """The three possible releases; the first event of them releases the job."""
    behind: UUID | None = None
    """The job that extracts the same file; its end releases the parked job (`flights`)."""

    def __post_init__(self) -> None:
        if self.until is None and self.incident_id is None and self.pause_id is None:
            raise ValueError("a parked step needs a time, an incident or a pause that releases it")


def complete_step(lease: Lease, next_step: Step | None) -> int | None:
    """Move a record past its step, and its job to the next step.

    Returns the dispatch number of the wake-up to send, or None if the job is complete. The next
    step starts with a crash count of zero and without a hang.
    """
    step = lease.step
    ShellFile.objects.filter(id=lease.shell_file_id).update(
        status=COMPLETES[step], updated_at=ClockTimestamp()
    )
    session = Session.objects.filter(id=lease.session_id)
    changes: dict[str, Any] = {"updated_at": ClockTimestamp()}
    if step is not Step.PAGES:
        changes |= {
            f"{step.value}_status": PassStatus.COMPLETED,
            "completed_steps": F("completed_steps") + 1,
        }
    order = list(Step)
    left_out = slice(order.index(step) + 1, order.index(next_step) if next_step else None)
    for left in order[left_out]:
        changes[f"{left.value}_status"] = PassStatus.SKIPPED
    if next_step is not None:
        session.update(**changes, workflow_step=WORKFLOW_STEP[next_step])
        return _requeue(lease, current_step=next_step, crash_count=0, hung_at=None)
    session.update(
        **changes,
        **_NO_FAILURE,
        failure_pass=None,
        error_message=None,
        error_context=None,
        session_status=SessionStatus.COMPLETED,
        processing_completed_at=ClockTimestamp(),
    )
    Summary.objects.filter(shell_file_id=lease.shell_file_id).update(
        **_NO_FAILURE,
        failure_stage=None,
        failure_batch_index=None,
        error_drill_down=None,
        processing_status=STATUS_AFTER[step],
        overall_success=True,
        processing_completed_at=ClockTimestamp(),
    )
    # `last_error` and `error_details` stay: they keep the errors of earlier runs.
    _leave(
        lease,
        status=JobStatus.COMPLETED,
        error_code=None,
        crash_count=0,
        hung_at=None,
        completed_at=ClockTimestamp(),
    )
    return None


def with_lost_work(lease: Lease, failure: Failure) -> Failure:
    """Return the failure with the list of what the record lost, and with the place of the first."""
    lost = lost_work(lease.shell_file_id, lease.step, failure.code, failure.underlying)
    if failure.encounter_id is None and failure.batch_index is None:
        failure = replace(failure, encounter_id=lost.encounter_id, batch_index=lost.batch_index)
    return replace(failure, drill_down=lost.entries)


def fail_step(lease: Lease, failure: Failure) -> None:
    """Fail the job; the record keeps the status of its last completed pass.

    Work in flight of the failed step goes back to `pending`, so that nothing seems to run.
    """
    _fail(lease, failure, "failed", status=JobStatus.FAILED)


def dead_letter_step(lease: Lease, failure: Failure) -> None:
    """Make the job a dead letter, which only an operator can requeue; updates the same rows."""
    _fail(lease, failure, "died", status=JobStatus.DEAD, dead_letter_at=ClockTimestamp())


def _fail(lease: Lease, failure: Failure, event: str, **ending: Any) -> None:
    step = lease.step
    requeue_in_flight([lease.session_id])
    if not failure.drill_down:
        failure = with_lost_work(lease, failure)
    table = WORK_TABLES.get(step)
    if table and (parent := table.record_parent):
        parent.model._default_manager.filter(
            shell_file_id=lease.shell_file_id, status=PassStatus.PROCESSING
        ).update(
            status=PassStatus.FAILED,
            completed_at=ClockTimestamp(),
            error_code=failure.code,
            error_message=failure.message,
        )
    changes: dict[str, Any] = {
        "session_status": SessionStatus.FAILED,
        "failure_pass": step,
        "failure_encounter_id": failure.encounter_id,
        "error_code": failure.code,
        "error_message": failure.message,
        "error_context": {
            "final_underlying_error": failure.underlying or failure.code,
            "failures": failure.drill_down,
        },
        "processing_completed_at": ClockTimestamp(),
        "updated_at": ClockTimestamp(),
    }
    if step is not Step.PAGES:
        changes[f"{step.value}_status"] = PassStatus.FAILED
    Session.objects.filter(id=lease.session_id).update(**changes)
    Summary.objects.filter(shell_file_id=lease.shell_file_id).update(
        processing_status=SummaryStatus.FAILED,
        overall_success=False,
        failure_stage=step,
        failure_encounter_id=failure.encounter_id,
        failure_batch_index=failure.batch_index,
        error_code=failure.code,
        error_drill_down={"failures": failure.drill_down},
        processing_completed_at=ClockTimestamp(),
    )
    _leave(
        lease,
        **ending,
        completed_at=ClockTimestamp(),
        last_error=failure.message,
        error_code=failure.code,
        error_details=noted({"event": event, **failure.noted(step)}, **failure.details(step)),
    )


def requeue_interrupted(lease: Lease, *, preempted: bool = False, message: str = "") -> int:
    """Requeue an interrupted step at no cost; return its dispatch number.

    Work in flight goes back to `pending`; succeeded work stays. A `preempted` step is not claimed
    again before the smaller work that waits. A `message` joins the job's history.
    """
    requeue_in_flight([lease.session_id])
    marked: dict[str, Any] = {"preempted_at": ClockTimestamp()} if preempted else {}
    if message:
        entry = {"event": "requeued by itself", "step": lease.step, "message": message}
        marked["error_details"] = noted(entry)
    return _requeue(lease, current_step=lease.step, **marked)


def park(lease: Lease, parking: Parking) -> None:
    """Park an unfinished step at no cost until a time, or the end of an incident or pause.

    Work in flight goes back to `pending`; succeeded work stays. The incident or pause may have
    ended a moment ago; the next `holds.release_due` then releases the job.
    """
    requeue_in_flight([lease.session_id])
    _leave(
        lease,
        status=JobStatus.PARKED,
        parked_until=parking.until,
        park_reason=parking.reason,
        incident_id=parking.incident_id,
        pause_id=parking.pause_id,
    )
    if parking.incident_id is not None:
        IncidentJob.objects.bulk_create(
            [
                IncidentJob(
                    incident_id=parking.incident_id,
                    job_id=lease.job_id,
                    effect=IncidentJob.PARKED,
                )
            ],
            ignore_conflicts=True,
        )


def begin_discovery(lease: Lease, discovery_session_id: UUID) -> None:
    """Mark Pass 0.5 of a record as running, clear an earlier failure, and keep its first start."""
    DiscoverySession.objects.filter(id=discovery_session_id).exclude(
        status=PassStatus.COMPLETED
    ).update(
        status=PassStatus.PROCESSING,
        started_at=Coalesce(F("started_at"), ClockTimestamp()),
        completed_at=None,
        error_code=None,
        error_message=None,
    )


def settle_discovery(lease: Lease, discovery_session_id: UUID, *, ok: bool, **totals: Any) -> None:
    """End Pass 0.5 of a record with its totals."""
    DiscoverySession.objects.filter(id=discovery_session_id, status=PassStatus.PROCESSING).update(
        status=PassStatus.COMPLETED if ok else PassStatus.FAILED,
        completed_at=ClockTimestamp(),
        **totals,
    )


def _requeue(lease: Lease, **changes: Any) -> int:
    _leave(
        lease,
        status=JobStatus.PENDING,
        dispatch_no=F("dispatch_no") + 1,
        available_at=ClockTimestamp(),
        **changes,
    )
    return int(Job.objects.values_list("dispatch_no", flat=True).get(id=lease.job_id))


def _leave(lease: Lease, **changes: Any) -> None:
    moved = Job.objects.filter(
        id=lease.job_id, lease_gen=lease.gen, status=JobStatus.PROCESSING
    ).update(
        # The job may have been an incident's probe; the probe ends with the step.
        **{"incident_id": None, **changes},
        step_run_ms=RunUntilNow(),
        worker_id=None,
        lease_expires_at=None,
        step_deadline_at=None,
        updated_at=ClockTimestamp(),
    )
    if moved != 1:
        raise LeaseLostError("the lease of this step was taken; nothing more is written")
