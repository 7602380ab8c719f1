"""The estimate of the calls, tokens and cost of a retry. This module only reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil

from django.conf import settings

from pipeline.core.errors import ERRORS, ErrorCode
from pipeline.core.states import Step
from pipeline.core.types import ProviderModel
from pipeline.models.work_tables import WORK_TABLES, WorkTable
from pipeline.operations.preview.record_work import (
    EarlierCalls,
    RecordWork,
    earlier_calls,
    work_of,
)
from pipeline.operations.preview.selection import SelectedJob, ShortJob
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


@dataclass(frozen=True, kw_only=True)
class _StepFigures:
    """The figures that all jobs of a pass have in common."""

    step: Step
    has_encounters_alone: bool
    prompt_tokens: int
    """Input tokens of a prompt without pages."""
    later_calls: float
    """Calls of the passes that follow, for each page of the record."""
    later_tokens: int
    """Input tokens of these calls, for each page."""


def candidates(
    selected_jobs: Sequence[SelectedJob],
) -> tuple[tuple[RetryCandidate, ...], EarlierCalls]:
    """Return the work of each job, and the earlier calls of the same passes."""
    work = work_of(selected_jobs)
    steps = {each.job.current_step for each in selected_jobs}
    figures = {step: _figures(Step(step)) for step in steps}
    found = tuple(
        _candidate(each, figures[each.job.current_step], of_record)
        for each, of_record in zip(selected_jobs, work, strict=True)
    )
    with_calls = [each.shell_file_id for each in found if each.calls]
    return found, earlier_calls(with_calls, {each.step for each in figures.values()})


def _figures(step: Step) -> _StepFigures:
    following = list(_following(step))
    embeds = _embeds(step)
    table = WORK_TABLES.get(step)
    return _StepFigures(
        step=step,
        has_encounters_alone=table is not None and table.has_encounters_alone,
        prompt_tokens=prompt_tokens(step),
        later_calls=sum(each.calls_a_page for each in following)
        + (EMBEDDING_CALLS_A_PAGE if embeds else 0),
        later_tokens=sum(each.tokens_a_page for each in following)
        + (EMBEDDING_TOKENS_A_PAGE if embeds else 0),
    )


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
    selected_job: SelectedJob, figures: _StepFigures, work: RecordWork
) -> RetryCandidate:
    job, scope = selected_job
    # By position, because names take twice the time for each of 10,000 jobs.
    return RetryCandidate(
        job.id,
        job.shell_file_id,
        figures.step,
        scope,
        work.failed_encounters if figures.has_encounters_alone else work.failed_parents,
        work.calls,
        work.pages,
        work.text_tokens + work.calls * figures.prompt_tokens,
        ceil(figures.later_calls * work.record_pages),
        figures.later_tokens * work.record_pages,
        _permanent(job, work) if work.causes or job.error_code else (),
    )


def _permanent(job: ShortJob, work: RecordWork) -> tuple[str, ...]:
    causes = set(work.causes)
    if not causes and job.error_code:
        causes = {job.underlying or job.error_code}
    return tuple(sorted(c for c in causes if not ERRORS[ErrorCode(c)].job_retryable))


def prompt_tokens(step: Step) -> int:
    """Return the input tokens that each call of a pass needs beside its pages."""
    table = WORK_TABLES.get(step)
    return _prompt_tokens(table.task, not settings.PASS1_DISABLE_ZONES) if table else 0


@cache
def _prompt_tokens(task: str, zones: bool) -> int:
    return estimate_tokens(render(TASKS[task], "", (), include_zones=zones))


def output_share(earlier: EarlierCalls) -> float:
    return earlier.answered / earlier.asked if earlier.asked else OUTPUT_SHARE


def quota_minutes(provider: ProviderModel, calls: int, tokens: int) -> float:
    if provider.provider == "local":
        return 0.0
    return max(calls / settings.GEMINI_RPM, tokens / settings.GEMINI_TPM)


def same_versions(provider: ProviderModel, earlier: EarlierCalls) -> bool | None:
    if not earlier.versions:
        return None
    return earlier.versions == {(PROMPT_VERSION, provider.provider, provider.model)}
