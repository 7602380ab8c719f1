"""The workers of the job machine as the model sees them, and the rows of their steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pipeline.core.states import Step, WorkStatus
from pipeline.models import (
    Batch,
    EncounterResult,
    EnrichedEntity,
    Entity,
    NarrativeResult,
    NarrativeSentence,
    ZoneResult,
)
from pipeline.models.work_item import WorkItem
from pipeline.stages.pass2.store import enriched_row
from pipeline.stages.pass3.store import sentence_row
from pipeline.transitions import Flush, Lease

ITEMS = 2
"""Batches, zones and narratives of each record."""


@dataclass(eq=False)
class MachineWorker:
    """A step as its process sees it; the process may have lost the lease long ago."""

    lease: Lease
    result: EncounterResult
    items: list[Any]
    """Batches, zones or narratives; none in Pass 1.5."""
    written: list[Flush] = field(default_factory=list)

    @property
    def has_failed(self) -> bool:
        """Whether an item of the step has failed for good."""
        return any(item.status == WorkStatus.FAILED for item in self.items)

    @property
    def is_done(self) -> bool:
        """Whether the step can complete."""
        if self.lease.step is Step.PASS05:
            return True
        return all(item.status == WorkStatus.SUCCEEDED for item in self.items)


@dataclass
class Truth:
    """The model's knowledge of a job."""

    holder: MachineWorker | None = None
    expires: int = 0
    crashes: int = 0
    is_cancelling: bool = False
    committed: dict[UUID, Any] = field(default_factory=dict)


def plan_later_passes(result: EncounterResult) -> None:
    """Insert the zones of an encounter, its narrative, and the narrative of the record."""
    for index in range(ITEMS):
        shared: dict[str, Any] = {
            "processing_session_id": result.processing_session_id,
            "page_range_start": 1,
            "page_range_end": ITEMS,
        }
        ZoneResult.objects.create(
            healthcare_encounter_id=result.healthcare_encounter_id, zone_index=index, **shared
        )
        NarrativeResult.objects.create(
            healthcare_encounter_id=None if index else result.healthcare_encounter_id,
            narrative_index=index,
            **shared,
        )


def items_of(lease: Lease) -> list[Any]:
    """Return the work items of a step in order; those of Pass 1 in Pass 0.5 too."""
    if lease.step is Step.PASS1_5:
        return []
    models: dict[Step, tuple[type[WorkItem], str]] = {
        Step.PASS2: (ZoneResult, "zone_index"),
        Step.PASS3: (NarrativeResult, "narrative_index"),
    }
    model, order = models.get(lease.step, (Batch, "batch_index"))
    rows = model._default_manager.filter(processing_session_id=lease.session_id)
    return list(rows.order_by(order))


def an_enriched_entity(lease: Lease, zone: ZoneResult, entity: Entity) -> Any:
    """Return the row of an enriched entity of a zone."""
    return enriched_row(
        lease,
        zone,
        entity.patient_id,
        {
            "id": str(entity.id),
            "category": entity.category,
            "attributes": {},
            "code": None,
            "flags": [],
            "second_reading": None,
        },
    )


def a_sentence(lease: Lease, narrative: NarrativeResult, index: int) -> Any:
    """Return the row of a sentence of a narrative."""
    told = {"text": "A test.", "entity_ids": [], "supported": False, "reasons": ["not_cited"]}
    return sentence_row(lease, narrative, index, told)


def assert_later_results(published: set[UUID], *, entities: int, sentences: int) -> None:
    """Check that the results of Passes 2 and 3 are all or none, and in order.

    `published` are the encounters whose entities are visible; the figures are those of a whole
    encounter and of a whole narrative.
    """
    zones = Counter(
        ZoneResult.objects.filter(status=WorkStatus.SUCCEEDED).values_list(
            "healthcare_encounter_id", flat=True
        )
    )
    assert zones.keys() <= published, "a zone ran before the entities of its encounter"
    enriched = EnrichedEntity.objects.values_list(
        "healthcare_encounter_id", "entity__healthcare_encounter_id"
    )
    whole = [encounter for encounter, count in zones.items() if count == ITEMS]
    assert Counter(enriched) == {(each, each): entities for each in whole}
    told = Counter(NarrativeSentence.objects.values_list("narrative_id", flat=True))
    written = NarrativeResult.objects.filter(status=WorkStatus.SUCCEEDED)
    assert told == {narrative.id: sentences for narrative in written}
    sessions = ZoneResult.objects.filter(healthcare_encounter_id__in=whole)
    assert {n.processing_session_id for n in written} <= {
        zone.processing_session_id for zone in sessions
    }, "a narrative was written before its entities were enriched"
