"""The bookkeeping after a job leaves its worker: totals, milestone, end of its record batch.

Call `settle` in the transaction of the move, after the move. So the figures of failed, dead and
cancelled records are as complete as those of completed records (requirement 21).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, Func, JSONField, Value
from django.utils import timezone

from pipeline.core.states import Step
from pipeline.core.types import Due
from pipeline.transitions import (
    Lease,
    land,
    open_review,
    settle_record_batches,
)
from pipeline.transitions.metric_counts import count_ended
from pipeline.transitions.totals import write_totals


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """A job that leaves its worker."""

    job_id: UUID
    shell_file_id: UUID
    session_id: UUID
    record_batch_id: UUID | None
    step: Step
    """The step that ends, or the step for which a job without a worker waited."""
    event: str
    """The milestone to note."""
    has_ended: bool
    """Whether the job has completed, failed for good, died or been cancelled."""

    @classmethod
    def by(cls, lease: Lease, event: str, *, has_ended: bool) -> Leaving:
        """Return the job of a lease."""
        return cls(
            job_id=lease.job_id,
            shell_file_id=lease.shell_file_id,
            session_id=lease.session_id,
            record_batch_id=lease.record_batch_id,
            step=lease.step,
            event=event,
            has_ended=has_ended,
        )


def settle(leaving: Sequence[Leaving]) -> list[Due]:
    """Write the totals of each record, note a milestone, open the review of a record whose job
    ended and count the record, and end batches whose last job ended.

    Returns the jobs to wake: those that waited for the extraction of the same file. Batches are
    locked after all other rows and in the order of their ids. So pass all jobs of a transaction at
    once. The place in a full batch is given on by `queueing.record_places`.
    """
    for each in leaving:
        _roll_up(each)
        if each.has_ended:
            open_review(each.shell_file_id)
    count_ended([each.job_id for each in leaving if each.has_ended])
    released = [
        due for each in leaving if each.has_ended for due in land(each.job_id, each.shell_file_id)
    ]
    ended = {each.record_batch_id for each in leaving if each.has_ended and each.record_batch_id}
    if ended:
        settle_record_batches(sorted(ended))
    return released


def _roll_up(leaving: Leaving) -> None:
    milestone = {"event": leaving.event, "at": timezone.now().isoformat()}
    noted = Func(
        F("business_events"),
        Value([milestone], output_field=JSONField()),
        template="%(expressions)s",
        arg_joiner=" || ",
    )
    write_totals(leaving.shell_file_id, leaving.session_id, leaving.step, business_events=noted)
