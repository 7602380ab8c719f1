"""What a retry would do: what it takes up, what it leaves and why, and what that costs.

Imports models, the provider's prompts and prices; reads only. The one selector behind the command
line's dry run, the retry itself and the console, so that no two of them can disagree.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.utils import timezone

from pipeline.errors import CallFacts
from pipeline.preview.choosing import Found, found_by, waits_for_retry, why_not_retried
from pipeline.preview.costs import candidates, output_share, quota_minutes, same_versions
from pipeline.preview.values import Candidate, Ineligible, Preview, Selection
from pipeline.pricing import cost_usd
from pipeline.provider.factory import named_provider

__all__ = [
    "Candidate",
    "Ineligible",
    "Preview",
    "Selection",
    "preview",
    "waits_for_retry",
    "why_not_retried",
]


def preview(selection: Selection) -> Preview:
    """Look at what a retry of this selection would do; changes nothing.

    Raises UserError where an id names nothing.
    """
    found, left = found_by(selection)
    return costed(selection, found, left)


def costed(selection: object, found: Sequence[Found], left: Sequence[Ineligible]) -> Preview:
    """Say what it costs to go on with these jobs, and what is left alone."""
    eligible, sessions = candidates(found)
    tokens = sum(each.input_tokens for each in eligible)
    calls = sum(each.calls for each in eligible)
    steps = {each.step for each in eligible}
    provider = named_provider(settings)
    output = int(tokens * output_share(sessions, steps))
    return Preview(
        selection=selection,
        eligible=eligible,
        ineligible=tuple(left),
        output_tokens=output,
        cost_usd=cost_usd(provider.provider, CallFacts(input_tokens=tokens, output_tokens=output)),
        quota_minutes=quota_minutes(provider, calls, tokens),
        same_versions=same_versions(provider, sessions, steps),
        taken_at=timezone.now(),
    )
