"""The limit of one process while Redis is away: a small, evenly spaced share of the quota.

The functions are pure: monotonic seconds come in, seconds to wait go out. The first start must
wait. So a process that has just started, or has just lost Redis, adds nothing to a minute that may
be full.
"""

from __future__ import annotations

from pipeline.ratelimit.config import Quota, Tuning
from pipeline.ratelimit.types import Outcome, OutcomeKind

UNLIMITED_REQUESTS = 300
"""Requests per minute from which the share is taken if the provider has no quota."""


class LocalLimit:
    """Starts of one process, spaced by their cost. Not thread-safe: `Fallback` holds the lock."""

    def __init__(self, quota: Quota, tuning: Tuning, now: float) -> None:
        self._tuning = tuning
        part = tuning.local_share / quota.window_s
        self._requests_per_s = (quota.requests or UNLIMITED_REQUESTS) * part
        self._tokens_per_s = quota.tokens * part if quota.tokens else None
        self._next_at = now + 1 / self._requests_per_s
        self._failures = 0
        self.requests = 0
        """Starts that Redis does not know about yet."""
        self.tokens = 0
        self.items: list[str] = []
        """Ids of started items that may still be limited items in Redis."""

    def wait_s(self, now: float, tokens: int) -> float:
        """Take a start and return 0, or return the seconds until the next start."""
        if now < self._next_at:
            return self._next_at - now
        spacing = 1 / self._requests_per_s
        if self._tokens_per_s is not None:
            spacing = max(spacing, tokens / self._tokens_per_s)
        self._next_at = now + spacing
        self.requests += 1
        self.tokens += tokens
        return 0.0

    def heed(self, outcome: Outcome, now: float) -> float:
        """Hold back after a failure, longer each time. Return the seconds until the next start."""
        if outcome.kind is OutcomeKind.OK:
            self._failures = 0
        elif outcome.kind in {OutcomeKind.LIMITED, OutcomeKind.QUOTA, OutcomeKind.FAILED}:
            backoff = self._tuning.cooldown_base_s * 2.0 ** min(self._failures, 30)
            self._failures += 1
            hold = max(outcome.retry_after_s or 0.0, min(backoff, self._tuning.cooldown_cap_s))
            self._next_at = max(self._next_at, now + hold)
        return max(0.0, self._next_at - now)
