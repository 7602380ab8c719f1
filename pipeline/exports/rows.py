"""The rows of one snapshot, frozen: a record with its encounters, entities, pages and sentences.

The formats know only these rows. Offsets are 0-based code points of the page's text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

from pipeline.core.labels import pages
from pipeline.core.states import Step
from pipeline.models.entities import RESULTS, ReviewVerdict


class EncounterRow(NamedTuple):
    """One encounter."""

    id: UUID
    encounter_index: int
    encounter_type: str
    facility_name: str | None
    clinician_name: str | None
    encounter_date_start: date | None
    encounter_date_end: date | None
    page_start: int
    page_end: int
    entities_published_at: datetime | None
    no_known_allergies: bool | None
    """Whether the text states that the patient has no known allergies; None if not stated."""


class EntityRow(NamedTuple):
    """One entity with its quote, and the attributes and the code of Pass 2."""

    id: UUID
    encounter_id: UUID
    encounter_index: int
    entity_index: int
    category: str
    name: str
    page_number: int
    char_start: int | None
    char_end: int | None
    page_end: int | None
    quote: str
    alignment: str
    accepted: bool
    verdict: str | None
    """What a reviewer decided (`ReviewVerdict`); a rejected entity is not accepted."""
    value: str | None
    unit: str | None
    reference_range: str | None
    abnormal_flag: str | None
    strength: str | None
    dose: str | None
    previous_dose: str | None
    route: str | None
    frequency: str | None
    status: str | None
    step: int | None
    reaction: str | None
    entity_date: date | None
    negated: bool | None
    temporality: str | None
    certainty: str | None
    experiencer: str | None
    zone_type: str | None
    engine: str
    rule: str | None
    engine_confidence: float
    ocr_confidence: float | None
    confidence: float
    review_flags: Sequence[str]
    second_reading: Mapping[str, Any] | None
    created_at: datetime
    attributes: Mapping[str, Any] | None
    """None if Pass 2 has no row of the entity."""
    code_system: str | None
    code: str | None
    code_display: str | None
    enrichment_flags: Sequence[str] | None
    enrichment_second_reading: Mapping[str, Any] | None
    enrichment_engine: str | None

    @property
    def is_rejected(self) -> bool:
        """Whether a reviewer found that the record does not state the entity."""
        return self.verdict == ReviewVerdict.REJECTED

    @property
    def is_doubted(self) -> bool:
        """Whether a flag counts; the verdict of a reviewer overrules the flags."""
        return bool(self.flags) and self.verdict not in _DECIDED

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of Pass 1, then those of Pass 2."""
        return (*self.review_flags, *(self.enrichment_flags or ()))


class PageRow(NamedTuple):
    """The text of one page."""

    page_number: int
    text: str
    """Text that names, or may belong to, another patient is blank; offsets stay."""
    source: str
    is_held: bool = False
    """Whether a part of the text is blank for that reason."""


class SentenceRow(NamedTuple):
    """One supported sentence of a narrative."""

    id: UUID
    encounter_index: int | None
    """None for the narrative of the record."""
    sentence_index: int
    text: str
    entity_ids: Sequence[UUID]


class ListItemRow(NamedTuple):
    """One entry of a list across encounters."""

    id: UUID
    kind: str
    item_index: int
    name: str
    code_system: str | None
    code: str | None
    summary: Mapping[str, Any]
    entity_ids: Sequence[UUID]
    encounter_ids: Sequence[UUID]
    contradictions: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class RecordRow:
    """The record, and what each format says about it."""

    id: UUID
    patient_id: UUID
    pseudonym: str
    patient_reference: str | None
    media_type: str
    size_bytes: int
    sha256: str
    page_count: int | None
    language: str | None
    warnings: Sequence[Mapping[str, Any]]
    submitted_at: datetime
    generation: UUID
    """The id of this export; both files of a pair carry the same."""
    taken_at: datetime
    """The time of the snapshot, by the database's clock."""
    incomplete_note: str
    """`Record incomplete: …`, or "" for a record whose pipeline has finished with no failure."""
    is_review_closed: bool
    encounters: tuple[EncounterRow, ...]
    prompt_versions: Mapping[tuple[Step, UUID], tuple[str, ...]]
    """Prompt versions of a pass for an encounter; empty if they are not known any more."""

    @property
    def is_incomplete(self) -> bool:
        """Whether results of the record are missing."""
        return bool(self.incomplete_note)

    @property
    def warnings_in_words(self) -> tuple[str, ...]:
        """The warnings of the record, each with its pages."""
        return tuple(map(_in_words, self.warnings))

    @property
    def notices(self) -> tuple[str, ...]:
        """The sentences that every format shows first."""
        reviewed = "" if self.is_review_closed else NOT_REVIEWED
        return tuple(filter(None, (self.incomplete_note, reviewed)))


def _in_words(warning: Mapping[str, Any]) -> str:
    found = warning.get("pages")
    return f"{warning['message']} ({pages(found)})" if found else str(warning["message"])


NOT_REVIEWED = "Written by a machine. Not reviewed by a person."


def is_reviewed(record: RecordRow, entity: EntityRow) -> bool:
    """Return whether a person has decided about the entity, or closed the review of its record.

    This is the one place that decides about the review of an entity.
    """
    return record.is_review_closed or entity.verdict in _DECIDED


_DECIDED = (*RESULTS, ReviewVerdict.REJECTED)
"""A disputed entity waits for another decision."""
