"""A record whose results are long in every section, by INSERT alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from pipeline.core.states import JobStatus, Step
from pipeline.models import (
    Encounter,
    EnrichedEntity,
    Entity,
    NarrativeResult,
    NarrativeSentence,
    Page,
    RecordListItem,
    Session,
    ZoneResult,
)
from tests.support.rows import a_job

FIRST_DAY = date(2015, 1, 5)
KINDS = {"problem": "condition", "medication": "medication", "allergy": "allergy"}
"""The lists beside the laboratory series, each with the category of its entities."""


@dataclass(frozen=True, kw_only=True)
class WideResults:
    """The record, and what is marked in it by number."""

    record_id: UUID
    entries: int
    """Entries of each list; each has one entity."""
    encounters: int
    held: int
    """The number of the encounter without results."""
    contradicted: int
    """The number of the medication with contradictions."""
    messages: int
    """Its contradictions."""
    flagged: int
    """The number of the problem with a flag."""
    everywhere: int
    """The number of the allergy that all encounters support."""
    series: int
    """The number of the laboratory series with many results."""
    results: int
    """Its results."""
    doubted: int
    """The number of its result with a flag."""


def a_wide_record(*, entries: int = 45, encounters: int = 30, results: int = 20) -> WideResults:
    """Insert the record: four lists, encounters with narratives, and one long series."""
    job = a_job(step=Step.PASS3, status=JobStatus.COMPLETED)
    found = WideResults(
        record_id=job.shell_file_id, entries=entries, encounters=encounters, held=encounters - 1,
        contradicted=entries - 1, messages=30, flagged=entries - 2, everywhere=entries,
        series=entries, results=results, doubted=3,
    )  # fmt: skip
    rows = _Rows(found, job.shell_file.patient_id)
    Encounter.objects.bulk_create(rows.encounters)
    Page.objects.bulk_create(
        Page(
            shell_file_id=found.record_id, page_number=number, text=f"page {number}",
            source="text_layer", width=612, height=792,
        )
        for number in range(1, encounters + 1)
    )  # fmt: skip
    ZoneResult.objects.bulk_create([rows.zone])
    Entity.objects.bulk_create(rows.entities.values())
    EnrichedEntity.objects.bulk_create(rows.enriched())
    RecordListItem.objects.bulk_create(rows.items())
    narratives = rows.narratives()
    NarrativeResult.objects.bulk_create(narratives)
    NarrativeSentence.objects.bulk_create(rows.sentences(narratives))
    return found


class _Rows:
    """The rows of the record, before their INSERT."""

    def __init__(self, found: WideResults, patient_id: UUID) -> None:
        self.found = found
        self.session = Session.objects.get(shell_file_id=found.record_id)
        self.owners: dict[str, Any] = {"shell_file_id": found.record_id, "patient_id": patient_id}
        self.encounters = [
            Encounter(
                **self.owners,
                encounter_index=number,
                encounter_type="office_visit",
                encounter_date_start=FIRST_DAY + timedelta(days=9 * number),
                facility_name="Larkmead Practice",
                page_start=number,
                page_end=number,
                page_count=1,
                character_count=10,
                entities_published_at=None if number == found.held else timezone.now(),
            )
            for number in range(1, found.encounters + 1)
        ]
        self.entities = {
            (kind, number): self._entity(kind, number)
            for kind in (*KINDS, "lab_series")
            for number in range(1, found.entries + 1)
        }
        self.zone = ZoneResult(
            healthcare_encounter=self.encounters[0],
            processing_session=self.session,
            zone_index=0,
            zone_type="medications",
            page_range_start=1,
            page_range_end=1,
            entity_ids=[],
        )

    def _entity(self, kind: str, number: int) -> Entity:
        name = f"{kind.replace('_', ' ')} {number}"
        return Entity(
            **self.owners,
            healthcare_encounter=self.encounters[number % (self.found.encounters - 2)],
            processing_session=self.session,
            entity_index=number + 1_000 * (*KINDS, "lab_series").index(kind),
            category=KINDS.get(kind, "lab"),
            name=name,
            page_number=1 + number % self.found.encounters,
            char_start=0,
            char_end=len(name),
            quote=name,
            alignment="exact",
            accepted=True,
            engine="local-rules-3",
            engine_confidence=0.9,
            confidence=0.9,
        )

    def _code(self, kind: str, number: int) -> str:
        return f"{(*KINDS, 'lab_series').index(kind)}{number:05}"

    def enriched(self) -> Iterator[EnrichedEntity]:
        for (kind, number), entity in self.entities.items():
            yield EnrichedEntity(
                **self.owners,
                entity=entity,
                healthcare_encounter=entity.healthcare_encounter,
                zone_result=self.zone,
                category=entity.category,
                attributes={},
                code_system="SNOMED",
                code=self._code(kind, number),
                code_display=entity.name,
                flags=["code_uncertain"]
                if (kind, number) == ("problem", self.found.flagged)
                else [],
                engine="local-rules-3",
            )

    def items(self) -> Iterator[RecordListItem]:
        for (kind, number), entity in self.entities.items():
            supporting = [entity.healthcare_encounter_id]
            if (kind, number) == ("allergy", self.found.everywhere):
                supporting = [each.id for each in self.encounters]
            yield RecordListItem(
                **self.owners,
                kind=kind,
                item_index=number - 1,
                name=entity.name,
                code_system="SNOMED",
                code=self._code(kind, number),
                summary=self._summary(kind, number, entity),
                entity_ids=[entity.id],
                encounter_ids=supporting,
                contradictions=[
                    {"kind": "two_doses", "message": f"doses of day {n} differ", "entity_ids": []}
                    for n in range(1, self.found.messages + 1)
                    if (kind, number) == ("medication", self.found.contradicted)
                ],
            )

    def _summary(self, kind: str, number: int, entity: Entity) -> dict[str, Any]:
        said: dict[str, Any] = {"first_seen": "2015-01-05", "last_seen": "2018-02-03"}
        if kind == "lab_series":
            many = number == self.found.series
            said["groups"] = [
                {
                    "unit": "mmol/L",
                    "values": [
                        self._result(n, entity, is_doubted=many and n == self.found.doubted)
                        for n in range(1, (self.found.results if many else 2) + 1)
                    ],
                }
            ]
        if (kind, number) == ("problem", self.found.flagged):
            said["flags"] = ["code_uncertain"]
        return said

    def _result(self, number: int, entity: Entity, *, is_doubted: bool) -> dict[str, Any]:
        said: dict[str, Any] = {
            "date": (FIRST_DAY + timedelta(days=number)).isoformat(),
            "entity_id": str(entity.id),
            "number": str(number),
            "printed": str(number),
        }
        return {**said, "flags": ["unit_unknown"]} if is_doubted else said

    def narratives(self) -> list[NarrativeResult]:
        return [
            NarrativeResult(
                id=uuid4(),
                healthcare_encounter=encounter,
                processing_session=self.session,
                narrative_index=index,
                page_range_start=1,
                page_range_end=1,
                entity_ids=[],
            )
            for index, encounter in enumerate((*self.encounters, None))
        ]

    def sentences(self, narratives: list[NarrativeResult]) -> Iterator[NarrativeSentence]:
        cited = [each.id for (kind, _), each in self.entities.items() if kind == "problem"][:10]
        for narrative in narratives:
            for index in range(12):
                yield NarrativeSentence(
                    narrative=narrative,
                    shell_file_id=self.found.record_id,
                    healthcare_encounter_id=narrative.healthcare_encounter_id,
                    sentence_index=index,
                    text=f"Sentence {index} of narrative {narrative.narrative_index}.",
                    entity_ids=cited,
                    supported=True,
                )
