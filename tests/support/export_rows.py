"""Rows of an export in memory, for tests of the formats without a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from pipeline.core.states import Step
from pipeline.exports.rows import (
    EncounterRow,
    EntityRow,
    ListItemRow,
    PageRow,
    RecordRow,
    SentenceRow,
)

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
ENCOUNTER = EncounterRow(
    id=UUID(int=2),
    encounter_index=1,
    encounter_type="office_visit",
    facility_name="Lakeside Clinic",
    clinician_name="Dr. A. Example",
    encounter_date_start=date(2024, 3, 11),
    encounter_date_end=None,
    page_start=1,
    page_end=2,
    entities_published_at=AT,
    no_known_allergies=None,
)
RECORD = RecordRow(
    id=UUID(int=1),
    patient_id=UUID(int=3),
    pseudonym="P-0123456789",
    patient_reference=None,
    media_type="application/pdf",
    size_bytes=1234,
    sha256="0" * 64,
    page_count=2,
    language="en",
    warnings=[],
    submitted_at=AT,
    generation=UUID(int=4),
    taken_at=AT,
    incomplete_note="",
    is_review_closed=False,
    encounters=(ENCOUNTER,),
    prompt_versions={(Step.PASS1, ENCOUNTER.id): ("3",), (Step.PASS2, ENCOUNTER.id): ("3", "4")},
)


def an_entity(number: int = 100, **fields: Any) -> EntityRow:
    """Return an accepted entity of the patient; `fields` replace its values."""
    empty: dict[str, Any] = dict.fromkeys(EntityRow._fields)
    values = {
        "id": UUID(int=number),
        "encounter_id": ENCOUNTER.id,
        "encounter_index": 1,
        "entity_index": number,
        "category": "condition",
        "name": "asthma",
        "page_number": 1,
        "char_start": 0,
        "char_end": 6,
        "quote": "asthma",
        "alignment": "exact",
        "accepted": True,
        "engine": "local-rules-3",
        "engine_confidence": 0.9,
        "confidence": 0.9,
        "review_flags": [],
        "created_at": AT,
    }
    return EntityRow(**{**empty, **values, **fields})


@dataclass
class MemorySource:
    """Rows of one record in memory."""

    record: RecordRow = RECORD
    rows: Sequence[EntityRow] = ()
    page_rows: Sequence[PageRow] = ()
    sentence_rows: Sequence[SentenceRow] = ()
    item_rows: Sequence[ListItemRow] = field(default=())

    def entities(self) -> Iterator[EntityRow]:
        """Yield the entities as given."""
        return iter(self.rows)

    def entities_by_page(self) -> Iterator[EntityRow]:
        """Yield the entities by page."""
        return iter(sorted(self.rows, key=lambda each: (each.page_number, each.char_start or 0)))

    def pages(self) -> Iterator[PageRow]:
        """Yield the pages."""
        return iter(self.page_rows)

    def sentences(self) -> Iterator[SentenceRow]:
        """Yield the sentences."""
        return iter(self.sentence_rows)

    def list_items(self) -> Iterator[ListItemRow]:
        """Yield the entries of the lists."""
        return iter(self.item_rows)


def a_record(**fields: Any) -> RecordRow:
    """Return the record with these values."""
    return replace(RECORD, **fields)
