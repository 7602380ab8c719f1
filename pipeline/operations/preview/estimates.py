"""What a retry would ask for, and what that costs, by estimate.

Imports models, the provider's prompts and prices; reads only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F, Sum

from pipeline.core.errors import ERRORS, ErrorCode
from pipeline.core.states import Step, WorkStatus
from pipeline.core.types import ProviderModel
from pipeline.models import Batch, Chunk, EncounterResult, Job, ProviderCall
from pipeline.operations.preview.selection import RECORD, Found, of_records
from pipeline.operations.preview.types import Candidate
from pipeline.providers.prompts import (
    PROMPT_VERSION,
    estimate_tokens,
    render_discovery,
    render_entities,
)
from pipeline.transitions import Scope

OUTPUT_SHARE = 0.5
"""Output tokens for each input token where no call tells: a ten-page batch of tables needs some
12,000, and its bound is 24,000 of input."""

_READ: dict[type[Batch] | type[Chunk], tuple[str, ...]] = {
    model: (
        "status", "error_code", "error_context", "page_range_start", "page_range_end",
        "processing_session_id", *own,
    )
    for model, own in (
        (Batch, ("healthcare_encounter_id", "estimated_input_tokens")),
        (Chunk, ()),
    )
}  # fmt: skip
"""Replies, spans and histories are long, and say nothing here."""


def candidates(found: Sequence[Found]) -> tuple[tuple[Candidate, ...], set[UUID]]:
    """Return what each job would ask for, and the sessions whose calls tell what that costs."""
    work = _work(found)
    characters = _characters([row.id for rows in work.values() for row in rows if _is_chunk(row)])
    encounters = _encounters(found)
    sessions = {row.processing_session_id for rows in work.values() for row in rows}
    return tuple(_candidate(each, work, encounters, characters) for each in found), sessions


def _work(found: Sequence[Found]) -> Mapping[UUID, Sequence[Any]]:
    """Return the batches and chunks that would be asked for, by record."""
    scopes = {each.job.shell_file_id: each.scope for each in found}
    steps = {each.job.shell_file_id: each.job.current_step for each in found}
    open_states = [WorkStatus.FAILED, WorkStatus.PENDING, WorkStatus.PROCESSING]
    rows: list[Any] = []
    for model in (Batch, Chunk):
        waiting = model._default_manager.filter(status__in=open_states, **of_records(model, scopes))
        rows += waiting.annotate(record=F(RECORD[model])).only(*_READ[model])
    work: defaultdict[UUID, list[Any]] = defaultdict(list)
    for row in rows:
        of_step = Step.PASS1 if isinstance(row, Batch) else Step.PASS05
        is_meant = row.status != WorkStatus.FAILED or _is_in(row, scopes[row.record])
        if steps[row.record] == of_step and is_meant:
            work[row.record].append(row)
    return work


def _is_in(row: Batch | Chunk, scope: Scope) -> bool:
    if isinstance(row, Chunk):
        return scope.chunks is None or row.id in scope.chunks
    if scope.encounters is not None and row.healthcare_encounter_id not in scope.encounters:
        return False
    return scope.batches is None or row.id in scope.batches


def _encounters(found: Sequence[Found]) -> dict[UUID, int]:
    """Count the failed encounters that are taken up, by record."""
    scopes = {each.job.shell_file_id: each.scope for each in found}
    failed = EncounterResult.objects.filter(
        shell_file_id__in=scopes, status=WorkStatus.FAILED
    ).values_list("shell_file_id", "healthcare_encounter_id")
    return Counter(
        record
        for record, encounter in failed
        if (meant := scopes[record].encounters) is None or encounter in meant
    )


def _candidate(
    found: Found,
    work: Mapping[UUID, Sequence[Any]],
    encounters: Mapping[UUID, int],
    characters: Mapping[UUID, int],
) -> Candidate:
    rows = work.get(found.job.shell_file_id, ())
    return Candidate(
        job_id=found.job.id,
        shell_file_id=found.job.shell_file_id,
        step=Step(found.job.current_step),
        scope=found.scope,
        encounters=encounters.get(found.job.shell_file_id, 0),
        calls=len(rows),
        pages=len({page for row in rows for page in _pages(row)}),
        input_tokens=_input_tokens(rows, characters),
        permanent=_permanent(found.job, rows),
    )


def _pages(row: Batch | Chunk) -> range:
    return range(row.page_range_start, row.page_range_end + 1)


def _permanent(job: Job, rows: Iterable[Any]) -> tuple[str, ...]:
    causes = {
        (row.error_context or {}).get("final_underlying_error") or row.error_code
        for row in rows
        if row.status == WorkStatus.FAILED
    }
    if not causes and job.error_code:
        causes = {getattr(job, "underlying", None) or job.error_code}
    return tuple(sorted(c for c in causes if c and not ERRORS[ErrorCode(c)].retryable))


def _input_tokens(rows: Sequence[Any], characters: Mapping[UUID, int]) -> int:
    batches = [row for row in rows if isinstance(row, Batch)]
    chunks = [row.id for row in rows if _is_chunk(row)]
    tokens: int = sum(row.estimated_input_tokens for row in batches)
    if batches:
        tokens += len(batches) * _entity_overhead(not settings.PASS1_DISABLE_ZONES)
    if chunks:
        tokens += len(chunks) * _discovery_overhead()
        tokens += sum(characters.get(each, 0) for each in chunks) // 4
    return tokens


def _is_chunk(row: Batch | Chunk) -> bool:
    return isinstance(row, Chunk)


@cache
def _discovery_overhead() -> int:
    return estimate_tokens(render_discovery("", ()))


@cache
def _entity_overhead(zones: bool) -> int:
    return estimate_tokens(render_entities("", (), include_zones=zones))


def _characters(chunks: Sequence[UUID]) -> dict[UUID, int]:
    """Return how long the text of each chunk is; one statement for all of them."""
    if not chunks:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.id, sum(length(p.text)) FROM pass05_chunk_results c"
            " JOIN pass05_progressive_sessions d ON d.id = c.discovery_session_id"
            " JOIN shell_file_pages p ON p.shell_file_id = d.shell_file_id AND p.page_number"
            " BETWEEN coalesce(c.context_page, c.page_range_start) AND c.page_range_end"
            " WHERE c.id = ANY(%s) GROUP BY c.id",
            [list(chunks)],
        )
        return {chunk: int(length) for chunk, length in cursor.fetchall()}


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
