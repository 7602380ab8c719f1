"""The stage of Pass 1: all batches run in parallel, and each encounter is all or nothing.

An encounter is published in the flush in which its last batch ends. A failed encounter does not
stop the other encounters.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from pydantic import BaseModel

from pipeline.core.deadline import StepDeadline
from pipeline.core.errors import ErrorCode
from pipeline.core.labels import counted, ended_with, pages
from pipeline.core.states import WORK_TERMINAL, WorkStatus
from pipeline.core.types import PageText
from pipeline.execution import executor
from pipeline.execution.attachments import Shown, Source, source_of
from pipeline.execution.heartbeat import call_with_lease
from pipeline.execution.splits import Split
from pipeline.execution.step_result import (
    AllItemsEnded,
    StepCompleted,
    StepFailed,
    StepResult,
)
from pipeline.execution.step_work import AcceptedReply
from pipeline.models import Batch, Encounter, EncounterResult, selectors
from pipeline.providers.base import Request
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import provider_for
from pipeline.providers.local import LocalProvider
from pipeline.providers.prompts import estimate_tokens, render_entities
from pipeline.providers.schemas import EntityReply
from pipeline.stages.pass1 import store
from pipeline.stages.pass1.entity_rows import EncounterText, entity_rows
from pipeline.stages.pass1.second_reader import SecondReader, Slices
from pipeline.stages.provider_passes import call_request
from pipeline.transitions import Failure, Flush, Lease

MAX_OUTPUT_TOKENS = 32_768
"""Half of the model's output limit; a ten-page batch of tables needs about 12,000 tokens."""


def run(lease: Lease, deadline: StepDeadline) -> StepResult:
    """Detect the entities of every encounter that is not published yet."""
    pages = selectors.page_texts(lease.shell_file_id)
    spans = selectors.spans_by_encounter(lease.shell_file_id)
    plan = store.plan(lease, spans, pages)
    with source_of(lease.shell_file_id, partial(call_with_lease, lease, deadline)) as source:
        work = BatchWork(lease, pages, plan, source)
        result = executor.run(
            lease,
            work,
            provider_for(ProviderConfig.of_settings()),
            deadline=deadline,
            publisher=work,
        )
    if not isinstance(result, AllItemsEnded):
        return result
    failed = [r for r in plan.results if r.status == WorkStatus.FAILED]

    def publish() -> None:
        store.conclude(lease, plan)

    if failed:
        return StepFailed(failure=_failure(plan, failed), publish=publish, is_of_items=True)
    return StepCompleted(publish=publish)


class BatchWork:
    """The batches of a record as the executor needs them; publishes their encounters."""

    def __init__(
        self,
        lease: Lease,
        pages: Mapping[int, PageText],
        plan: store.RecordPlan,
        source: Source | None = None,
    ) -> None:
        self._lease = lease
        self._pages = pages
        self._source = source
        self._plan = plan
        self._results = {result.id: result for result in plan.results}
        self._texts = {
            result.id: EncounterText.of(plan.batches[result.id], pages) for result in plan.results
        }
        self._overhead = estimate_tokens(
            render_entities("", (), include_zones=not settings.PASS1_DISABLE_ZONES)
        )
        self._second = SecondReader()
        self._began = timezone.now()
        # A failed encounter stays failed until an operator retries the encounter.
        open_results = [r for r in plan.results if r.status not in WORK_TERMINAL]
        open_batches = [b for r in open_results for b in plan.batches[r.id]]
        self.groups: Sequence[Hashable] = [r.id for r in open_results]
        self.rows: Sequence[Batch] = [b for b in open_batches if b.status not in WORK_TERMINAL]
        self.known: Sequence[Batch] = [b for b in open_batches if b.status == WorkStatus.SUCCEEDED]

    def group_of(self, row: Batch) -> Hashable:
        return row.pass1_encounter_result_id

    @property
    def schema(self) -> type[BaseModel]:
        return EntityReply

    def pages_of(self, row: Batch) -> Sequence[int]:
        return self._texts[row.pass1_encounter_result_id].pages_of(row.batch_index)

    def size_of(self, split: Split[Batch]) -> int:
        text = self._texts[split.row.pass1_encounter_result_id]
        if self._source is not None:
            slices = text.slices(split.row.batch_index, split.pages)
            return self._overhead + self._source.size_of_whole_pages(slices, self._pages)
        spans = text.part(split.row.batch_index, split.pages).spans
        return self._overhead + sum(map(len, spans)) // 4

    def request(self, split: Split[Batch]) -> Request:
        row = split.row
        slices = self._texts[row.pass1_encounter_result_id].slices(row.batch_index, split.pages)
        shown = Shown(slices=slices)
        if self._source is not None:
            shown = self._source.whole_pages(slices, self._pages)
        prompt = render_entities(
            split.token,
            shown.slices,
            include_zones=not settings.PASS1_DISABLE_ZONES,
        )
        return call_request(
            split.token, prompt, shown, schema=EntityReply, max_output_tokens=MAX_OUTPUT_TOKENS
        )

    def accept(self, split: Split[Batch], output: BaseModel) -> AcceptedReply:
        reply = cast(EntityReply, output)
        # The second reader judges the entities of a reply, and nothing else.
        if reply.entities and LocalProvider.name != settings.MEDPROC_PROVIDER:
            self._second.prepare(split.row.id, self._slices_of(split.row))
        return _accepted(reply)

    def merge(
        self, row: Batch, outputs: Sequence[tuple[Split[Batch], Mapping[str, Any]]]
    ) -> AcceptedReply:
        replies = [EntityReply.model_validate(output) for _, output in outputs]
        return _accepted(
            EntityReply(
                item_token=row.id.hex,
                language=replies[0].language,
                unsupported_pages=sorted({p for r in replies for p in r.unsupported_pages}),
                no_known_allergies=store.joint_no_known_allergies(replies),
                entities=[entity for reply in replies for entity in reply.entities],
                zones=[zone for reply in replies for zone in reply.zones],
                items_rejected=sum(reply.items_rejected for reply in replies),
            )
        )

    def start(self, row: Batch, flush: Flush) -> None:
        result = self._results[row.pass1_encounter_result_id]
        if result.status == WorkStatus.PROCESSING:
            return
        store.mark_started(result)
        flush.parents.append(store.result_row(result))

    def settle(self, group: Hashable, flush: Flush) -> Sequence[UUID]:
        result = self._results[cast(UUID, group)]
        batches = self._plan.batches[result.id]
        failed = [b for b in batches if b.status == WorkStatus.FAILED]
        store.add_up(result, batches, self._began)
        if failed:
            self._second.forget(batches)
            store.mark_failed(result, batches, failed)
            flush.parents.append(store.result_row(result))
            return ()
        replies = [EntityReply.model_validate(b.unpacked_output) for b in batches]
        text = self._texts[result.id]
        entities = entity_rows(
            self._lease,
            result,
            batches,
            replies,
            text,
            self._pages,
            lambda index: self._second.take(batches[index], self._slices_of(batches[index])),
        )
        self._second.forget(batches)
        store.mark_succeeded(result, batches, replies, entities, self._pages)
        flush.parents.append(store.result_row(result))
        flush.results.extend(entities)
        return [batch.id for batch in batches]

    def _slices_of(self, row: Batch) -> Slices:
        text = self._texts[row.pass1_encounter_result_id]
        return lambda: text.slices(row.batch_index)

    def refuse(self, group: Hashable, code: ErrorCode, flush: Flush) -> None:
        result = self._results[cast(UUID, group)]
        store.mark_refused(result, code)
        flush.parents.append(store.result_row(result))


def _accepted(reply: EntityReply) -> AcceptedReply:
    return AcceptedReply(
        output=reply.model_dump(mode="json", exclude_defaults=True),
        counts={"entities_detected": len(reply.entities), "zones_detected": len(reply.zones)},
    )


def _first_in_words(plan: store.RecordPlan, first: EncounterResult, batch: Batch | None) -> str:
    """Return `encounter 2 (pages 6–10): API_5XX ×3`, counted from 1."""
    encounter = Encounter.objects.get(id=first.healthcare_encounter_id)
    name = f"encounter {encounter.encounter_index}"
    if batch is None:
        where = pages(range(encounter.page_start, encounter.page_end + 1))
        return f"{name} ({where}): {first.error_summary}"
    total = len(plan.batches[first.id])
    unit = f", batch {batch.batch_index + 1} of {total}" if total > 1 else ""
    where = pages(range(batch.page_range_start, batch.page_range_end + 1))
    why = ended_with(batch.error_code, batch.error_message, batch.error_context)
    return f"{name}{unit} ({where}): {why}"


def _failure(plan: store.RecordPlan, failed: Sequence[EncounterResult]) -> Failure:
    first = store.first_failed(plan, failed)
    broken = store.broken_batches(plan, failed)
    batch = next(iter(b for b in broken if b.pass1_encounter_result_id == first.id), None)
    context = (batch.error_context if batch else None) or {}
    code = ErrorCode(first.error_code or ErrorCode.INTERNAL_ERROR)
    return Failure(
        code=code,
        message=f"{_first_in_words(plan, first, batch)};"
        f" {len(failed)} of {counted(len(plan.results), 'encounter')} failed",
        encounter_id=first.healthcare_encounter_id,
        batch_index=batch.batch_index if batch else None,
        underlying=ErrorCode(context.get("final_underlying_error", code)),
        attempt_history=context.get("attempt_history", []),
    )
