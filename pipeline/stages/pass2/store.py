"""The rows of Pass 2: the stored plan, the enriched entities, and the lists of the record.

`plan` runs in fenced transactions of its own. Call `conclude` inside the fence that ends the step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings

from pipeline.core.errors import ErrorCode
from pipeline.core.states import WorkStatus
from pipeline.core.types import PageText, Span, slices
from pipeline.models import (
    Batch,
    Encounter,
    EnrichedEntity,
    RecordListItem,
    Session,
    Summary,
    ZoneResult,
    selectors,
)
from pipeline.models.insertion import insert_rows
from pipeline.providers.prompts import estimate_tokens
from pipeline.stages.entity_facts import KnownEntity, entities_by_encounter
from pipeline.stages.pass2.zone_facts import ZoneFacts
from pipeline.stages.pass2.zones import plan_zones
from pipeline.stages.record_warnings import warn
from pipeline.transitions import Lease, fenced


def plan(
    lease: Lease, pages: Mapping[int, PageText]
) -> tuple[dict[UUID, list[ZoneResult]], ZoneFacts]:
    """Return the zones of each encounter in page order, and the entities of the open zones.

    The zones are stored before the first call. A stored plan never changes, even if the settings
    change later.
    """
    zones = _stored(lease)
    facts = ZoneFacts()
    missing = _Planner(lease, pages)
    for encounter, entities in entities_by_encounter(lease.shell_file_id, with_candidates=True):
        by_id = {each.id: each for each in entities}
        if encounter not in zones:
            zones[encounter] = missing.plan(encounter, entities)
        for zone in zones[encounter]:
            if not is_published(zone):
                facts.add(zone, by_id)
    if missing.zones:
        with fenced(lease):
            insert_rows(missing.zones)
    order = Encounter.objects.filter(shell_file_id=lease.shell_file_id).order_by("encounter_index")
    in_order = order.values_list("id", flat=True)
    return {encounter: zones[encounter] for encounter in in_order if encounter in zones}, facts


def is_published(zone: ZoneResult) -> bool:
    """Return whether the enriched entities of a zone are visible."""
    return zone.status == WorkStatus.SUCCEEDED and zone.output is None


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
    bad: Sequence[ZoneResult],
    lists: Sequence[RecordListItem],
) -> None:
    """Replace the lists of the record, and mark the record for a review where needed.

    `bad` are the zones with rejected attributes, also those that an earlier run of the step ended.
    """
    RecordListItem.objects.filter(shell_file_id=lease.shell_file_id).delete()
    RecordListItem.objects.bulk_create(lists, batch_size=500)
    if bad:
        warn(
            lease.shell_file_id,
            ErrorCode.ITEM_REJECTED,
            "Attributes of a reply named no entity of the question and were left out.",
            sorted({p for z in bad for p in range(z.page_range_start, z.page_range_end + 1)}),
            count=sum(zone.attributes_rejected or 0 for zone in bad),
        )
    flagged = EnrichedEntity.objects.filter(shell_file_id=lease.shell_file_id).exclude(flags=[])
    if bad or any(item.contradictions for item in lists) or flagged.exists():
        Session.objects.filter(id=lease.session_id).update(requires_human_review=True)
        Summary.objects.filter(shell_file_id=lease.shell_file_id).update(
            manual_review_required=True
        )


def _stored(lease: Lease) -> dict[UUID, list[ZoneResult]]:
    zones: defaultdict[UUID, list[ZoneResult]] = defaultdict(list)
    rows = ZoneResult.objects.filter(processing_session_id=lease.session_id)
    for zone in rows.order_by("zone_index").iterator(500):
        zone.pack_output()
        zones[zone.healthcare_encounter_id].append(zone)
    return zones


class _Planner:
    """Plans the zones of the encounters that have no stored plan."""

    def __init__(self, lease: Lease, pages: Mapping[int, PageText]) -> None:
        self._lease = lease
        self._pages = dict(pages)
        self.zones: list[ZoneResult] = []
        """The planned zones, not stored yet."""

    def plan(self, encounter: UUID, entities: Sequence[KnownEntity]) -> list[ZoneResult]:
        """Return the zones of an encounter, in the order of the text."""
        planned = plan_zones(
            entities, self._spans.get(encounter, ()), self._batches[encounter], self._pages
        )
        zones = [
            ZoneResult(
                healthcare_encounter_id=encounter,
                processing_session_id=self._lease.session_id,
                zone_index=index,
                zone_type=zone.zone_type,
                entity_ids=list(zone.entity_ids),
                page_range_start=zone.first_page,
                page_range_end=zone.last_page,
                spans=[[s.page, s.start, s.end] for s in zone.spans],
                # The setting has the name of Pass 1, and is for the work items of every pass.
                max_attempts=settings.PASS1_MAX_RETRIES,
                estimated_input_tokens=sum(
                    estimate_tokens(part.text) for part in slices(zone.spans, self._pages)
                ),
            )
            for index, zone in enumerate(planned)
        ]
        self.zones += zones
        return zones

    @cached_property
    def _spans(self) -> Mapping[UUID, Sequence[Span]]:
        return selectors.spans_by_encounter(self._lease.shell_file_id)

    @cached_property
    def _batches(self) -> Mapping[UUID, list[list[Span]]]:
        """The text of each batch of Pass 1, by encounter."""
        found: defaultdict[UUID, list[list[Span]]] = defaultdict(list)
        rows = Batch.objects.filter(processing_session_id=self._lease.session_id)
        stored = rows.order_by("batch_index").values_list("healthcare_encounter_id", "spans")
        for encounter, spans in stored:
            found[encounter].append([Span(*span) for span in spans])
        return found
