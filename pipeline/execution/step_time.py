"""The time that a provider step is given: the plan of its calls, and the longest chain of retries.

The plan is generous, because a step that runs out of time repeats its calls in flight. Waits for
the rate limiter are left out of the time besides (see `core/deadline.py`), so the plan need not
foresee them.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from medproc.timing import scaled
from pipeline.core.deadline import SOFT_SHARE
from pipeline.execution import backoff
from pipeline.providers.base import Provider
from pipeline.ratelimit import Quota

QUOTA_SHARE = 0.5
"""The part of the quota on which a step may count (requirement 26)."""


def slots_of(provider: Provider) -> int:
    """Return how many calls of one step are in flight at most."""
    # The settings have the name of Pass 1, and are for every pass that calls the provider.
    concurrency = int(settings.PASS1_CONCURRENCY_LIMIT)
    return min(concurrency, provider.max_calls or concurrency)


def step_time_s(sizes: Sequence[float], provider: Provider, *, jobs: int = 1) -> float:
    """Return how long a step may take, in seconds of this process's clock.

    `sizes` are the estimated input tokens of its calls. `jobs` is the number of jobs that share the
    quota, including the job of this step. The time is the larger of STEP_DEADLINE_MIN_S and the sum
    of two parts. One part is the slowest of three plans: the requests and the tokens at half of the
    quota, shared by the jobs, and the calls at their full length in all slots. The other part is
    the longest chain of retries of one call (requirement 26).
    """
    quota = Quota.of(provider.name)
    share = QUOTA_SHARE / max(jobs, 1)
    # The quota's window is the provider's, so TIME_SCALE does not apply to these two plans.
    by_requests = len(sizes) / (quota.requests * share) if quota.requests else 0.0
    by_tokens = sum(sizes) / (quota.tokens * share) if quota.tokens else 0.0
    # Nothing begins after the soft end, so the last call must begin before it.
    by_slots = scaled(len(sizes) / slots_of(provider) * settings.CALL_DEADLINE_S / SOFT_SHARE)
    planned_s = max(by_requests * quota.window_s, by_tokens * quota.window_s, by_slots)
    attempts = settings.PASS1_MAX_RETRIES
    chain_s = attempts * settings.CALL_DEADLINE_S + sum(
        backoff.backoff_s(n) for n in range(1, attempts)
    )
    return max(scaled(settings.STEP_DEADLINE_MIN_S), planned_s + scaled(chain_s))
