"""The rate gate: one Lua script in Redis admits each call to the provider, for the whole cluster.

May import settings, `medproc.timing`, `errors`, `quotas` and redis; no models, no fan-out. Nothing
here sleeps: an ask is answered with Go, or with Later and the seconds until the next ask. Without
Redis a process keeps to a small part of the quota.
"""

from __future__ import annotations

from pipeline.ratelimit.config import Quota, Tuning
from pipeline.ratelimit.limiter import Gate
from pipeline.ratelimit.local_limiter import LocalLimit
from pipeline.ratelimit.types import (
    Admission,
    Ask,
    Breaker,
    Counters,
    GateState,
    Go,
    Later,
    Outcome,
    Reported,
    Role,
    Standing,
    Ticket,
    Why,
)

__all__ = [
    "Admission",
    "Ask",
    "Breaker",
    "Counters",
    "Gate",
    "GateState",
    "Go",
    "Later",
    "LocalLimit",
    "Outcome",
    "Quota",
    "Reported",
    "Role",
    "Standing",
    "Ticket",
    "Tuning",
    "Why",
]
