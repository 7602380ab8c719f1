"""Which list entries and sentences rest on entities that a person has changed since.

The lists are built again when the review closes. A narrative needs a provider, so its sentences
stay. Pages mark the rows that this module names, and exports leave them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import connection

# Decisions other than an acceptance, newer than the row that rests on the entity.
_STALE = """
SELECT r.id, array_agg(DISTINCT d.entity_id)
FROM {table} r JOIN review_decisions d ON d.entity_id = ANY(r.entity_ids)
WHERE r.shell_file_id = %(record)s AND d.shell_file_id = %(record)s
  AND d.action IN ('correct', 'reject', 'move') AND split_part(d.field, '.', 1) <> 'opinion'
  AND d.created_at > r.created_at
GROUP BY r.id
"""


@dataclass(frozen=True, kw_only=True)
class StaleResults:
    """The rows of a record that rest on changed entities, each with these entities."""

    list_items: dict[UUID, tuple[UUID, ...]]
    sentences: dict[UUID, tuple[UUID, ...]]

    def __bool__(self) -> bool:
        return bool(self.list_items or self.sentences)


def stale_results(shell_file_id: UUID) -> StaleResults:
    """Return the list entries and the sentences that a person's decision outdates."""
    return StaleResults(
        list_items=_read("record_list_items", shell_file_id),
        sentences=_read("pass3_narrative_sentences", shell_file_id),
    )


def _read(table: str, shell_file_id: UUID) -> dict[UUID, tuple[UUID, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(_STALE.format(table=table), {"record": shell_file_id})
        return {row: tuple(entities) for row, entities in cursor.fetchall()}
