"""Rows of Passes 1.5 to 3 about one encounter, by INSERT alone."""

from __future__ import annotations

from uuid import UUID

from pipeline.models import (
    CodeCandidate,
    Encounter,
    EnrichedEntity,
    Entity,
    NarrativeResult,
    NarrativeSentence,
    RecordListItem,
    Session,
    ZoneResult,
)

SUPPORTED = "The patient was taking metoprolol 25 mg."
UNSUPPORTED = "The patient was taking metoprolol 250 mg."
CONTRADICTION = "metoprolol: 25 mg and 50 mg on 2024-05-02"


def clinical_rows(encounter: Encounter, *, name: str = "metoprolol") -> Entity:
    """Insert an entity on page 1 with its attributes, shortlist, zone, list entry and narrative."""
    record_id: UUID = encounter.shell_file_id
    session = Session.objects.get(shell_file_id=record_id)
    owners = {"shell_file_id": record_id, "patient_id": encounter.patient_id}
    entity = Entity.objects.create(
        **owners,
        healthcare_encounter=encounter,
        processing_session=session,
        entity_index=Entity.objects.filter(healthcare_encounter=encounter).count(),
        category="medication",
        name=name,
        page_number=1,
        char_start=0,
        char_end=len(name),
        quote=name,
        alignment="exact",
        accepted=True,
        engine="local-rules-3",
        engine_confidence=0.9,
        confidence=0.9,
    )
    zone = ZoneResult.objects.create(
        healthcare_encounter=encounter,
        processing_session=session,
        zone_index=ZoneResult.objects.filter(healthcare_encounter=encounter).count(),
        zone_type="medications",
        page_range_start=1,
        page_range_end=1,
        entity_ids=[entity.id],
    )
    EnrichedEntity.objects.create(
        **owners,
        entity=entity,
        healthcare_encounter=encounter,
        zone_result=zone,
        category="medication",
        attributes={
            "dose": {"printed": "25mg", "number": "25", "unit": "mg"},
            "timing": {"printed": "BID", "frequency": "2", "period": "1", "period_unit": "d"},
        },
        code_system="RXNORM",
        code="6918",
        code_display="metoprolol",
        flags=["disputed:route", "not_grounded:route", "dose_not_understood"],
        second_reading={"route": "intravenous"},
        engine="local-rules-3",
    )
    for rank, (code, display) in enumerate([("6918", "metoprolol"), ("1202", "atenolol")], 1):
        CodeCandidate.objects.create(
            shell_file_id=record_id,
            healthcare_encounter=encounter,
            entity=entity,
            rank=rank,
            system="RXNORM",
            system_version="2024-01",
            code=code,
            display=display,
            score=1 / rank,
            reason="1 of 1 words",
        )
    RecordListItem.objects.create(
        **owners,
        kind="medication",
        item_index=RecordListItem.objects.filter(shell_file_id=record_id).count(),
        name=name,
        code_system="RXNORM",
        code="6918",
        summary={"flags": ["code_uncertain"], "last_seen": "2024-05-02"},
        entity_ids=[entity.id],
        encounter_ids=[encounter.id],
        contradictions=[
            {"kind": "two_doses", "message": CONTRADICTION, "entity_ids": [str(entity.id)]}
        ],
    )
    narrative = NarrativeResult.objects.create(
        healthcare_encounter=encounter,
        processing_session=session,
        narrative_index=NarrativeResult.objects.filter(processing_session=session).count(),
        page_range_start=1,
        page_range_end=1,
        entity_ids=[entity.id],
    )
    for index, text in enumerate((SUPPORTED, UNSUPPORTED)):
        NarrativeSentence.objects.create(
            narrative=narrative,
            shell_file_id=record_id,
            healthcare_encounter=encounter,
            sentence_index=index,
            text=text,
            entity_ids=[entity.id],
            supported=text == SUPPORTED,
            reasons=[] if text == SUPPORTED else ["number:250"],
        )
    return entity
