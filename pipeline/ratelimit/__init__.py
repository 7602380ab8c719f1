"""The cluster-wide rate limiter: one Lua script in Redis admits each call to the provider.

Nothing here sleeps. The reply to an ask is Go, or Later with the seconds until the next ask. While
Redis is away, a process starts calls at a small share of the quota. The package knows no models and
no fan-out.
"""

from __future__ import annotations

from pipeline.ratelimit.config import Quota, Tuning
from pipeline.ratelimit.limiter import RateLimiter
from pipeline.ratelimit.local_limiter import LocalLimit
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
    "Quota",
    "RateLimiter",
    "RateLimiterState",
    "Reported",
    "Standing",
    "Ticket",
    "Tuning",
    "Why",
]
