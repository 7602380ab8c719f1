"""The ordinary retry of a failed call; `failed_call` asks only if no outage, split or park applies.

Attempts and limited calls are separate budgets. The backoff is 1, 2, 4 … 30 s, jitter only shortens
the backoff, and the server's hint is a floor (requirements 6, 7 and 26). The functions are pure:
they read no clock and no settings, and the caller passes the randomness.
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
    """The figures of a retry. `scale` is TIME_SCALE; a server's hint is not scaled."""

    max_limited_calls: int = 20
    """`RATE_LIMIT_BUDGET`: the limited calls of one work item, including the last one."""
    base_s: float = BASE_S
    cap_s: float = CAP_S
    scale: float = 1.0


@dataclass(frozen=True, kw_only=True)
class RetryDecision:
    """Whether a call follows a failed call, and the cost of the failed call."""

    delay_s: float | None
    """Seconds of this process's clock until the next call; None if no call follows."""
    budget: Budget
    """The cost of the failed call. SPLIT and PARK ask the caller to halve the pages or to park."""
    code: ErrorCode
    """The code of the failed split if no call follows. MAX_RETRIES_EXCEEDED does not name the last
    error; `message` does."""
    message: str = ""
    """Why the split fails; empty if the call's own error says so."""

    @property
    def spends_attempt(self) -> bool:
        """Whether the call counts as one attempt."""
        return self.budget in {Budget.ATTEMPT, Budget.NONE}


def decide(
    code: ErrorCode,
    *,
    attempts: int,
    limited_calls: int,
    max_attempts: int,
    hint_s: float | None,
    rng: random.Random,
    limits: RetryLimits | None = None,
) -> RetryDecision:
    """Decide about a call that failed with `code`.

    `attempts` and `limited_calls` were spent before this call. `hint_s` is the server's hint in
    seconds.
    """
    limits = limits or RetryLimits()
    budget = ERRORS[code].budget
    match budget:
        case Budget.ATTEMPT:
            spent, granted, unit = attempts + 1, max_attempts, "attempts"
        case Budget.RATE_LIMIT:
            spent, granted, unit = limited_calls + 1, limits.max_limited_calls, "limited calls"
        case _:
            return RetryDecision(delay_s=None, budget=budget, code=code)
    if spent >= granted:
        return RetryDecision(
            delay_s=None,
            budget=budget,
            code=ErrorCode.MAX_RETRIES_EXCEEDED,
            message=f"all {granted} {unit} are used up; the last one failed with {code}",
        )
    return RetryDecision(delay_s=_delay_s(spent, hint_s, rng, limits), budget=budget, code=code)


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
