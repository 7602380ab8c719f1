"""The estimate of the calls, tokens and cost of a retry. This module only reads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F, Sum

from pipeline.core.errors import ERRORS, ErrorCode
from pipeline.core.states import Step, WorkStatus
from pipeline.core.types import ProviderModel
from pipeline.models import Job, ProviderCall, ShellFile
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES, WorkTable, encounter_parents
from pipeline.operations.preview.selection import SelectedJob, of_records
from pipeline.operations.preview.types import RetryCandidate
from pipeline.providers.config import ProviderConfig
from pipeline.providers.prompts import PROMPT_VERSION, estimate_tokens, render
from pipeline.providers.tasks import TASKS

OUTPUT_SHARE = 0.5
"""Output tokens per input token without earlier calls: a ten-page batch of tables needs about
12,000 output tokens, and its limit is 24,000 input tokens."""

EMBEDDING_CALLS_A_PAGE = 0.5
"""Embedding calls for each page of a record whose words are all new. The samples have 2 to 13
different names a page, with about five texts each; a call has 100 texts."""
EMBEDDING_TOKENS_A_PAGE = 400
"""Input tokens of these calls for each page, at about eight tokens a text."""


@dataclass(frozen=True)
class _Item:
    """A work item that a retry would send to the provider."""

    row: WorkItem
    session_id: UUID | None
    text_tokens: int
    """Estimated input tokens of the item's pages, without the prompt around them."""


_Work = Mapping[UUID, Sequence[_Item]]
"""Work items by record."""


def candidates(
    selected_jobs: Sequence[SelectedJob],
) -> tuple[tuple[RetryCandidate, ...], set[UUID]]:
    """Return the work of each job, and the sessions whose earlier calls show its cost."""
    work = _work(selected_jobs)
    encounters = _encounters(selected_jobs)
    pages = _page_counts(selected_jobs)
    sessions = {item.session_id for items in work.values() for item in items if item.session_id}
    found = (_candidate(each, work, encounters, pages) for each in selected_jobs)
    return tuple(found), sessions


def _work(selected_jobs: Sequence[SelectedJob]) -> _Work:
    """Return the work items that would be sent to the provider, by record."""
    scopes = {each.job.shell_file_id: each.scope for each in selected_jobs}
    steps = {each.job.shell_file_id: each.job.current_step for each in selected_jobs}
    open_states = [WorkStatus.FAILED, WorkStatus.PENDING, WorkStatus.PROCESSING]
    work: defaultdict[UUID, list[_Item]] = defaultdict(list)
    for table in WORK_TABLES.values():
        rows = table.rows.filter(status__in=open_states, **of_records(table, scopes))
        rows = rows.annotate(record=F(table.record), session=F("processing_session_id"))
        meant = [
            row
            for row in rows.only(*_columns(table))
            if steps[row.record] == table.step
            and (row.status != WorkStatus.FAILED or scopes[row.record].holds(row))
        ]
        characters = {} if table.estimate else _characters(table, [row.pk for row in meant])
        for row in meant:
            tokens = table.estimate_of(row) + characters.get(row.pk, 0) // 4
            work[row.record].append(_Item(row, row.session, tokens))
    return work


def _columns(table: WorkTable) -> tuple[str, ...]:
    """Return the columns to read; replies, spans and histories are long and not needed."""
    own = [f"{table.encounter}_id" if table.encounter else None, table.estimate]
    return (
        "status", "error_code", "error_context", "page_range_start", "page_range_end",
        *filter(None, own),
    )  # fmt: skip


def _encounters(selected_jobs: Sequence[SelectedJob]) -> dict[UUID, int]:
    """Count the failed encounters that are included, by record."""
    scopes = {each.job.shell_file_id: each.scope for each in selected_jobs}
    failed: set[tuple[UUID, UUID]] = set()
    for parent in encounter_parents():
        rows = parent.rows.filter(shell_file_id__in=scopes, status=WorkStatus.FAILED)
        # A set, because an encounter can have a failed parent in two passes.
        failed.update(rows.values_list("shell_file_id", f"{parent.encounter}_id"))
    return Counter(
        record
        for record, encounter in failed
        if (meant := scopes[record].encounters) is None or encounter in meant
    )


def _page_counts(selected_jobs: Sequence[SelectedJob]) -> dict[UUID, int]:
    """Return the pages of the records for which a pass with calls follows."""
    records = {
        each.job.shell_file_id
        for each in selected_jobs
        if any(True for _ in _following(Step(each.job.current_step)))
        or _embeds(Step(each.job.current_step))
    }
    if not records:
        return {}
    rows = ShellFile.objects.filter(id__in=records).values_list("id", "page_count", "pages_read")
    return {record: count or read or 1 for record, count, read in rows}


def _following(step: Step) -> Iterator[WorkTable]:
    """Yield the passes with calls that this installation runs after a step."""
    order = list(Step)
    for table in WORK_TABLES.values():
        is_run = table.step.value not in settings.SKIPPED_PASSES
        if is_run and order.index(table.step) > order.index(step):
            yield table


def _embeds(step: Step) -> bool:
    """Return whether Pass 1.5 is still to come after the begin of a step, and has an embedder."""
    order = list(Step)
    is_run = Step.PASS1_5.value not in settings.SKIPPED_PASSES
    has_embedder = ProviderConfig.of_embedder() is not None
    return is_run and has_embedder and order.index(step) <= order.index(Step.PASS1_5)


def _candidate(
    selected_job: SelectedJob,
    work: _Work,
    encounters: Mapping[UUID, int],
    pages: Mapping[UUID, int],
) -> RetryCandidate:
    items = work.get(selected_job.job.shell_file_id, ())
    rows = [item.row for item in items]
    step = Step(selected_job.job.current_step)
    following = list(_following(step))
    record_pages = pages.get(selected_job.job.shell_file_id, 0)
    embedded_pages = record_pages if _embeds(step) else 0
    return RetryCandidate(
        job_id=selected_job.job.id,
        shell_file_id=selected_job.job.shell_file_id,
        step=step,
        scope=selected_job.scope,
        encounters=_failed_encounters(rows)
        if step in WORK_TABLES and WORK_TABLES[step].has_encounters_alone
        else encounters.get(selected_job.job.shell_file_id, 0),
        calls=len(rows),
        pages=len({page for row in rows for page in _pages(row)}),
        input_tokens=sum(item.text_tokens + _overhead(step) for item in items),
        later_calls=ceil(
            sum(t.calls_a_page * record_pages for t in following)
            + EMBEDDING_CALLS_A_PAGE * embedded_pages
        ),
        later_tokens=sum(t.tokens_a_page * record_pages for t in following)
        + EMBEDDING_TOKENS_A_PAGE * embedded_pages,
        permanent=_permanent(selected_job.job, rows),
    )


def _failed_encounters(rows: Iterable[WorkItem]) -> int:
    """Count the encounters of failed work items, in a pass that has no parents."""
    failed = {row.encounter_id for row in rows if row.status == WorkStatus.FAILED}
    return len(failed - {None})


def _pages(row: WorkItem) -> range:
    return range(row.page_range_start, row.page_range_end + 1)


def _permanent(job: Job, rows: Iterable[WorkItem]) -> tuple[str, ...]:
    causes = {
        (row.error_context or {}).get("final_underlying_error") or row.error_code
        for row in rows
        if row.status == WorkStatus.FAILED
    }
    if not causes and job.error_code:
        causes = {getattr(job, "underlying", None) or job.error_code}
    return tuple(sorted(c for c in causes if c and not ERRORS[ErrorCode(c)].job_retryable))


def _overhead(step: Step) -> int:
    """Return the input tokens of a prompt without pages."""
    return _prompt_tokens(WORK_TABLES[step].task, not settings.PASS1_DISABLE_ZONES)


@cache
def _prompt_tokens(task: str, zones: bool) -> int:
    return estimate_tokens(render(TASKS[task], "", (), include_zones=zones))


def _characters(table: WorkTable, items: Sequence[UUID]) -> dict[UUID, int]:
    """Return the length of each item's text, in one statement for all items."""
    if not items:
        return {}
    context = f"w.{table.context}" if table.context else "NULL"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT w.id, sum(length(p.text)) FROM {table.table} w"  # noqa: S608 - names come from the models
            f" JOIN {table.owner._meta.db_table} o ON o.id = w.{table.owner_field}_id"
            " JOIN shell_file_pages p ON p.shell_file_id = o.shell_file_id AND p.page_number"
            f" BETWEEN coalesce({context}, w.page_range_start) AND w.page_range_end"
            " WHERE w.id = ANY(%s) GROUP BY w.id",
            [list(items)],
        )
        return {item: int(length) for item, length in cursor.fetchall()}


def output_share(sessions: Iterable[UUID], steps: Iterable[Step]) -> float:
    spent = ProviderCall.objects.filter(
        processing_session__in=list(sessions), step__in=list(steps), accepted=True
    ).aggregate(
        asked=Sum("input_tokens", default=0),
        answered=Sum(F("output_tokens") + F("thinking_tokens"), default=0),
    )
    if not spent["asked"]:
        return OUTPUT_SHARE
    return float(spent["answered"]) / float(spent["asked"])


def quota_minutes(provider: ProviderModel, calls: int, tokens: int) -> float:
    if provider.provider == "local":
        return 0.0
    return max(calls / settings.GEMINI_RPM, tokens / settings.GEMINI_TPM)


def same_versions(
    provider: ProviderModel, sessions: Iterable[UUID], steps: Iterable[Step]
) -> bool | None:
    before = set(
        ProviderCall.objects.filter(
            processing_session__in=list(sessions), step__in=list(steps)
        ).values_list("prompt_version", "provider", "model")
    )
    if not before:
        return None
    return before == {(PROMPT_VERSION, provider.provider, provider.model)}
