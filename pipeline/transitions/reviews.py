"""The review items of records; a later review writes their statuses here."""

from __future__ import annotations

from uuid import UUID

from django.db import connection

# The session knows whether anything in the record asks for a look.
_OPEN = """
INSERT INTO review_items (id, shell_file_id, reason, status)
SELECT gen_random_uuid(), s.shell_file_id,
  CASE WHEN s.requires_human_review THEN 'flagged' ELSE 'completed' END, 'open'
FROM ai_processing_sessions s WHERE s.shell_file_id = %s
ON CONFLICT (shell_file_id) DO NOTHING
"""


def open_review(shell_file_id: UUID) -> None:
    """Open the review of a record whose job completes, unless the record has one already."""
    with connection.cursor() as cursor:
        cursor.execute(_OPEN, [shell_file_id])
