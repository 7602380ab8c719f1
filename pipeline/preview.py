"""What a retry would do: what it takes up, what it leaves and why, and what that costs.

Imports models, the provider's prompts and prices; reads only. The one selector behind the command
line's dry run, the retry itself and the console, so that no two of them can disagree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from pipeline.errors import ERRORS, CallFacts, ErrorCode, UserError
from pipeline.models import Batch, Chunk, EncounterResult, Job, ProviderCall
from pipeline.pricing import cost_usd
from pipeline.provider.factory import named_provider
from pipeline.provider.prompts import (
    PROMPT_VERSION,
    estimate_tokens,
    render_discovery,
    render_entities,
)
from pipeline.states import JobStatus, Step, WorkStatus
from pipeline.transitions import Scope
from pipeline.types import ProviderModel

OUTPUT_SHARE = 0.5
"""Output tokens for each input token where no call tells: a ten-page batch of tables needs some
12,000, and its bound is 24,000 of input."""

_LEFT: dict[JobStatus, str] = {
    JobStatus.COMPLETED: "it is complete already",
    JobStatus.PENDING: "it is waiting for a worker already",
    JobStatus.PROCESSING: "it is running",
    JobStatus.DEAD: "it is a dead letter; use requeue",
    JobStatus.CANCELLED: "it was cancelled; retry the record",
}
"""Why a job is left alone, by its status."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is to be retried: by one id, or by the code that it failed with.

    Raises ValueError unless exactly one of the five is given. The times bound when it failed.
    """

    record: UUID | None = None
    job: UUID | None = None
    encounter: UUID | None = None
    batch: UUID | None = None
    """A batch of Pass 1 or a chunk of Pass 0.5."""
    error_code: ErrorCode | None = None
    """The code itself, or the one behind MAX_RETRIES_EXCEEDED."""
    step: Step | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        given = (self.record, self.job, self.encounter, self.batch, self.error_code)
        if sum(each is not None for each in given) != 1:
            raise ValueError("name one record, job, encounter or batch, or one code")

    def __str__(self) -> str:
        for name in ("record", "job", "encounter", "batch"):
            if (value := getattr(self, name)) is not None:
                return f"{name} {value}"
        return f"all that failed with {self.error_code}"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A job that a retry would put back in line, with what it would ask for in its present pass."""

    job_id: UUID
    shell_file_id: UUID
    step: Step
    scope: Scope = field(repr=False)
    encounters: int
    calls: int
    pages: int
    """Pages sent again."""
    input_tokens: int
    """By estimate, of the pages' text."""
    permanent: tuple[str, ...] = ()
    """Causes that no retry mends by itself."""


@dataclass(frozen=True, kw_only=True)
class Ineligible:
    """Something that a retry would leave as it is, and why."""

    job_id: UUID
    shell_file_id: UUID
    reason: str


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What a retry would do, as of `taken_at`. Later passes follow; their calls are not counted."""

    selection: Selection
    eligible: tuple[Candidate, ...]
    ineligible: tuple[Ineligible, ...]
    output_tokens: int
    """By the share that earlier calls of the same passes needed."""
    cost_usd: Decimal
    quota_minutes: float
    """What the calls take of the quota at least; whichever of requests and tokens binds."""
    same_versions: bool | None
    """Whether prompt and model are those of the calls before; None where there were none."""
    taken_at: datetime

    @property
    def calls(self) -> int:
        """How many calls it would make, if each succeeds at once."""
        return sum(each.calls for each in self.eligible)

    @property
    def input_tokens(self) -> int:
        """How many input tokens they carry, by estimate."""
        return sum(each.input_tokens for each in self.eligible)

    @property
    def pages(self) -> int:
        """How many pages are sent again."""
        return sum(each.pages for each in self.eligible)

    @property
    def encounters(self) -> int:
        """How many failed encounters are taken up."""
        return sum(each.encounters for each in self.eligible)

    @property
    def reasons(self) -> dict[str, int]:
        """How many are left alone, by reason."""
        return dict(Counter(each.reason for each in self.ineligible).most_common())

    def as_json(self) -> dict[str, Any]:
        """Return it for programs; holds ids and figures only."""
        return {
            "selection": str(self.selection),
            "taken_at": self.taken_at,
            "eligible": [
                {
                    "job_id": each.job_id,
                    "shell_file_id": each.shell_file_id,
                    "step": each.step,
                    "encounters": each.encounters,
                    "calls": each.calls,
                    "pages": each.pages,
                    "input_tokens": each.input_tokens,
                    "permanent": each.permanent,
                }
                for each in self.eligible
            ],
            "ineligible": [
                {
                    "job_id": each.job_id,
                    "shell_file_id": each.shell_file_id,
                    "reason": each.reason,
                }
                for each in self.ineligible
            ],
            "calls": self.calls,
            "pages": self.pages,
            "encounters": self.encounters,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost_usd,
            "quota_minutes": round(self.quota_minutes, 2),
            "same_versions": self.same_versions,
        }


def preview(selection: Selection) -> Preview:
    """Look at what a retry of this selection would do; changes nothing.

    Raises UserError where an id names nothing.
    """
    found, left = _found(selection)
    work = _work(found)
    eligible = tuple(_candidate(each, work) for each in found)
    tokens = sum(each.input_tokens for each in eligible)
    calls = sum(each.calls for each in eligible)
    sessions = {row.processing_session_id for rows in work.values() for row in rows}
    steps = {each.step for each in eligible}
    provider = named_provider(settings)
    output = int(tokens * _output_share(sessions, steps))
    return Preview(
        selection=selection,
        eligible=eligible,
        ineligible=tuple(left),
        output_tokens=output,
        cost_usd=cost_usd(provider.provider, CallFacts(input_tokens=tokens, output_tokens=output)),
        quota_minutes=_quota_minutes(provider, calls, tokens),
        same_versions=_same_versions(provider, sessions, steps),
        taken_at=timezone.now(),
    )


@dataclass(frozen=True, kw_only=True)
class _Found:
    job: Job
    scope: Scope


def _found(selection: Selection) -> tuple[list[_Found], list[Ineligible]]:
    if selection.error_code is not None:
        return _by_code(selection, selection.error_code)
    job, scope, failed = _by_id(selection)
    reason = None if scope.is_all else _why_not_a_part(job, failed)
    reason = reason or _why_not(job, scope)
    if reason is not None:
        return [], [_left(job, reason)]
    return [_Found(job=job, scope=scope)], []


def _by_id(selection: Selection) -> tuple[Job, Scope, str]:
    """Return the job of an id, which of its work is meant, and how that stands."""
    jobs = Job.objects.order_by("-created_at")
    if selection.record is not None:
        return _one(jobs.filter(shell_file_id=selection.record), selection), Scope(), ""
    if selection.job is not None:
        return _one(jobs.filter(id=selection.job), selection), Scope(), ""
    if selection.encounter is not None:
        result = _one(
            EncounterResult.objects.filter(
                Q(id=selection.encounter) | Q(healthcare_encounter_id=selection.encounter)
            ),
            selection,
        )
        job = _one(jobs.filter(shell_file_id=result.shell_file_id), selection)
        scope = Scope(encounters=(result.healthcare_encounter_id,), chunks=())
        return job, scope, result.status
    ids = [selection.batch] if selection.batch else []
    batches = Batch.objects.filter(id__in=ids).select_related("pass1_encounter_result")
    batch = batches.first()
    if batch is not None:
        record = batch.pass1_encounter_result.shell_file_id
        scope = Scope(encounters=(batch.healthcare_encounter_id,), batches=(batch.id,), chunks=())
        return _one(jobs.filter(shell_file_id=record), selection), scope, batch.status
    chunk = _one(Chunk.objects.filter(id__in=ids).select_related("discovery_session"), selection)
    job = _one(jobs.filter(shell_file_id=chunk.discovery_session.shell_file_id), selection)
    return job, Scope(encounters=(), batches=(), chunks=(chunk.id,)), chunk.status


def _by_code(selection: Selection, code: ErrorCode) -> tuple[list[_Found], list[Ineligible]]:
    failed = Q(status=WorkStatus.FAILED) & (
        Q(error_code=code) | Q(error_context__final_underlying_error=code)
    )
    batches = Batch.objects.filter(
        failed, pass1_encounter_result__shell_file_id=OuterRef("shell_file_id")
    )
    chunks = Chunk.objects.filter(
        failed, discovery_session__shell_file_id=OuterRef("shell_file_id")
    )
    own = Q(error_details__error_code=code) | Q(error_details__underlying_error=code)
    jobs = Job.objects.filter(own | Exists(batches) | Exists(chunks)).order_by("created_at", "id")
    if selection.step is not None:
        jobs = jobs.filter(current_step=selection.step)
    # One that is parked for its retry has not ended; it failed when it was parked.
    if selection.since is not None:
        jobs = jobs.filter(
            Q(completed_at__gte=selection.since)
            | Q(completed_at=None, updated_at__gte=selection.since)
        )
    if selection.until is not None:
        jobs = jobs.filter(
            Q(completed_at__lte=selection.until)
            | Q(completed_at=None, updated_at__lte=selection.until)
        )
    found, left = [], []
    for job in jobs:
        scope = Scope()
        if job.status == JobStatus.FAILED:
            scope = _scope_of_code(job, code, failed)
        reason = _LEFT[JobStatus.CANCELLED] if job.status == JobStatus.CANCELLED else None
        reason = reason or _why_not(job, scope)
        if reason is None:
            found.append(_Found(job=job, scope=scope))
        else:
            left.append(_left(job, reason))
    return found, left


def _scope_of_code(job: Job, code: ErrorCode, failed: Q) -> Scope:
    """Return what of a job failed with a code; all of it where it failed as a whole."""
    batches = Batch.objects.filter(
        failed, pass1_encounter_result__shell_file_id=job.shell_file_id
    ).values_list("id", "healthcare_encounter_id")
    # Encounters whose replies are all there, but which could not be published.
    refused = EncounterResult.objects.filter(
        shell_file_id=job.shell_file_id,
        status=WorkStatus.FAILED,
        failure_batch_index=None,
        error_code=code,
    ).values_list("healthcare_encounter_id", flat=True)
    if batches or refused:
        return Scope(
            encounters=tuple({*(encounter for _, encounter in batches), *refused}),
            batches=tuple(batch for batch, _ in batches) or None,
            chunks=(),
        )
    chunks = Chunk.objects.filter(
        failed, discovery_session__shell_file_id=job.shell_file_id
    ).values_list("id", flat=True)
    if chunks:
        return Scope(encounters=(), batches=(), chunks=tuple(chunks))
    return Scope()


def _why_not(job: Job, scope: Scope) -> str | None:
    status = JobStatus(job.status)
    if status == JobStatus.FAILED or (status == JobStatus.CANCELLED and scope.is_all):
        return None
    if status == JobStatus.PARKED:
        if not waits_for_retry(job):
            return f"it is parked and goes on by itself: {job.park_reason}"
        return None if scope.is_all else "it is parked for its retry; retry the record"
    return _LEFT[status]


def _why_not_a_part(job: Job, status: str) -> str | None:
    if job.status == JobStatus.FAILED and status != WorkStatus.FAILED:
        return f"it has not failed: it is {status}"
    return None


def waits_for_retry(job: Job) -> bool:
    """Tell whether a job is parked because it failed and is tried again by itself."""
    return bool(
        job.status == JobStatus.PARKED
        and job.error_code
        and job.incident_id is None
        and job.pause_id is None
    )


def _left(job: Job, reason: str) -> Ineligible:
    return Ineligible(job_id=job.id, shell_file_id=job.shell_file_id, reason=reason)


def _one(rows: QuerySet[Any], selection: Selection) -> Any:
    row = rows.first()
    if row is None:
        raise UserError(f"there is no {selection}")
    return row


def _work(found: Sequence[_Found]) -> Mapping[UUID, Sequence[Any]]:
    """Return the batches and chunks that would be asked for, by record."""
    scopes = {each.job.shell_file_id: each.scope for each in found}
    steps = {each.job.shell_file_id: each.job.current_step for each in found}
    open_states = [WorkStatus.FAILED, WorkStatus.PENDING, WorkStatus.PROCESSING]
    rows: list[Any] = [
        *Batch.objects.filter(
            pass1_encounter_result__shell_file_id__in=scopes, status__in=open_states
        ).annotate(record=F("pass1_encounter_result__shell_file_id")),
        *Chunk.objects.filter(
            discovery_session__shell_file_id__in=scopes, status__in=open_states
        ).annotate(record=F("discovery_session__shell_file_id")),
    ]
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


def _candidate(found: _Found, work: Mapping[UUID, Sequence[Any]]) -> Candidate:
    rows = work.get(found.job.shell_file_id, ())
    results = EncounterResult.objects.filter(
        shell_file_id=found.job.shell_file_id, status=WorkStatus.FAILED
    )
    if found.scope.encounters is not None:
        results = results.filter(healthcare_encounter_id__in=found.scope.encounters)
    return Candidate(
        job_id=found.job.id,
        shell_file_id=found.job.shell_file_id,
        step=Step(found.job.current_step),
        scope=found.scope,
        encounters=results.count(),
        calls=len(rows),
        pages=len({page for row in rows for page in _pages(row)}),
        input_tokens=_input_tokens(rows),
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
        causes = {(job.error_details or {}).get("underlying_error") or job.error_code}
    return tuple(sorted(c for c in causes if c and not ERRORS[ErrorCode(c)].retryable))


def _input_tokens(rows: Sequence[Any]) -> int:
    batches = [row for row in rows if isinstance(row, Batch)]
    chunks = [row.id for row in rows if isinstance(row, Chunk)]
    tokens: int = sum(row.estimated_input_tokens for row in batches)
    if batches:
        zones = not settings.PASS1_DISABLE_ZONES
        tokens += len(batches) * estimate_tokens(render_entities("", (), include_zones=zones))
    if chunks:
        tokens += len(chunks) * estimate_tokens(render_discovery("", ()))
        tokens += _characters(chunks) // 4
    return tokens


def _characters(chunks: Sequence[UUID]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(length(p.text)), 0) FROM pass05_chunk_results c"
            " JOIN pass05_progressive_sessions d ON d.id = c.discovery_session_id"
            " JOIN shell_file_pages p ON p.shell_file_id = d.shell_file_id AND p.page_number"
            " BETWEEN coalesce(c.context_page, c.page_range_start) AND c.page_range_end"
            " WHERE c.id = ANY(%s)",
            [list(chunks)],
        )
        (characters,) = cursor.fetchone()
    return int(characters)


def _output_share(sessions: Iterable[UUID], steps: Iterable[Step]) -> float:
    spent = ProviderCall.objects.filter(
        processing_session__in=list(sessions), step__in=list(steps), accepted=True
    ).aggregate(
        asked=Sum("input_tokens", default=0),
        answered=Sum(F("output_tokens") + F("thinking_tokens"), default=0),
    )
    if not spent["asked"]:
        return OUTPUT_SHARE
    return float(spent["answered"]) / float(spent["asked"])


def _quota_minutes(provider: ProviderModel, calls: int, tokens: int) -> float:
    if provider.provider == "local":
        return 0.0
    return max(calls / settings.GEMINI_RPM, tokens / settings.GEMINI_TPM)


def _same_versions(
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
