"""The preview of a retry: the included work, the excluded work with reasons, and the cost.

The preview only reads. The dry run of the command, the retry itself and the console all use this
selection, so they always agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal

from django.utils import timezone

from pipeline.core.errors import CallDetails
from pipeline.operations.preview.estimates import (
    candidates,
    output_share,
    prompt_tokens,
    quota_minutes,
    same_versions,
)
from pipeline.operations.preview.selection import (
    SelectedJob,
    found_by,
    waits_for_retry,
    why_not_retried,
)
from pipeline.operations.preview.types import (
    JOBS_LIMIT,
    Ineligible,
    Preview,
    RetryCandidate,
    Selection,
)
from pipeline.providers.config import ProviderConfig
from pipeline.providers.factory import named_provider
from pipeline.providers.pricing import cost_usd

__all__ = [
    "JOBS_LIMIT",
    "Ineligible",
    "Preview",
    "RetryCandidate",
    "Selection",
    "narrowed",
    "preview",
    "prompt_tokens",
    "waits_for_retry",
    "why_not_retried",
]


def preview(selection: Selection) -> Preview:
    """Preview a retry of this selection without changing anything.

    Raises UserError for an unknown id.
    """
    return costed(selection, *found_by(selection))


def narrowed(preview: Preview, is_meant: Callable[[RetryCandidate], bool], reason: str) -> Preview:
    """Return a preview without the candidates that do not match, and the cost of the rest."""
    kept = tuple(each for each in preview.eligible if is_meant(each))
    left = [
        Ineligible(job_id=each.job_id, shell_file_id=each.shell_file_id, reason=reason)
        for each in preview.eligible
        if not is_meant(each)
    ]
    tokens = sum(each.input_tokens + each.later_tokens for each in kept)
    before = preview.input_tokens + preview.later_tokens
    share = tokens / before if before else 0.0
    calls = sum(each.calls + each.later_calls for each in kept)
    return replace(
        preview,
        eligible=kept,
        ineligible=(*preview.ineligible, *left),
        output_tokens=int(preview.output_tokens * share),
        cost_usd=round(preview.cost_usd * Decimal(share), 6),
        quota_minutes=quota_minutes(named_provider(ProviderConfig.of_settings()), calls, tokens),
    )


def costed(
    selection: object,
    selected_jobs: Sequence[SelectedJob],
    ineligible_jobs: Sequence[Ineligible],
    is_capped: bool = False,
) -> Preview:
    """Return the preview of these jobs, with their cost and the excluded jobs."""
    eligible, earlier = candidates(selected_jobs)
    tokens = sum(each.input_tokens + each.later_tokens for each in eligible)
    calls = sum(each.calls + each.later_calls for each in eligible)
    provider = named_provider(ProviderConfig.of_settings())
    output = int(tokens * output_share(earlier))
    return Preview(
        selection=selection,
        eligible=eligible,
        ineligible=tuple(ineligible_jobs),
        output_tokens=output,
        cost_usd=cost_usd(
            provider.provider, CallDetails(input_tokens=tokens, output_tokens=output)
        ),
        quota_minutes=quota_minutes(provider, calls, tokens),
        same_versions=same_versions(provider, earlier),
        taken_at=timezone.now(),
        is_capped=is_capped,
    )
