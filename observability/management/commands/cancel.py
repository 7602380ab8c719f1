"""`manage.py cancel ID`: cancel a record's job, by any id of the record.

A waiting job is cancelled at once. A running step keeps its successful results and then ends.
"""

from __future__ import annotations

from uuid import UUID

from observability.management.job_command import RecordActionCommand
from pipeline.operations import operator_actions


class Command(RecordActionCommand):
    """Cancel a record's job."""

    action = "cancel"
    help = (
        "Cancel the job of a record. A waiting job ends at once. A running step is told to stop,"
        " keeps what succeeded and ends as cancelled. `retry --record` continues from there."
    )

    def act(self, record: UUID, *, reason: str | None, by: str) -> tuple[str, dict[str, str]]:
        """Cancel the job, or tell its step to stop."""
        if operator_actions.job_cancel(record, reason=reason, by=by).is_ended:
            return "Cancelled.", {"status": "cancelled"}
        return (
            "The running step was told to stop; the job then ends as cancelled.",
            {"status": "cancelling"},
        )
