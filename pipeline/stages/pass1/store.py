"""The rows of Pass 1: the stored plan, the state of each encounter, and the record's warnings.

`plan` runs in a fenced transaction of its own. Call `conclude` inside the fence that ends the
step. The `mark_…` functions change objects in memory only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from pipeline.core import labels
from pipeline.core.errors import ErrorCode
from pipeline.core.states import WorkStatus
from pipeline.core.types import PageSlice, PageText, Span, slices
from pipeline.execution.splits import pages_of
from pipeline.models import (
    Batch,
    Encounter,
    EncounterResult,
    Entity,
    Session,
    Summary,
)
from pipeline.models.fields import counted, milliseconds
from pipeline.models.insertion import insert_rows
from pipeline.models.work_tables import ENCOUNTER_COLUMNS
from pipeline.providers.prompts import estimate_tokens
from pipeline.providers.schemas import EntityReply
from pipeline.stages.pass1.entity_rows import EncounterText
from pipeline.stages.pass1.planner import Bounds
from pipeline.stages.pass1.planner import plan as plan_batches
from pipeline.stages.pass1.review_flags import Flag
from pipeline.stages.record_warnings import warn
from pipeline.transitions import Lease, fenced


@dataclass(frozen=True, kw_only=True)
class RecordPlan:
    """The stored plan of a record: its encounters in page order, each with its batches."""

    results: list[EncounterResult]
    batches: dict[UUID, list[Batch]]
    """By encounter result, in batch order."""


def plan(
    lease: Lease, spans: Mapping[UUID, Sequence[Span]], pages: Mapping[int, PageText]
) -> RecordPlan:
    """Return the record's plan; each part is stored before the first call.

    A planned encounter keeps its plan, even if the settings change later.
    """
    known = set(
        EncounterResult.objects.filter(shell_file_id=lease.shell_file_id).values_list(
            "healthcare_encounter_id", flat=True
        )
    )
    missing = [
        e for e in Encounter.objects.filter(shell_file_id=lease.shell_file_id) if e.id not in known
    ]
    if missing:
        _store_plan(lease, missing, spans, pages)
    results = list(
        EncounterResult.objects.filter(shell_file_id=lease.shell_file_id).order_by(
            "healthcare_encounter__encounter_index"
        )
    )
    batches: dict[UUID, list[Batch]] = defaultdict(list)
    for batch in Batch.objects.filter(processing_session_id=lease.session_id).order_by(
        "batch_index"
    ):
        batches[batch.pass1_encounter_result_id].append(batch)
    return RecordPlan(results=results, batches=batches)


def result_row(result: EncounterResult) -> dict[str, Any]:
    """Return the state of an encounter as a row of a flush."""
    row: dict[str, Any] = {"id": str(result.id)}
    for column in ENCOUNTER_COLUMNS:
        value = getattr(result, column)
        row[column] = value.isoformat() if isinstance(value, datetime) else value
    return row


def mark_started(result: EncounterResult) -> None:
    """Start an encounter; an encounter that failed in an earlier run starts again from zero."""
    if result.status == WorkStatus.FAILED or result.started_at is None:
        result.started_at = timezone.now()
    result.status = WorkStatus.PROCESSING
    result.completed_at = result.total_duration_ms = None
    result.batches_failed = 0
    result.failure_batch_index = None
    result.error_code = result.error_summary = None


def add_up(
    result: EncounterResult, batches: Sequence[Batch], run_began: datetime | None = None
) -> None:
    """Fill the totals of an encounter from its batches (requirement 21).

    The duration counts from the start of this run of the step: an earlier run, and the time for
    which the record was parked since, do not count.
    """
    result.batches_succeeded = sum(b.status == WorkStatus.SUCCEEDED for b in batches)
    result.batches_failed = sum(b.status == WorkStatus.FAILED for b in batches)
    result.total_retries_used = sum(max(0, b.attempt_count - 1) for b in batches)
    result.total_input_tokens, result.total_output_tokens = _tokens(batches)
    result.total_zones_detected = sum(b.zones_detected or 0 for b in batches)
    result.completed_at = timezone.now()
    starts = [at for at in (result.started_at, run_began) if at]
    began = max(starts, default=result.completed_at)
    result.total_duration_ms = milliseconds(result.completed_at - began)


def mark_failed(result: EncounterResult, batches: Sequence[Batch], failed: Sequence[Batch]) -> None:
    """Fail a whole encounter; name its failed and its succeeded batches (requirement 10)."""
    first = failed[0]
    succeeded = [b.batch_index + 1 for b in batches if b.status == WorkStatus.SUCCEEDED]
    names = "; ".join(
        f"batch {b.batch_index + 1}"
        f" ({labels.pages(range(b.page_range_start, b.page_range_end + 1))}):"
        f" {(b.error_context or {}).get('final_underlying_error', b.error_code)}"
        for b in failed
    )
    result.status = WorkStatus.FAILED
    result.failure_batch_index = first.batch_index
    result.error_code = first.error_code
    result.error_summary = (
        f"{len(failed)} of {labels.counted(len(batches), 'batch')} failed: {names}."
        f" Succeeded: {labels.ranges(succeeded) or 'none'}."
    )


def mark_refused(result: EncounterResult, code: ErrorCode) -> None:
    """Fail an encounter that has all its replies, but whose entities cannot be published."""
    result.status = WorkStatus.FAILED
    result.failure_batch_index = None
    result.error_code = code
    result.error_summary = (
        "the entities could not be published; the replies are kept, and a retry needs no call"
    )
    result.total_entities_detected = result.total_rows_not_understood = 0


def broken_batches(plan: RecordPlan, failed: Sequence[EncounterResult]) -> list[Batch]:
    """Return the failed batches of a record, lowest page first (requirement 9)."""
    return sorted(
        (b for r in failed for b in plan.batches.get(r.id, ()) if b.status == WorkStatus.FAILED),
        key=lambda b: (b.page_range_start, b.batch_index),
    )


def first_failed(plan: RecordPlan, failed: Sequence[EncounterResult]) -> EncounterResult:
    """Return the encounter of the first failed batch; its failure is the one reported."""
    broken = broken_batches(plan, failed)
    if not broken:
        return failed[0]
    return next(r for r in failed if r.id == broken[0].pass1_encounter_result_id)


def mark_succeeded(
    result: EncounterResult,
    batches: Sequence[Batch],
    replies: Sequence[EntityReply],
    entities: Sequence[dict[str, Any]],
    pages: Mapping[int, PageText],
) -> None:
    """Complete an encounter with its published results."""
    result.status = WorkStatus.SUCCEEDED
    result.failure_batch_index = None
    result.error_code = result.error_summary = None
    result.total_entities_detected = sum(row["accepted"] for row in entities)
    result.total_rows_not_understood = sum(
        Flag.ROW_NOT_UNDERSTOOD.value in row["review_flags"] for row in entities
    )
    result.no_known_allergies = trusted_no_known_allergies(batches, replies, pages)
    result.zones = [
        [z.zone_type, z.page_start, z.page_end] for reply in replies for z in reply.zones
    ]
    result.warnings = []
    if not result.total_entities_detected:
        result.warnings.append({"code": ErrorCode.NO_ENTITIES_FOUND.value})
    if unsupported := sorted({p for reply in replies for p in reply.unsupported_pages}):
        result.warnings.append({"code": ErrorCode.LANGUAGE_UNSUPPORTED.value, "pages": unsupported})
    if rejected := sum(reply.items_rejected for reply in replies):
        from_batches = [b for b, r in zip(batches, replies, strict=True) if r.items_rejected]
        result.warnings.append(
            {
                "code": ErrorCode.ITEM_REJECTED.value,
                "pages": _pages_of(from_batches),
                "count": rejected,
            }
        )


def trusted_no_known_allergies(
    batches: Sequence[Batch], replies: Sequence[EntityReply], pages: Mapping[int, PageText]
) -> bool | None:
    """Return the joint answer about allergies; a page with suspect words gives no `yes`.

    `No known allergies` has no place in the text, so no reader can see whether the statement
    comes from words that address a model, or from hidden words.
    """
    trusted = [
        reply
        for batch, reply in zip(batches, replies, strict=True)
        if not reply.no_known_allergies
        or not any(
            pages[number].suspects
            for number in range(batch.page_range_start, batch.page_range_end + 1)
        )
    ]
    return joint_no_known_allergies(trusted)


def joint_no_known_allergies(replies: Sequence[EntityReply]) -> bool | None:
    """Return the joint answer of all replies about one encounter: yes beats no."""
    said = {reply.no_known_allergies for reply in replies}
    return True if True in said else (False if False in said else None)


def batch_slices(batch: Batch, split: str, pages: Mapping[int, PageText]) -> tuple[PageSlice, ...]:
    """Return the slices that the prompt of a stored batch, or of one of its splits, shows."""
    batches = Batch.objects.filter(healthcare_encounter_id=batch.healthcare_encounter_id)
    text = EncounterText.of(list(batches.defer("output").order_by("batch_index")), pages)
    own = pages_of(text.pages_of(batch.batch_index), split)
    return text.slices(batch.batch_index, own)


def conclude(lease: Lease, plan: RecordPlan) -> None:
    """Mark the record for a review where needed."""
    _review(lease, plan)


def _store_plan(
    lease: Lease,
    encounters: Sequence[Encounter],
    spans: Mapping[UUID, Sequence[Span]],
    pages: Mapping[int, PageText],
) -> None:
    bounds = Bounds(
        min_pages=settings.PASS1_BATCH_MIN_PAGES,
        max_pages=settings.PASS1_BATCH_MAX_PAGES,
        hard_ceiling=settings.PASS1_BATCH_HARD_CEILING,
        max_tokens=settings.PASS1_BATCH_MAX_TOKENS,
    )
    results, batches = [], []
    for encounter in encounters:
        planned = plan_batches(spans.get(encounter.id, ()), pages, bounds)
        result = EncounterResult(
            shell_file_id=lease.shell_file_id,
            healthcare_encounter=encounter,
            processing_session_id=lease.session_id,
            patient_id=encounter.patient_id,
            page_count=encounter.page_count,
            batching_used=len(planned) > 1,
            batches_total=len(planned),
        )
        results.append(result)
        batches += [
            Batch(
                healthcare_encounter=encounter,
                pass1_encounter_result=result,
                processing_session_id=lease.session_id,
                batch_index=batch.index,
                page_range_start=batch.first_page,
                page_range_end=batch.last_page,
                spans=[[s.page, s.start, s.end] for s in batch.spans],
                max_attempts=settings.PASS1_MAX_RETRIES,
                estimated_input_tokens=sum(
                    estimate_tokens(part.text) for part in slices(batch.spans, pages)
                ),
            )
            for batch in planned
        ]
    with fenced(lease):
        insert_rows(results)
        insert_rows(batches)


def _tokens(batches: Sequence[Batch]) -> tuple[int, int]:
    return (
        counted(sum(b.input_tokens or 0 for b in batches)),
        counted(sum(b.output_tokens or 0 for b in batches)),
    )


def _review(lease: Lease, plan: RecordPlan) -> None:
    flagged = (
        Entity.objects.filter(shell_file_id=lease.shell_file_id).exclude(review_flags=[]).exists()
    )
    warned = [(r, w) for r in plan.results for w in r.warnings]
    rejected = [w for _, w in warned if w["code"] == ErrorCode.ITEM_REJECTED]
    unread = [w for _, w in warned if w["code"] == ErrorCode.LANGUAGE_UNSUPPORTED]
    empty = [r for r, w in warned if w["code"] == ErrorCode.NO_ENTITIES_FOUND]
    if empty:
        warn(
            lease.shell_file_id,
            ErrorCode.NO_ENTITIES_FOUND,
            "An encounter on these pages has no entity.",
            _pages_of(b for r in empty for b in plan.batches[r.id]),
        )
    if unread:
        warn(
            lease.shell_file_id,
            ErrorCode.LANGUAGE_UNSUPPORTED,
            "These pages of an encounter are in a language that the engine does not read.",
            sorted({page for w in unread for page in w["pages"]}),
        )
    if rejected:
        warn(
            lease.shell_file_id,
            ErrorCode.ITEM_REJECTED,
            "Entities or zones of a reply broke the schema and were left out.",
            sorted({page for w in rejected for page in w["pages"]}),
            count=sum(w["count"] for w in rejected),
        )
    if flagged or warned:
        Session.objects.filter(id=lease.session_id).update(requires_human_review=True)
        Summary.objects.filter(shell_file_id=lease.shell_file_id).update(
            manual_review_required=True
        )


def _pages_of(batches: Iterable[Batch]) -> list[int]:
    """Return the pages of some batches, in order and once each."""
    return sorted({p for b in batches for p in range(b.page_range_start, b.page_range_end + 1)})
