"""The cluster-wide rate limiter: one Lua script in Redis admits each call to the provider.

Nothing here sleeps. The reply to an ask is Go, or Later with the seconds until the next ask. The
circuit breaker is `breaker.lua`: reports feed it, and asks obey it. While Redis is away, a process
starts calls at a small share of the quota.
"""

from __future__ import annotations

from pipeline.ratelimit.config import Quota, Tuning
from pipeline.ratelimit.limiter import RateLimiter
from pipeline.ratelimit.local_limiter import LocalLimit
from pipeline.ratelimit.past_calls import PastCall, PastCalls
from pipeline.ratelimit.types import (
    Admission,
    Ask,
    Breaker,
    CooldownRole,
    Counters,
    Go,
    Later,
    Outcome,
    RateLimiterState,
    Reported,
    Standing,
    Ticket,
    Why,
)

__all__ = [
    "Admission",
    "Ask",
    "Breaker",
    "CooldownRole",
    "Counters",
    "Go",
    "Later",
    "LocalLimit",
    "Outcome",
    "PastCall",
    "PastCalls",
    "Quota",
    "RateLimiter",
    "RateLimiterState",
    "Reported",
    "Standing",
    "Ticket",
    "Tuning",
    "Why",
]
