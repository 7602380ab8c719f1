"""What follows from a failed call: another one after a delay, or none, and what it has cost.

Pure: imports `errors` and tenacity's wait strategies; no clock, no settings, no randomness of its
own. `spec.md` points 6, 7 and 26: attempts and limited calls are spent from separate budgets, the
backoff is 1, 2, 4 … 30 s, jitter only shortens it, and the server's hint is a floor.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from tenacity import RetryCallState, Retrying, wait_exponential

from pipeline.core.errors import ERRORS, Budget, ErrorCode

BASE_S = 1.0
CAP_S = 30.0
JITTER = 0.25
"""A backoff is shortened by up to this part, so that what failed together does not return so."""
HINT_SPREAD_S = 1.0
"""What was told one moment to come back at is spread over this long after it."""


@dataclass(frozen=True, kw_only=True)
class RetryLimits:
    """The figures of the policy; `scale` is the one time scale, which a server's hint ignores."""

    max_waits: int = 20
    """`RATE_LIMIT_BUDGET`: limited calls of one batch, the last one included."""
    base_s: float = BASE_S
    cap_s: float = CAP_S
    scale: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is to be done after a failed call."""

    delay_s: float | None
    """Seconds of this process's clock until the next call; None: there is none."""
    budget: Budget
    """What this call cost; SPLIT and PARK ask the caller to halve the pages, or to park the job."""
    code: ErrorCode
    """How the item fails, where there is no other call; MAX_RETRIES_EXCEEDED hides its cause."""
    message: str = ""
    """Why it fails, where that is not the call's own error."""

    @property
    def spends_attempt(self) -> bool:
        """Whether the call counts as one of the item's attempts."""
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
) -> Verdict:
    """Decide about a call that failed with `code`.

    `attempts` and `waits` are what the item had spent before it, `hint_s` the server's seconds.
    """
    limits = limits or RetryLimits()
    budget = ERRORS[code].budget
    match budget:
        case Budget.ATTEMPT:
            spent, granted, what = attempts + 1, max_attempts, "attempts"
        case Budget.RATE_LIMIT:
            spent, granted, what = waits + 1, limits.max_waits, "limited calls"
        case _:
            return Verdict(delay_s=None, budget=budget, code=code)
    if spent >= granted:
        return Verdict(
            delay_s=None,
            budget=budget,
            code=ErrorCode.MAX_RETRIES_EXCEEDED,
            message=f"all {granted} {what} are used up; the last one failed with {code}",
        )
    return Verdict(delay_s=_delay_s(spent, hint_s, rng, limits), budget=budget, code=code)


def backoff_s(failures: int, *, base_s: float = BASE_S, cap_s: float = CAP_S) -> float:
    """Return the longest wait after so many failures, from 1, in unscaled seconds: 1, 2, 4 … 30."""
    state = RetryCallState(Retrying(), None, (), {})
    state.attempt_number = failures
    return float(wait_exponential(multiplier=base_s, max=cap_s)(state))


def _delay_s(failures: int, hint_s: float | None, rng: random.Random, limits: RetryLimits) -> float:
    longest = backoff_s(failures, base_s=limits.base_s, cap_s=limits.cap_s) * limits.scale
    delay = longest * (1.0 - JITTER * rng.random())
    if hint_s is None:
        return delay
    return max(delay, hint_s + HINT_SPREAD_S * limits.scale * rng.random())
