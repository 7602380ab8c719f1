"""A pass that only tests run: Pass 2 over the zones of a record, one zone for each encounter.

`register` is all that the pass needs outside its stage; a test counts the lines of `register`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast
from uuid import UUID

import pytest
from django.conf import settings
from pydantic import BaseModel

from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode
from pipeline.core.states import WORK_TERMINAL, Step, WorkStatus
from pipeline.core.types import PageSlice
from pipeline.execution import executor
from pipeline.execution.splits import Split
from pipeline.execution.step_result import AllItemsEnded, StepCompleted, StepFailed, StepResult
from pipeline.execution.step_work import AcceptedReply
from pipeline.models import Encounter, ZoneResult, selectors
from pipeline.models.work_tables import WORK_TABLES, WorkTable
from pipeline.providers.base import Request
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import provider_for
from pipeline.providers.prompts import PROMPT_VERSION, estimate_tokens, render_entities
from pipeline.providers.schemas import EntityReply
from pipeline.stages.registry import PASSES
from pipeline.transitions import Failure, Lease, fenced


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the pass to the registry of work items and to the order of the passes."""
    table = WorkTable(
        step=Step.PASS2,
        model=ZoneResult,
        noun="zone",
        task="entities",
        index="zone_index",
        counts=(("entities_enriched", "entity"),),
        encounter="healthcare_encounter",
    )
    monkeypatch.setitem(WORK_TABLES, Step.PASS2, table)
    monkeypatch.setitem(PASSES, Step.PASS2, run)


def run(lease: Lease, deadline: StepDeadline) -> StepResult:
    """Ask about each zone that has not succeeded; the stage publishes nothing of its own."""
    zones = _plan(lease)
    work = _Zones(lease, [zone for zone in zones if zone.status not in WORK_TERMINAL])
    result = executor.run(
        lease,
        work,
        provider_for(ProviderConfig.of_settings()),
        deadline=deadline,
    )
    if not isinstance(result, AllItemsEnded):
        return result
    failed = [zone for zone in zones if zone.status == WorkStatus.FAILED]
    return StepFailed(failure=_failure(failed)) if failed else StepCompleted()


def _plan(lease: Lease) -> list[ZoneResult]:
    with fenced(lease):
        if not ZoneResult.objects.filter(processing_session_id=lease.session_id).exists():
            ZoneResult.objects.bulk_create(
                ZoneResult(
                    healthcare_encounter=encounter,
                    processing_session_id=lease.session_id,
                    zone_index=0,
                    zone_type="other",
                    page_range_start=encounter.page_start,
                    page_range_end=encounter.page_end,
                )
                for encounter in Encounter.objects.filter(shell_file_id=lease.shell_file_id)
            )
    zones = ZoneResult.objects.filter(processing_session_id=lease.session_id)
    return list(zones.order_by("page_range_start"))


def _failure(failed: Sequence[ZoneResult]) -> Failure:
    first = failed[0]
    return Failure(
        code=ErrorCode(first.error_code or ErrorCode.INTERNAL_ERROR),
        message=f"{len(failed)} zones failed",
        encounter_id=first.encounter_id,
    )


class _Zones:
    """The zones as the executor needs them."""

    def __init__(self, lease: Lease, zones: Sequence[ZoneResult]) -> None:
        self._pages = selectors.page_texts(lease.shell_file_id)
        self.rows: Sequence[ZoneResult] = zones
        self.known: Sequence[ZoneResult] = ()
        self.groups: Sequence[Hashable] = [zone.id for zone in zones]

    @property
    def schema(self) -> type[BaseModel]:
        return EntityReply

    def group_of(self, row: ZoneResult) -> Hashable:
        return cast(UUID, row.id)

    def pages_of(self, row: ZoneResult) -> Sequence[int]:
        return range(row.page_range_start, row.page_range_end + 1)

    def size_of(self, split: Split[ZoneResult]) -> int:
        return sum(len(self._pages[n].text) for n in split.pages) // 4

    def request(self, split: Split[ZoneResult]) -> Request:
        slices = [PageSlice(page=n, start=0, text=self._pages[n].text) for n in split.pages]
        prompt = render_entities(split.token, slices, include_zones=False)
        return Request(
            item_token=split.token,
            prompt=prompt,
            schema=EntityReply,
            max_output_tokens=1_000,
            deadline_s=settings.CALL_DEADLINE_S,
            prompt_version=PROMPT_VERSION,
            estimated_input_tokens=estimate_tokens(prompt),
        )

    def accept(self, split: Split[ZoneResult], output: BaseModel) -> AcceptedReply:
        reply = cast(EntityReply, output)
        return AcceptedReply(
            output=reply.model_dump(mode="json"),
            counts={"entities_enriched": len(reply.entities), "attributes_rejected": 0},
        )

    def merge(
        self, row: ZoneResult, outputs: Sequence[tuple[Split[ZoneResult], Mapping[str, Any]]]
    ) -> AcceptedReply:
        found = sum(len(output["entities"]) for _, output in outputs)
        return AcceptedReply(
            output={}, counts={"entities_enriched": found, "attributes_rejected": 0}
        )
