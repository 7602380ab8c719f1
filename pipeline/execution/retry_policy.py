"""What follows from a failed call: another call after a delay, or none, and what the call cost.

The module reads no clock, no settings, and has no randomness of its own. Attempts and limited
calls are spent from separate budgets. The backoff is 1, 2, 4 … 30 s, jitter only shortens the
backoff, and the server's hint is a floor (requirements 6, 7 and 26).
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from pipeline.core.errors import ERRORS, Budget, ErrorCode

BASE_S = 1.0
CAP_S = 30.0
JITTER = 0.25
"""Largest part by which a backoff is shortened, so that calls which failed together spread."""
HINT_SPREAD_S = 1.0
"""Calls that were told the same moment to come back are spread over so many seconds after it."""


@dataclass(frozen=True, kw_only=True)
class RetryLimits:
    """The figures of the policy; `scale` is the one time scale, which a server's hint ignores."""

    max_waits: int = 20
    """`RATE_LIMIT_BUDGET`: limited calls of one work item, the last one included."""
    base_s: float = BASE_S
    cap_s: float = CAP_S
    scale: float = 1.0


@dataclass(frozen=True, kw_only=True)
class RetryVerdict:
    """What is to be done after a failed call."""

    delay_s: float | None
    """Seconds of this process's clock until the next call; None: there is none."""
    budget: Budget
    """What this call cost; SPLIT and PARK ask the caller to halve the pages, or to park the job."""
    code: ErrorCode
    """How the split fails, where no call follows; MAX_RETRIES_EXCEEDED hides its cause."""
    message: str = ""
    """Why the split fails, where the call's own error does not say so."""

    @property
    def spends_attempt(self) -> bool:
        """Whether the call counts as one attempt."""
        return self.budget in {Budget.ATTEMPT, Budget.NONE}


def decide(
    code: ErrorCode,
    *,
    attempts: int,
    waits: int,
    max_attempts: int,
    hint_s: float | None,
    rng: random.Random,
    limits: RetryLimits | None = None,
) -> RetryVerdict:
    """Decide about a call that failed with `code`.

    `attempts` and `waits` are what was spent before this call, `hint_s` the server's seconds.
    """
    limits = limits or RetryLimits()
    budget = ERRORS[code].budget
    match budget:
        case Budget.ATTEMPT:
            spent, granted, unit = attempts + 1, max_attempts, "attempts"
        case Budget.RATE_LIMIT:
            spent, granted, unit = waits + 1, limits.max_waits, "limited calls"
        case _:
            return RetryVerdict(delay_s=None, budget=budget, code=code)
    if spent >= granted:
        return RetryVerdict(
            delay_s=None,
            budget=budget,
            code=ErrorCode.MAX_RETRIES_EXCEEDED,
            message=f"all {granted} {unit} are used up; the last one failed with {code}",
        )
    return RetryVerdict(delay_s=_delay_s(spent, hint_s, rng, limits), budget=budget, code=code)


def backoff_s(failures: int, *, base_s: float = BASE_S, cap_s: float = CAP_S) -> float:
    """Return the longest wait after so many failures, from 1, in unscaled seconds: 1, 2, 4 … 30."""
    # The exponent is bounded, because a float overflows at 1,024 limited calls in a row.
    return min(cap_s, base_s * 2.0 ** min(failures - 1, 64))


def _delay_s(failures: int, hint_s: float | None, rng: random.Random, limits: RetryLimits) -> float:
    longest = backoff_s(failures, base_s=limits.base_s, cap_s=limits.cap_s) * limits.scale
    delay = longest * (1.0 - JITTER * rng.random())
    if hint_s is None:
        return delay
    return max(delay, hint_s + HINT_SPREAD_S * limits.scale * rng.random())
