"""The rows of Pass 2: the stored plan, the enriched entities, and the lists of the record.

`plan` runs in fenced transactions of its own. Call `conclude` inside the fence that ends the step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings

from pipeline.core.errors import ErrorCode
from pipeline.core.types import PageText, Span, slices
from pipeline.models import (
    Batch,
    Encounter,
    RecordListItem,
    Session,
    ShellFile,
    Summary,
    ZoneResult,
    selectors,
)
from pipeline.providers.prompts import estimate_tokens
from pipeline.stages.entity_facts import EntitiesByEncounter
from pipeline.stages.pass2.zones import plan_zones
from pipeline.stages.record_warnings import warn
from pipeline.transitions import Lease, fenced


def plan(
    lease: Lease, entities: EntitiesByEncounter, pages: Mapping[int, PageText]
) -> dict[UUID, list[ZoneResult]]:
    """Return the zones of each encounter in page order; they are stored before the first call.

    A stored plan never changes, even if the settings change later.
    """
    stored = _stored(lease)
    missing = [encounter for encounter in entities if encounter not in stored]
    if missing:
        _store_plan(lease, missing, entities, pages)
        stored = _stored(lease)
    order = Encounter.objects.filter(shell_file_id=lease.shell_file_id).order_by("encounter_index")
    return {
        encounter: stored[encounter]
        for encounter in order.values_list("id", flat=True)
        if encounter in stored
    }


def enriched_row(lease: Lease, zone: ZoneResult, patient_id: UUID, found: Mapping[str, Any]) -> Any:
    """Return one enriched entity of a zone's output as a row of a flush."""
    code = found["code"]
    return {
        "id": str(uuid4()),
        "entity_id": found["id"],
        "shell_file_id": str(lease.shell_file_id),
        "healthcare_encounter_id": str(zone.healthcare_encounter_id),
        "zone_result_id": str(zone.id),
        "patient_id": str(patient_id),
        "category": found["category"],
        "attributes": found["attributes"],
        "code_system": code and code["system"],
        "code": code and code["code"],
        "code_display": code and code["display"],
        "flags": found["flags"],
        "second_reading": found["second_reading"],
        "engine": zone.ai_model_used or "",
    }


def conclude(
    lease: Lease,
    zones: Sequence[ZoneResult],
    lists: Sequence[RecordListItem],
) -> None:
    """Replace the lists of the record, and mark the record for a review where needed."""
    RecordListItem.objects.filter(shell_file_id=lease.shell_file_id).delete()
    RecordListItem.objects.bulk_create(lists, batch_size=500)
    # The zones hold the counts: some encounters were published by an earlier run of the step.
    bad = [zone for zone in zones if zone.attributes_rejected]
    if bad:
        warn(
            lease.shell_file_id,
            ErrorCode.ITEM_REJECTED,
            "Attributes of a reply named no entity of the question and were left out.",
            sorted({p for z in bad for p in range(z.page_range_start, z.page_range_end + 1)}),
            count=sum(zone.attributes_rejected or 0 for zone in bad),
        )
    flagged = ShellFile.objects.filter(id=lease.shell_file_id).filter(
        enriched_entities__flags__len__gt=0
    )
    if bad or any(item.contradictions for item in lists) or flagged.exists():
        Session.objects.filter(id=lease.session_id).update(requires_human_review=True)
        Summary.objects.filter(shell_file_id=lease.shell_file_id).update(
            manual_review_required=True
        )


def _stored(lease: Lease) -> dict[UUID, list[ZoneResult]]:
    zones: defaultdict[UUID, list[ZoneResult]] = defaultdict(list)
    rows = ZoneResult.objects.filter(processing_session_id=lease.session_id)
    for zone in rows.order_by("zone_index"):
        zones[zone.healthcare_encounter_id].append(zone)
    return zones


def _store_plan(
    lease: Lease,
    encounters: Sequence[UUID],
    entities: EntitiesByEncounter,
    pages: Mapping[int, PageText],
) -> None:
    spans = selectors.spans_by_encounter(lease.shell_file_id)
    batches: defaultdict[UUID, list[list[Span]]] = defaultdict(list)
    rows = Batch.objects.filter(processing_session_id=lease.session_id).order_by("batch_index")
    for encounter, stored in rows.values_list("healthcare_encounter_id", "spans"):
        batches[encounter].append([Span(*span) for span in stored])
    zones = [
        ZoneResult(
            healthcare_encounter_id=encounter,
            processing_session_id=lease.session_id,
            zone_index=index,
            zone_type=zone.zone_type,
            entity_ids=list(zone.entity_ids),
            page_range_start=zone.first_page,
            page_range_end=zone.last_page,
            spans=[[s.page, s.start, s.end] for s in zone.spans],
            # The setting has the name of Pass 1, and is for the work items of every pass.
            max_attempts=settings.PASS1_MAX_RETRIES,
            estimated_input_tokens=sum(
                estimate_tokens(part.text) for part in slices(zone.spans, dict(pages))
            ),
        )
        for encounter in encounters
        for index, zone in enumerate(
            plan_zones(entities[encounter], spans.get(encounter, ()), batches[encounter], pages)
        )
    ]
    with fenced(lease):
        ZoneResult.objects.bulk_create(zones, batch_size=500)
