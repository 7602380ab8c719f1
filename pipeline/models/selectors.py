"""Reads that several stages and the console share. This module never writes."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypedDict, cast
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Sum, Value
from django.utils import timezone

from pipeline.core.errors import ERRORS, Budget
from pipeline.core.labels import incomplete_note, missing_encounters
from pipeline.core.states import (
    JOB_TERMINAL,
    WORK_TERMINAL,
    IncidentKind,
    JobStatus,
    Step,
    WorkStatus,
)
from pipeline.core.types import PageText, Span
from pipeline.models import (
    HELD_TEXT,
    OUTCOME_LATE,
    OUTCOME_OK,
    Encounter,
    EncounterResult,
    Entity,
    Job,
    Page,
    PageAssignment,
    PageSource,
    ProviderCall,
    RecordBatch,
    Reuse,
)
from pipeline.models.fields import counted
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES, WorkTable

OCR_MODEL = "tesseract-5.5 tessdata_fast eng"
"""The engine inside the tesserocr wheel and its trained model."""
WITH_OCR = (PageSource.OCR, PageSource.MIXED)
"""Pages with words that OCR read."""


class CallTotals(TypedDict):
    """The totals of a session's calls."""

    calls: int
    """A call that was written off and answered later counts twice: as failed and as late."""
    failed: int
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    total_tokens: int
    """Input, output and thinking tokens; the provider bills thinking as output."""
    cost_usd: Decimal


def page_texts(shell_file_id: UUID) -> dict[int, PageText]:
    """Return a record's pages by number, without their word boxes (3 kB a page)."""
    rows = Page.objects.filter(shell_file_id=shell_file_id).order_by("page_number")
    return {
        number: PageText(
            number=number,
            text=text,
            is_blank=blank,
            ocr_confidence=confidence,
            suspects=tuple((flag, start, end) for flag, start, end in suspects),
        )
        for number, text, blank, confidence, suspects in rows.values_list(
            "page_number", "text", "is_blank", "ocr_confidence", "suspects"
        )
    }


def spans_by_encounter(shell_file_id: UUID) -> dict[UUID, list[Span]]:
    """Return the spans of each published encounter of a record, in the order of the text."""
    found: dict[UUID, list[Span]] = defaultdict(list)
    rows = PageAssignment.objects.filter(
        discovery_session__shell_file_id=shell_file_id, healthcare_encounter__isnull=False
    ).order_by("page_number", "start_offset")
    for encounter_id, page, start, end in rows.values_list(
        "healthcare_encounter_id", "page_number", "start_offset", "end_offset"
    ):
        found[encounter_id].append(Span(page, start, end))
    return dict(found)


def held_spans(shell_file_id: UUID) -> dict[int, list[tuple[int, int]]]:
    """Return start and end of the text that names, or may belong to, another patient, by page.

    No export gives this text away: the text is of no encounter of the record's patient.
    """
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    rows = PageAssignment.objects.filter(
        discovery_session__shell_file_id=shell_file_id,
        healthcare_encounter__isnull=True,
        reason=HELD_TEXT,
    ).order_by("page_number", "start_offset")
    for page, start, end in rows.values_list("page_number", "start_offset", "end_offset"):
        found[page].append((start, end))
    return dict(found)


def ocr_words(shell_file_id: UUID, pages: Iterable[int]) -> dict[int, list[tuple[int, int, float]]]:
    """Return start, end and confidence (0–100) of the OCR words of these pages."""
    rows = Page.objects.filter(
        shell_file_id=shell_file_id, page_number__in=list(pages), source__in=WITH_OCR
    )
    return {
        number: [(word[0], word[1], float(word[6])) for word in words or [] if word[6] is not None]
        for number, words in rows.values_list("page_number", "words")
    }


def ocr_page_count(shell_file_id: UUID) -> int:
    """Return the number of a record's pages that OCR read, whole or in part."""
    return Page.objects.filter(shell_file_id=shell_file_id, source__in=WITH_OCR).count()


def call_totals(session_id: UUID, step: Step | None = None) -> CallTotals:
    """Return tokens, cost and failures of a session's calls, for one pass or for all passes."""
    calls = ProviderCall.objects.filter(processing_session_id=session_id)
    if step is not None:
        calls = calls.filter(step=step)
    totals = calls.aggregate(
        calls=Count("id"),
        failed=Count("id", filter=~Q(outcome__in=[OUTCOME_OK, OUTCOME_LATE])),
        input_tokens=Sum("input_tokens", default=0),
        output_tokens=Sum("output_tokens", default=0),
        thinking_tokens=Sum("thinking_tokens", default=0),
        cost_usd=Sum("cost_usd", default=0),
    )
    kinds = ("input_tokens", "output_tokens", "thinking_tokens")
    totals["total_tokens"] = counted(sum(totals[kind] for kind in kinds))
    return cast(CallTotals, totals | {kind: counted(totals[kind]) for kind in kinds})


class WorkDone(NamedTuple):
    """How many work items of a pass there are, and how many of them have ended."""

    done: int = 0
    total: int = 0


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The progress of a record, from its newest job; free of file names and document text."""

    shell_file_id: UUID
    job_id: UUID
    status: JobStatus
    step: Step
    pages_read: int
    page_count: int | None
    work: Mapping[Step, WorkDone]
    """The work items of each pass that has some."""
    encounters: int
    encounters_missing: int = 0
    """Encounters that are not published although others are; the record is then incomplete."""
    entities: int
    """Only entities of published encounters."""
    rows_not_understood: int = 0
    """Rows of published encounters without a value, because a part was not understood."""
    error_code: str | None
    underlying_error: str | None
    last_error: str | None
    parked_until: datetime | None
    park_reason: str | None
    outage_since: datetime | None
    """The start of the provider outage that a parked record waits for."""
    warnings: tuple[dict[str, Any], ...]
    started_at: datetime | None
    completed_at: datetime | None
    is_held: bool
    """Whether a worker holds an unexpired lease on the job."""

    @property
    def is_terminal(self) -> bool:
        """Whether the record's job has ended, so that it changes only by an operator's action."""
        return self.status in JOB_TERMINAL


def progress(shell_file_ids: Collection[UUID]) -> dict[UUID, Progress]:
    """Return the progress of records by id.

    There are four statements, for any number of records and passes.
    """
    jobs = (
        Job.objects.filter(shell_file_id__in=shell_file_ids)
        .select_related("shell_file", "incident")
        .order_by("shell_file_id", "-created_at")
        .distinct("shell_file_id")
        .defer("shell_file__original_filename", "incident__evidence")
    )
    work = work_done(shell_file_ids)
    encounters = _encounters(shell_file_ids)
    published = {
        record: (entities, rows_not_understood)
        for record, entities, rows_not_understood in EncounterResult.objects.filter(
            shell_file_id__in=shell_file_ids, status=WorkStatus.SUCCEEDED
        )
        .order_by()
        .values_list("shell_file_id")
        .annotate(
            entities=Sum("total_entities_detected"),
            rows_not_understood=Sum("total_rows_not_understood"),
        )
    }
    return {
        job.shell_file_id: Progress(
            shell_file_id=job.shell_file_id,
            job_id=job.id,
            status=JobStatus(job.status),
            step=Step(job.current_step),
            pages_read=job.shell_file.pages_read,
            page_count=job.shell_file.page_count,
            work=work.get(job.shell_file_id, {}),
            encounters=encounters.get(job.shell_file_id, (0, 0))[1],
            encounters_missing=missing_encounters(*encounters.get(job.shell_file_id, (0, 0))),
            entities=published.get(job.shell_file_id, (0, 0))[0],
            rows_not_understood=published.get(job.shell_file_id, (0, 0))[1],
            error_code=job.error_code,
            # `error_details` keeps the errors of earlier runs, even after the job has completed.
            underlying_error=(job.error_details or {}).get("underlying_error")
            if job.error_code
            else None,
            last_error=job.last_error,
            parked_until=job.parked_until,
            park_reason=job.park_reason,
            outage_since=_outage_since(job),
            warnings=tuple(job.shell_file.warnings),
            started_at=job.started_at,
            completed_at=job.completed_at,
            is_held=job.lease_expires_at is not None and job.lease_expires_at > timezone.now(),
        )
        for job in jobs
    }


def _encounters(shell_file_ids: Collection[UUID]) -> dict[UUID, tuple[int, int]]:
    """Return the numbers of published and of all encounters of each record."""
    rows = (
        Encounter.objects.filter(shell_file_id__in=shell_file_ids)
        .order_by()
        .values_list("shell_file_id")
        .annotate(published=Count("entities_published_at"), total=Count("id"))
    )
    return {record: (published, total) for record, published, total in rows}


def incomplete_note_of(shell_file_id: UUID) -> str:
    """Return the sentence about an incomplete record; "" for any other record."""
    return incomplete_note(*_encounters([shell_file_id]).get(shell_file_id, (0, 0)))


def incomplete_notes(shell_file_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the sentence of each incomplete record, in one statement."""
    notes = {id_: incomplete_note(*each) for id_, each in _encounters(shell_file_ids).items()}
    return {record: note for record, note in notes.items() if note}


def record_batch(batch_id: UUID) -> RecordBatch:
    """Return a batch of records; its totals are filled once all records have ended."""
    return RecordBatch.objects.get(id=batch_id)


def provider_jobs() -> int:
    """Return how many jobs run a pass that calls a provider now, on all hosts."""
    return Job.objects.filter(status=JobStatus.PROCESSING, current_step__in=WORK_TABLES).count()


@dataclass(frozen=True, kw_only=True)
class SplitCall:
    """A call of a split that was accepted, or whose pages were halved."""

    row_id: UUID
    split: str
    accepted: bool
    page_range: tuple[int, int] | None
    reply: str | None = field(repr=False)
    """The accepted reply as received; None if it was pruned. PHI."""
    is_of_engine: bool = False
    """The local engine wrote the reply."""


def split_calls(items: Sequence[WorkItem]) -> list[SplitCall]:
    """Return the calls that show how these items were split and which splits were answered."""
    split = [code.value for code, facts in ERRORS.items() if facts.budget is Budget.SPLIT]
    calls = ProviderCall.objects.filter(
        Q(accepted=True) | Q(outcome__in=split), work_item_id__in=[item.pk for item in items]
    ).select_related("payload")
    return [_split_call(call, call.work_item_id) for call in calls if call.work_item_id]


def work_item_of(call: ProviderCall) -> WorkItem | None:
    """Return the work item that a call asks about; None for a call about a whole record."""
    table = WORK_TABLES.get(Step(call.step))
    if table is None or call.work_item_id is None:
        return None
    rows = table.rows.select_related(table.encounter) if table.encounter else table.rows
    return rows.filter(pk=call.work_item_id).first()


def _split_call(call: ProviderCall, item_id: UUID) -> SplitCall:
    payload = getattr(call, "payload", None) if call.accepted else None
    return SplitCall(
        row_id=item_id,
        split=call.split,
        accepted=call.accepted,
        page_range=payload and (payload.page_range_start, payload.page_range_end),
        reply=payload and zlib.decompress(bytes(payload.reply)).decode(),
        is_of_engine=call.provider == "local",
    )


def entities_to_review(shell_file_ids: Collection[UUID]) -> dict[UUID, int]:
    """Return the number of each record's entities that carry a review flag."""
    return _per_record(
        Entity.objects.filter(shell_file_id__in=shell_file_ids).exclude(review_flags=[]),
        Count("id"),
    )


def reused_from(shell_file_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """Return by record the record of which its last passes reused the results."""
    rows = Reuse.objects.filter(shell_file_id__in=shell_file_ids, source__isnull=False)
    return dict(rows.order_by("created_at", "id").values_list("shell_file_id", "source_id"))


def _outage_since(job: Job) -> datetime | None:
    is_outage = job.incident is not None and job.incident.kind == IncidentKind.OUTAGE
    if job.incident is None or not is_outage or job.status != JobStatus.PARKED:
        return None
    since: datetime = job.incident.opened_at
    return since


def work_done(shell_file_ids: Collection[UUID]) -> dict[UUID, dict[Step, WorkDone]]:
    """Return the ended and all work items of each pass of some records, in one statement."""
    first, *others = (_ended(table, shell_file_ids) for table in WORK_TABLES.values())
    found: defaultdict[UUID, dict[Step, WorkDone]] = defaultdict(dict)
    for record, step, ended, total in first.union(*others, all=True):
        found[record][Step(step)] = WorkDone(ended, total)
    return {record: dict(sorted(of.items(), key=_in_order)) for record, of in found.items()}


def _in_order(of: tuple[Step, WorkDone]) -> int:
    return list(Step).index(of[0])


def _ended(table: WorkTable, shell_file_ids: Collection[UUID]) -> QuerySet[Any, Any]:
    return (
        table.rows.filter(**{f"{table.record}__in": shell_file_ids})
        .order_by()
        .values_list(table.record, Value(table.step.value))
        .annotate(ended=Count("id", filter=Q(status__in=WORK_TERMINAL)), total=Count("id"))
    )


def _per_record(rows: QuerySet[Any], figure: Count) -> dict[UUID, int]:
    return dict(rows.order_by().values_list("shell_file_id").annotate(figure=figure))
