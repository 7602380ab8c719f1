"""Reads what Passes 1.5 to 3 stored for one record. Needs Django and its database."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from uuid import UUID

from pipeline.core.states import ShellFileStatus
from pipeline.models import ShellFile
from pipeline.models.clinical import EnrichedEntity, NarrativeSentence, RecordListItem
from pipeline.models.codes import CodeCandidate, CodeSystem
from pipeline.models.encounters import Encounter
from pipeline.models.entities import Entity
from samples.clinical.compare import StoredEntity, StoredItem, StoredResults, StoredSentence
from samples.truth import Record


def read(shell_file_id: UUID, record: Record) -> StoredResults:
    """Return the stored results of a record, entities in the order of the text.

    An encounter of another patient is held, so it has no row: the others follow the truth in order.
    Lists are None before Pass 2 has ended, sentences before Pass 3 has ended. Raises ValueError if
    the numbers of encounters differ.
    """
    status = ShellFile.objects.values_list("status", flat=True).get(id=shell_file_id)
    order = Encounter.objects.filter(shell_file_id=shell_file_id).order_by("encounter_index")
    own = (each.index for each in record.encounters if not each.patient_mismatch)
    index = dict(zip(order.values_list("id", flat=True), own, strict=True))
    enriched = {
        row.entity_id: row for row in EnrichedEntity.objects.filter(shell_file_id=shell_file_id)
    }
    shortlists: dict[UUID, list[str]] = defaultdict(list)
    for each in CodeCandidate.objects.filter(shell_file_id=shell_file_id).order_by("rank"):
        shortlists[each.entity_id].append(f"{each.system}|{each.code}")
    items = RecordListItem.objects.filter(shell_file_id=shell_file_id)
    sentences = NarrativeSentence.objects.filter(shell_file_id=shell_file_id)
    return StoredResults(
        entities=[
            _entity(row, index, enriched.get(row.id), shortlists)
            for row in Entity.objects.filter(shell_file_id=shell_file_id).order_by(
                "page_number", "char_start", "entity_index"
            )
        ],
        items=(
            [_item(row) for row in items.order_by("kind", "item_index")]
            if status in (ShellFileStatus.PASS2_COMPLETE, ShellFileStatus.COMPLETED)
            else None
        ),
        sentences=None
        if status != ShellFileStatus.COMPLETED
        else [
            StoredSentence(
                encounter=(
                    None
                    if row.healthcare_encounter_id is None
                    else index[row.healthcare_encounter_id]
                ),
                text=row.text,
                supported=row.supported,
            )
            for row in sentences.order_by("narrative_id", "sentence_index")
        ],
        systems=frozenset(CodeSystem.objects.values_list("key", flat=True)),
    )


def _entity(
    row: Entity,
    index: dict[Any, int],
    enriched: EnrichedEntity | None,
    shortlists: dict[UUID, list[str]],
) -> StoredEntity:
    flags = [*row.review_flags, *(enriched.flags if enriched else [])]
    code = enriched and enriched.code and f"{enriched.code_system}|{enriched.code}"
    return StoredEntity(
        id=row.id,
        encounter=index[row.healthcare_encounter_id],
        category=row.category,
        page=row.page_number,
        name=row.name,
        quote=row.quote,
        value=row.value,
        dose=row.dose,
        step=row.step,
        state=_state(row),
        doubted=bool(flags) or not row.accepted,
        enriched=enriched is not None,
        attributes=enriched.attributes if enriched else {},
        code=code or None,
        candidates=tuple(shortlists[row.id]),
    )


def _item(row: RecordListItem) -> StoredItem:
    return StoredItem(
        kind=row.kind,
        entity_ids=tuple(row.entity_ids),
        contradicted=tuple(
            frozenset(UUID(id_) for id_ in each["entity_ids"]) for each in row.contradictions
        ),
    )


def _state(row: Entity) -> str:
    """Return the one word by which `also.txt` tells what the text says of an entity."""
    if row.experiencer not in (None, "patient"):
        return "family"
    if row.negated:
        return "denied"
    if row.certainty in ("possible", "hypothetical"):
        return str(row.certainty)
    if row.historical or row.temporality == "historical":
        return "past"
    return str(row.status) if row.status not in (None, "active") else "present"
