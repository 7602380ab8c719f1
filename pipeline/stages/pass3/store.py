"""The rows of Pass 3: the stored plan, the sentences, and the mark for a review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings

from pipeline.models import (
    Encounter,
    NarrativeResult,
    NarrativeSentence,
    RecordListItem,
    Session,
    Summary,
)
from pipeline.models.insertion import insert_rows
from pipeline.stages.entity_facts import EntitiesByEncounter, KnownEntity
from pipeline.stages.pass3.selection import chosen, citable
from pipeline.transitions import Lease, fenced

TOKENS_PER_ENTITY = 120
"""Estimated input tokens of one entity in a prompt."""


def plan(lease: Lease, entities: EntitiesByEncounter) -> list[NarrativeResult]:
    """Return the narratives of a record, the record's own last; stored before the first call.

    An encounter without an entity to cite has no narrative, and neither has such a record.
    """
    rows = NarrativeResult.objects.filter(processing_session_id=lease.session_id)
    stored = list(rows.order_by("narrative_index"))
    if stored:
        return stored
    encounters = list(
        Encounter.objects.filter(shell_file_id=lease.shell_file_id).order_by("encounter_index")
    )
    told: list[tuple[Encounter | None, list[KnownEntity]]] = [
        (encounter, chosen(citable(entities.get(encounter.id, ())))) for encounter in encounters
    ]
    told.append((None, _of_record(lease, entities)))
    whole = (
        (min(e.page_start for e in encounters), max(e.page_end for e in encounters))
        if (encounters)
        else (1, 1)
    )
    narratives = [
        NarrativeResult(
            healthcare_encounter=encounter,
            processing_session_id=lease.session_id,
            narrative_index=index,
            page_range_start=encounter.page_start if encounter else whole[0],
            page_range_end=encounter.page_end if encounter else whole[1],
            entity_ids=[each.id for each in cited],
            # The setting has the name of Pass 1, and is for the work items of every pass.
            max_attempts=settings.PASS1_MAX_RETRIES,
            estimated_input_tokens=TOKENS_PER_ENTITY * len(cited),
        )
        for index, (encounter, cited) in enumerate(pair for pair in told if pair[1])
    ]
    with fenced(lease):
        insert_rows(narratives)
    return narratives


def sentence_row(
    lease: Lease, narrative: NarrativeResult, index: int, told: Mapping[str, Any]
) -> Any:
    """Return one sentence of a narrative's output as a row of a flush."""
    encounter = narrative.healthcare_encounter_id
    return {
        "id": str(uuid4()),
        "narrative_id": str(narrative.id),
        "shell_file_id": str(lease.shell_file_id),
        "healthcare_encounter_id": str(encounter) if encounter else None,
        "sentence_index": index,
        "text": told["text"],
        "entity_ids": told["entity_ids"],
        "supported": told["supported"],
        "reasons": told["reasons"],
    }


def conclude(lease: Lease, narratives: Sequence[NarrativeResult]) -> None:
    """Mark the record for a review if a sentence is not supported."""
    if any(narrative.sentences_unsupported for narrative in narratives):
        Session.objects.filter(id=lease.session_id).update(requires_human_review=True)
        Summary.objects.filter(shell_file_id=lease.shell_file_id).update(
            manual_review_required=True
        )


def written(lease: Lease) -> set[UUID]:
    """Return the narratives whose sentences are stored."""
    rows = NarrativeSentence.objects.filter(shell_file_id=lease.shell_file_id)
    return set(rows.order_by().values_list("narrative_id", flat=True).distinct())


def _of_record(lease: Lease, entities: EntitiesByEncounter) -> list[KnownEntity]:
    """Return the supporting entities of the newest day of each entry of the record's lists.

    Two doses on one day contradict each other, so the narrative is given both.
    """
    known = {each.id: each for of in entities.values() for each in citable(of)}
    found: dict[UUID, KnownEntity] = {}
    items = RecordListItem.objects.filter(shell_file_id=lease.shell_file_id)
    for supporting in items.order_by("kind", "item_index").values_list("entity_ids", flat=True):
        own = [known[each] for each in supporting if each in known]
        if own:
            day = max(map(_day, own))
            newest = [each for each in own if _day(each) == day]
            # The same medication with the same dose needs one entity; another dose needs its own.
            last = {(e.facts.category, e.facts.dose, e.facts.value): e for e in newest}
            found |= {each.id: each for each in last.values()}
    return chosen(list(found.values()))


def _day(each: KnownEntity) -> str:
    day = each.facts.entity_date or each.facts.encounter_date
    return day.isoformat() if day else ""
