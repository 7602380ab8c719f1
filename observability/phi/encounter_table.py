"""The encounters of a record for its results page: days, place, counts, state. PHI.

Reading takes two statements, whatever the size of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Count, Q

from observability.phi.encounter_timeline import EncounterDays
from pipeline.models import Encounter, Entity, ReviewVerdict

_TO_REVIEW = (Q(verdict=None) | Q(verdict=ReviewVerdict.DISPUTED)) & (
    ~Q(review_flags=[]) | Q(accepted=False) | (Q(enriched__isnull=False) & ~Q(enriched__flags=[]))
)
"""Entities that a person must check, for a reason of any pass, and that wait for a decision."""


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
    counts = {
        encounter: (entities, to_review)
        for encounter, entities, to_review in Entity.objects.filter(shell_file_id=shell_file_id)
        .values("healthcare_encounter_id")
        .annotate(entities=Count("id"), to_review=Count("id", filter=_TO_REVIEW))
        .values_list("healthcare_encounter_id", "entities", "to_review")
    }
    return [
        _row(each, *counts.get(each.id, (0, 0)))
        for each in Encounter.objects.filter(shell_file_id=shell_file_id).order_by(
            "encounter_index"
        )
    ]


def _row(each: Encounter, entities: int, to_review: int) -> EncounterLine:
    first, last = each.page_start, each.page_end
    return EncounterLine(
        number=each.encounter_index,
        encounter_id=str(each.id),
        type=each.encounter_type.replace("_", " "),
        days=EncounterDays(
            number=each.encounter_index,
            first=each.encounter_date_start,
            last=each.encounter_date_end,
        ),
        facility=each.facility_name or "",
        clinician=each.clinician_name or "",
        pages=str(first) if first == last else f"{first}–{last}",
        entities=entities,
        to_review=to_review,
        is_published=each.entities_published_at is not None,
    )
