"""The encounters of a record for its results page: days, place, counts, state. PHI.

Reading takes one statement, whatever the size of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from uuid import UUID

from django.db import connection

from observability.phi.encounter_timeline import EncounterDays
from pipeline.transitions.reviews import flagged_sql, waiting_sql

_ENCOUNTERS = f"""
SELECT h.id, h.encounter_index, h.encounter_type, h.encounter_date_start, h.encounter_date_end,
  h.facility_name, h.clinician_name, h.page_start, h.page_end,
  h.entities_published_at IS NOT NULL, count(d.id),
  count(d.id) FILTER (WHERE {waiting_sql(1)} AND {flagged_sql("d", "c")})
FROM healthcare_encounters h
LEFT JOIN pass1_entity_detections d ON d.healthcare_encounter_id = h.id
  AND d.shell_file_id = h.shell_file_id
LEFT JOIN pass2_enriched_entities c ON c.entity_id = d.id
WHERE h.shell_file_id = %s GROUP BY h.id ORDER BY h.encounter_index
"""  # noqa: S608 - the conditions are constants


@dataclass(frozen=True, kw_only=True)
class EncounterLine:
    """One encounter with the number of its entities."""

    number: int
    encounter_id: str
    type: str
    days: EncounterDays = field(repr=False)
    facility: str = field(repr=False)
    clinician: str = field(repr=False)
    pages: str
    entities: int
    to_review: int
    """Entities that a person must check, for a reason of any pass, and that wait for a decision."""
    is_published: bool
    """Whether all batches succeeded; the entities of another encounter are not visible."""

    @property
    def anchor(self) -> str:
        """The id of the row on the page, and its address."""
        return f"encounter-{self.number}"

    @property
    def when(self) -> str:
        """The day, or the first and the last day; "" without a day."""
        first, last = self.days.first, self.days.last
        if first is None:
            return ""
        if last is None or last == first:
            return first.isoformat()
        return f"{first.isoformat()} to {last.isoformat()}"


def encounter_rows(shell_file_id: UUID) -> Sequence[EncounterLine]:
    """Return the encounters in the order of the pages."""
    with connection.cursor() as cursor:
        cursor.execute(_ENCOUNTERS, [shell_file_id])
        return [_line(*row) for row in cursor.fetchall()]


def _line(
    encounter: UUID, number: int, kind: str, first_day: date | None, last_day: date | None,
    facility: str | None, clinician: str | None, first: int, last: int, is_published: bool,
    entities: int, to_review: int,
) -> EncounterLine:  # fmt: skip
    return EncounterLine(
        number=number,
        encounter_id=str(encounter),
        type=kind.replace("_", " "),
        days=EncounterDays(number=number, first=first_day, last=last_day),
        facility=facility or "",
        clinician=clinician or "",
        pages=str(first) if first == last else f"{first}–{last}",
        entities=entities,
        to_review=to_review,
        is_published=is_published,
    )
