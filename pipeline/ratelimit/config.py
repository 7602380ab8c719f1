"""The rate limiter's configuration: the provider's quota, and the cooldown, ramp and breaker.

TIME_SCALE scales all schedules except the quota's window and the guard: these two depend on the
provider's clock and on this machine's speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from django.conf import settings

from medproc.timing import scaled

LEASE_BEYOND_DEADLINE_S = 30.0
"""An in-flight lease outlives CALL_DEADLINE_S by this, so that every live call has a lease."""
PATIENCE_S = 0.25
"""Seconds a job keeps its turn after the time at which the rate limiter told it to ask again."""
POLL_S = 0.5
"""The longest wait that a reply names if calls may start earlier than predicted."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """The provider's quota; None means no limit. "Per minute" means per `window_s`."""

    requests: int | None = None
    """Requests per minute."""
    tokens: int | None = None
    """Input tokens per minute."""
    per_day: int | None = None
    """Requests per day. The day ends at midnight, America/Los_Angeles."""
    window_s: float = 60.0

    @classmethod
    def of(cls, provider: str) -> Self:
        """Return the configured quota of a provider. The local engine has no quota."""
        if provider != "gemini":
            return cls(window_s=settings.GATE_WINDOW_S)
        return cls(
            requests=settings.GEMINI_RPM,
            tokens=settings.GEMINI_TPM,
            per_day=settings.GEMINI_RPD,
            window_s=settings.GATE_WINDOW_S,
        )


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How the rate limiter behaves, in seconds of this process's clock."""

    guard_s: float = 0.15
    """The least extra length of the window. It covers the time from admission to the provider."""
    cooldown_base_s: float = 5.0
    cooldown_cap_s: float = 60.0
    quiet_s: float = 60.0
    """A cooldown that starts after this many quiet seconds counts as the first in a row."""
    ramp_first: int = 5
    ramp_growth: float = 2.0
    ramp_step_s: float = 1.0
    breaker_window_s: float = 10.0
    breaker_failures: int = 5
    breaker_share: float = 0.5
    probe_s: float = 5.0
    lease_s: float = 150.0
    poll_s: float = POLL_S
    local_share: float = 0.02
    """The share of the quota that one process uses while Redis is away."""

    @classmethod
    def of_settings(cls) -> Self:
        """Return the configured values, in seconds of this process's clock."""
        lease = settings.GATE_LEASE_S or settings.CALL_DEADLINE_S + LEASE_BEYOND_DEADLINE_S
        return cls(
            guard_s=settings.GATE_GUARD_S,
            cooldown_base_s=scaled(settings.GATE_COOLDOWN_BASE_S),
            cooldown_cap_s=scaled(settings.GATE_COOLDOWN_CAP_S),
            quiet_s=scaled(settings.GATE_QUIET_S),
            ramp_first=settings.GATE_RAMP_FIRST,
            ramp_growth=settings.GATE_RAMP_GROWTH,
            ramp_step_s=scaled(1.0),
            breaker_window_s=scaled(settings.GATE_BREAKER_WINDOW_S),
            breaker_failures=settings.GATE_BREAKER_FAILURES,
            breaker_share=settings.GATE_BREAKER_SHARE,
            probe_s=scaled(settings.GATE_PROBE_S),
            lease_s=scaled(lease),
            poll_s=scaled(POLL_S),
            local_share=settings.GATE_LOCAL_SHARE,
        )
