"""The tree of a record: file → passes of the session → encounters → batches → calls.

This module reads no database. A pass of the registry (`work_tables`) shows its work items. A pass
without an entry shows its status alone, so that a later pass appears by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from observability.drilldown.nodes import FailureCause, Node, NodeKind, Spent
from observability.drilldown.queries import RecordRows
from observability.drilldown.reuse import reused_from
from pipeline.core.errors import ERRORS, ErrorCode
from pipeline.core.labels import (
    PASS_TITLES,
    WORDS,
    StatusWord,
    incomplete_note,
    pages,
    work_item,
)
from pipeline.core.states import JOB_TERMINAL, JobStatus, Step
from pipeline.models import (
    OUTCOME_OK,
    Encounter,
    EncounterResult,
    Job,
    ProviderCall,
)
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES, WorkTable
from pipeline.transitions.history import crashes

Contents = tuple[dict[str, int], tuple[Node, ...]]
"""What a pass consists of: its counts, and its children."""


def tree(rows: RecordRows) -> Node:
    """Build the tree of a record."""
    job, file = rows.job, rows.shell_file
    passes = tuple(_pass(rows, step) for step in Step)
    if job.status in JOB_TERMINAL:
        passes = tuple(_left_behind(node) for node in passes)
    return Node(
        kind=NodeKind.RECORD,
        id=str(file.id),
        title=f"record of patient {rows.pseudonym}",
        status=WORDS[job.status],
        counts={
            "page": file.page_count or file.pages_read,
            "encounter": len(rows.encounters),
            "entity": rows.summary.entities_extracted_total,
            "not_understood": _not_understood(rows.results.values()),
            "call": len(rows.calls),
        },
        spent=_spent(
            rows.calls,
            started_at=rows.summary.processing_started_at,
            took_ms=rows.summary.total_processing_time_ms or None,
        ),
        cause=_job_cause(rows),
        notes=(*(_warning(w) for w in file.warnings), *_crashes(job)),
        facts={
            "job": str(job.id),
            "session": str(rows.session.id),
            "step": job.current_step,
            "retry_count": job.retry_count,
            "crash_count": job.crash_count,
            "cancel_requested_at": job.cancel_requested_at,
            "history": (job.error_details or {}).get("history", []),
            "worker": job.worker_id,
            "parked_until": job.parked_until,
            "park_reason": job.park_reason,
            "manual_review_required": rows.summary.manual_review_required,
            "incomplete_note": _incomplete_note(rows),
            "forced": file.forced,
            "reused": reused_from(rows.reuses),
        },
        children=passes,
    )


def _incomplete_note(rows: RecordRows) -> str:
    published = sum(each.entities_published_at is not None for each in rows.encounters)
    return incomplete_note(published, len(rows.encounters))


def _left_behind(node: Node) -> Node:
    """Show nodes that were running when the job ended as waiting."""
    begun = node.status is StatusWord.RUNNING
    if not begun and not node.children:
        return node
    below = tuple(map(_left_behind, node.children))
    # Most records end without running nodes; then their nodes stay the same objects.
    if not begun and all(new is old for new, old in zip(below, node.children, strict=True)):
        return node
    return node._replace(
        status=StatusWord.WAITING if begun else node.status,
        facts={**node.facts, **({"is_begun": True} if begun else {})},
        children=below,
    )


def _pass(rows: RecordRows, step: Step) -> Node:
    word = _pass_word(rows, step)
    counts, children = _consists_of(rows, step)
    failed_here = rows.job.current_step == step and rows.job.status in {
        JobStatus.FAILED,
        JobStatus.DEAD,
    }
    ended = rows.job.completed_at is not None
    calls = [call for call in rows.calls if call.step == step]
    # A pass that makes one call for the whole record has calls without a work item.
    own = tuple(_call(call) for call in calls if call.work_item_id is None)
    return Node(
        kind=NodeKind.PASS,
        id=step.value,
        title=PASS_TITLES[step],
        status=word,
        counts={k: v for k, v in counts.items() if v},
        spent=_spent(calls, took_ms=_pass_ms(rows, step, calls)),
        cause=_job_cause(rows) if failed_here else None,
        notes=("not reached",) if ended and word is StatusWord.WAITING else (),
        facts={"code_tables": ", ".join(rows.coded.code_tables)}
        if step is Step.PASS1_5 and rows.coded.code_tables
        else {},
        children=(*children, *own),
    )


def _pass_word(rows: RecordRows, step: Step) -> StatusWord:
    job = rows.job
    if step is Step.PAGES:
        if job.current_step != step:
            return StatusWord.DONE
        return WORDS[job.status]
    word = WORDS[getattr(rows.session, f"{step.value}_status")]
    # The session only knows that the pass has started; the job knows whether a worker runs it.
    if job.current_step == step and job.status == JobStatus.DEAD:
        return StatusWord.DEAD
    if job.current_step == step and word in {StatusWord.RUNNING, StatusWord.WAITING}:
        return WORDS[job.status]
    return word


def _pass_ms(rows: RecordRows, step: Step, calls: Sequence[ProviderCall]) -> int | None:
    """Return the time for which workers ran a pass; of a first run, the time since its start."""
    if (ran := rows.job.step_run_ms.get(step.value)) is not None:
        return int(ran)
    if step is Step.PAGES:
        began = rows.summary.processing_started_at
        at: str | None = next(
            (e["at"] for e in rows.summary.business_events if e["event"] == "pages: completed"),
            None,
        )
        return _ms_between(began, at)
    if not calls:
        return None
    first = min(call.started_at for call in calls)
    return max(
        int((call.started_at - first).total_seconds() * 1000) + int(call.duration_ms)
        for call in calls
    )


def _ms_between(began: datetime | None, at: str | None) -> int | None:
    if began is None or at is None:
        return None
    return int((datetime.fromisoformat(at) - began).total_seconds() * 1000)


def _consists_of(rows: RecordRows, step: Step) -> Contents:
    if builder := _BUILDERS.get(step):
        return builder(rows)
    table = WORK_TABLES.get(step)
    return _work_items(rows, table) if table else ({}, ())


def _pages(rows: RecordRows) -> Contents:
    sources = rows.pages_by_source
    return {
        "page": sum(sources.values()),
        "read by OCR": sources.get("ocr", 0),
        "blank": sources.get("blank", 0),
        "damaged": sources.get("damaged", 0),
    }, ()


def _work_items(rows: RecordRows, table: WorkTable) -> Contents:
    """Return the work items of a pass side by side."""
    calls = rows.calls_of_items
    items = rows.items[table.step]
    indexes = {each.id: each.encounter_index for each in rows.encounters}
    children = tuple(
        _work(
            table,
            item,
            calls.get(item.pk, ()),
            len(items),
            encounter=indexes.get(item.encounter_id) if table.has_encounters_alone else None,
        )
        for item in items
    )
    failed = sum(child.status is StatusWord.FAILED for child in children)
    return {table.noun: len(children), "failed": failed}, children


def _discovery(rows: RecordRows) -> Contents:
    counts, children = _work_items(rows, WORK_TABLES[Step.PASS05])
    found = rows.discovery
    return {
        **counts,
        "encounter": found.encounters_found if found else 0,
        "held": found.encounters_held if found else 0,
    }, children


def _detection(rows: RecordRows) -> Contents:
    """Return the encounters with their batches; an encounter succeeds or fails as a whole."""
    calls = rows.calls_of_items
    batches = rows.items[Step.PASS1]
    by_encounter: defaultdict[UUID | None, list[WorkItem]] = defaultdict(list)
    for batch in batches:
        by_encounter[batch.encounter_id].append(batch)
    encounters = tuple(
        _detected(rows, encounter, by_encounter[encounter.id], calls)
        for encounter in rows.encounters
    )
    results = rows.results.values()
    return {
        "encounter": len(encounters),
        "failed": sum(node.status is StatusWord.FAILED for node in encounters),
        "batch": len(batches),
        "entity": sum(r.total_entities_detected for r in results),
        "not_understood": _not_understood(results),
    }, encounters


def _not_understood(results: Iterable[EncounterResult]) -> int:
    return sum(r.total_rows_not_understood for r in results)


def _detected(
    rows: RecordRows,
    encounter: Encounter,
    batches: Sequence[WorkItem],
    calls: Mapping[UUID, Sequence[ProviderCall]],
) -> Node:
    table = WORK_TABLES[Step.PASS1]
    result = rows.results.get(encounter.id)
    own_calls = [call for batch in batches for call in calls.get(batch.pk, ())]
    return Node(
        kind=NodeKind.ENCOUNTER,
        id=str(encounter.id),
        title=f"encounter {encounter.encounter_index} ({encounter.encounter_type},"
        f" {pages(range(encounter.page_start, encounter.page_end + 1))})",
        status=WORDS[result.status] if result else StatusWord.WAITING,
        counts={
            "batch": len(batches),
            "entity": result.total_entities_detected if result else 0,
            "not_understood": _not_understood([result] if result else []),
        },
        spent=_spent(
            own_calls,
            started_at=result.started_at if result else None,
            took_ms=result.total_duration_ms if result else None,
        ),
        cause=_encounter_cause(result, batches) if result else None,
        notes=tuple(_warning(w) for w in result.warnings) if result else (),
        facts={
            "encounter_index": encounter.encounter_index,
            "page_start": encounter.page_start,
            "page_end": encounter.page_end,
            "published": encounter.entities_published_at is not None,
            "incomplete_note": _incomplete_note(rows),
        },
        children=tuple(
            _work(table, batch, calls.get(batch.pk, ()), len(batches)) for batch in batches
        ),
    )


def _encounter_cause(result: EncounterResult, batches: Sequence[WorkItem]) -> FailureCause | None:
    if result.error_code is None:
        return None
    number_of = WORK_TABLES[Step.PASS1].number_of
    first = next((b for b in batches if number_of(b) == result.failure_batch_index), None)
    underlying = (first.error_context or {}).get("final_underlying_error") if first else None
    return FailureCause(
        code=result.error_code, underlying=underlying, message=result.error_summary or ""
    )


def _shortlisting(rows: RecordRows) -> Contents:
    return {"entity with candidates": rows.coded.entities}, ()


def _enrichment(rows: RecordRows) -> Contents:
    counts, children = _work_items(rows, WORK_TABLES[Step.PASS2])
    totals = rows.clinical
    if totals is None:
        return counts, children
    return {
        **counts,
        "enriched": totals.entities_enriched,
        "coded": totals.entities_coded,
        "flagged": totals.entities_flagged,
    }, children


def _narratives(rows: RecordRows) -> Contents:
    counts, children = _work_items(rows, WORK_TABLES[Step.PASS3])
    totals = rows.narrative
    if totals is None:
        return counts, children
    return {
        **counts,
        "sentence": totals.sentences_supported,
        "unsupported sentence": totals.sentences_unsupported,
    }, children


_BUILDERS: dict[Step, Callable[[RecordRows], Contents]] = {
    Step.PAGES: _pages,
    Step.PASS05: _discovery,
    Step.PASS1: _detection,
    Step.PASS1_5: _shortlisting,
    Step.PASS2: _enrichment,
    Step.PASS3: _narratives,
}
"""Passes that show more than their work items."""


def _work(
    table: WorkTable,
    item: WorkItem,
    calls: Sequence[ProviderCall],
    total: int,
    encounter: int | None = None,
) -> Node:
    """Return a work item; `encounter` is the number of an encounter that no node above names."""
    number = table.number_of(item)
    name = f"{table.noun} {number + 1} of {total}"
    if encounter is not None:
        name = work_item(table.noun, number, encounter)
    where = pages(range(item.page_range_start, item.page_range_end + 1))
    estimate = {table.estimate: table.estimate_of(item)} if table.estimate else {}
    return Node(
        kind=table.noun,
        id=str(item.pk),
        # People count from 1; `facts` keep the 0-based index.
        title=f"{name} ({where})",
        status=WORDS[item.status],
        counts=table.found_in(item),
        spent=_spent(calls, started_at=item.started_at, took_ms=item.duration_ms),
        cause=_work_cause(item),
        absorbed=len(item.failure_history) if WORDS[item.status] is StatusWord.DONE else 0,
        facts={
            table.index: number,
            **estimate,
            **_encounter_of(table, item),
            "page_range_start": item.page_range_start,
            "page_range_end": item.page_range_end,
            "attempt_count": item.attempt_count,
            "max_attempts": item.max_attempts,
            "rate_limit_waits": item.rate_limit_waits,
        },
        children=tuple(_call(call) for call in calls),
    )


def _encounter_of(table: WorkTable, item: WorkItem) -> dict[str, str]:
    """Return the encounter of an item that no node above names."""
    if not table.has_encounters_alone or item.encounter_id is None:
        return {}
    return {"encounter_id": str(item.encounter_id)}


def _work_cause(row: WorkItem) -> FailureCause | None:
    if row.error_code is None:
        return None
    context = row.error_context or {}
    return FailureCause(
        code=row.error_code,
        underlying=context.get("final_underlying_error"),
        message=row.error_message or "",
    )


def _call(call: ProviderCall) -> Node:
    ok = call.outcome == OUTCOME_OK
    return Node(
        kind=NodeKind.CALL,
        id=str(call.id),
        title=f"call {call.attempt}" + (f", split {call.split}" if call.split else ""),
        status=StatusWord.DONE if ok else StatusWord.FAILED,
        spent=_spent(
            [call],
            started_at=call.started_at,
            took_ms=call.duration_ms,
            waited_ms=call.queue_wait_ms,
        ),
        cause=None if ok else FailureCause(code=call.outcome, message=call.message or ""),
        facts={
            "outcome": call.outcome,
            "accepted": call.accepted,
            "http_status": call.http_status,
            "finish_reason": call.finish_reason,
            "provider": call.provider,
            "model_version": call.model_version or call.model,
            "prompt_version": call.prompt_version,
            "schema_version": call.schema_version,
            "response_id": call.response_id,
            "page_range_start": call.page_range_start,
            "page_range_end": call.page_range_end,
            "quota_id": call.quota_id,
            "retry_after_ms": call.retry_after_ms,
        },
    )


_FREE = Decimal(0)


def _spent(calls: Sequence[ProviderCall], **when: Any) -> Spent:
    if not calls:
        return Spent(**when)
    return Spent(
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        thinking_tokens=sum(call.thinking_tokens for call in calls),
        cost_usd=sum((call.cost_usd for call in calls), start=_FREE),
        **when,
    )


def _job_cause(rows: RecordRows) -> FailureCause | None:
    job = rows.job
    if job.error_code is None or job.status not in {JobStatus.FAILED, JobStatus.DEAD}:
        return None
    details = job.error_details or {}
    return FailureCause(
        code=job.error_code,
        underlying=details.get("underlying_error"),
        message=job.last_error or "",
    )


def _crashes(job: Job) -> Iterator[str]:
    for crash in crashes((job.error_details or {}).get("history", ())):
        end = "hung and was ended" if crash.has_hung else "was lost"
        yield (
            f"the process of worker {crash.worker_id} {end}"
            f" in {PASS_TITLES[Step(crash.step)]}"
            f" at {crash.at[11:19]} UTC on {crash.at[:10]}"
        )


def _warning(warning: Mapping[str, Any]) -> str:
    code = ErrorCode(warning["code"])
    where = f"{pages(warning['pages'])}: " if warning.get("pages") else ""
    message: str = warning.get("message") or ERRORS[code].advice
    times = f" ×{warning['count']:,}" if warning.get("count") else ""
    return f"{where}{message.rstrip('.')} ({code}{times})"
