"""`manage.py requeue ID`: put a dead letter back in line, by any id of its record.

May import services. It starts with a new budget; what befell it stays in its history.
"""

from __future__ import annotations

from uuid import UUID

from observability.management.job_command import RecordVerbCommand
from pipeline.operations import services


class Command(RecordVerbCommand):
    """Put a dead letter back in line."""

    verb = "requeue"
    help = (
        "Put a dead letter (a job whose workers died too often) back in line with a new budget;"
        " its history is kept. For a failed or cancelled one use `retry`."
    )

    def act(self, record: UUID, *, reason: str | None, by: str) -> tuple[str, dict[str, str]]:
        """Put it back."""
        step = services.job_requeue(record, reason=reason, by=by).due.step.value
        return f"Back in line for {step}.", {"status": "running", "step": step}
