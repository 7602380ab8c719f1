"""The bookkeeping after a job leaves its worker: cost, milestone, and the end of its record batch.

Call `settle` in the transaction of the move, after the move. So the figures of failed, dead and
cancelled records are as complete as those of completed records (requirement 21).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, Func, JSONField, Value
from django.db.models.functions import Extract, Least
from django.utils import timezone

from pipeline.core.types import Due
from pipeline.models import Summary, selectors
from pipeline.models.fields import INTEGER_MAX, ClockTimestamp
from pipeline.transitions import Lease, next_of_record_batch, settle_record_batches


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """A job that leaves its worker."""

    job_id: UUID
    shell_file_id: UUID
    session_id: UUID
    record_batch_id: UUID | None
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
            event=event,
            has_ended=has_ended,
        )


def settle(leaving: Sequence[Leaving]) -> list[Due]:
    """Add up the cost of each job, note a milestone, and end record batches whose last job ended.

    Returns the jobs to wake: the next record of each batch that was full. Batches are locked after
    all other rows and in the order of their ids. So pass all jobs of a transaction at once.
    """
    for each in leaving:
        _roll_up(each)
    ended = {each.record_batch_id for each in leaving if each.has_ended and each.record_batch_id}
    if ended:
        settle_record_batches(sorted(ended))
    return [
        due
        for each in leaving
        if each.record_batch_id is not None
        for due in next_of_record_batch(each.record_batch_id, but=each.job_id)
    ]


def _roll_up(leaving: Leaving) -> None:
    totals = selectors.call_totals(leaving.session_id)
    took = Extract(ClockTimestamp() - F("processing_started_at"), "epoch") * 1000
    took_ms = Least(took, Value(float(INTEGER_MAX)))
    milestone = {"event": leaving.event, "at": timezone.now().isoformat()}
    Summary.objects.filter(shell_file_id=leaving.shell_file_id).update(
        total_tokens_used=totals["total_tokens"],
        total_cost_usd=totals["cost_usd"],
        total_processing_time_ms=took_ms,
        business_events=Func(
            F("business_events"),
            Value([milestone], output_field=JSONField()),
            template="%(expressions)s",
            arg_joiner=" || ",
        ),
    )
