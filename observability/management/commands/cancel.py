"""`manage.py cancel ID`: cancel a record's job, by any id of the record.

May import services. What waits is cancelled at once; a running step keeps what succeeds and ends.
"""

from __future__ import annotations

from uuid import UUID

from observability.management.job_command import RecordVerbCommand
from pipeline.operations import services


class Command(RecordVerbCommand):
    """Cancel a record's job."""

    verb = "cancel"
    help = (
        "Cancel the job of a record. One that waits ends at once; a running step is told, keeps"
        " what succeeds and ends as cancelled. What is complete stays; `retry --record` goes on."
    )

    def act(self, record: UUID, *, reason: str | None, by: str) -> tuple[str, dict[str, str]]:
        """Cancel it, or have its step told."""
        if services.job_cancel(record, reason=reason, by=by).is_ended:
            return "Cancelled.", {"status": "cancelled"}
        return (
            "Its step runs: it was told to stop, and ends as cancelled.",
            {"status": "cancelling"},
        )
