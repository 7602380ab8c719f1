"""`manage.py requeue ID`: requeue a dead letter, by any id of its record.

The job starts with a new budget and keeps its history.
"""

from __future__ import annotations

from uuid import UUID

from observability.management.job_command import RecordActionCommand
from pipeline.operations import operator_actions


class Command(RecordActionCommand):
    """Requeue a dead letter."""

    action = "requeue"
    help = (
        "Requeue a dead letter (a job whose workers died too often) with a new budget; the job"
        " keeps its history. For a failed or cancelled job use `retry`."
    )

    def act(self, record: UUID, *, reason: str | None, by: str) -> tuple[str, dict[str, str]]:
        """Requeue the job."""
        step = operator_actions.job_requeue(record, reason=reason, by=by).due.step.value
        return f"Requeued for {step}.", {"status": "running", "step": step}
