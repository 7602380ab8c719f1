"""The lists of a record across its encounters, as rows."""

from __future__ import annotations

from uuid import UUID

from pipeline.models import RecordListItem


def list_rows(shell_file_id: UUID) -> list[RecordListItem]:
    """Return the problems, medications, allergies and lab series of a record."""
    return []
