"""The gate's figures: the provider's quota, and how cooldown, ramp and breaker behave.

Imports Django's settings and `medproc.timing`. Every schedule of ours is scaled by TIME_SCALE; the
quota's window and the guard are not: they are the provider's clock and this machine's speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from django.conf import settings

from medproc.timing import scaled

LEASE_BEYOND_DEADLINE_S = 30.0
"""An in-flight lease outlives CALL_DEADLINE_S by this, so that no live call is without one."""
PATIENCE_S = 0.25
"""A job that was told a time keeps its turn so long after it."""
POLL_S = 0.5
"""Longest wait told where the gate may open sooner than can be known."""


@dataclass(frozen=True, kw_only=True)
class Quota:
    """What the provider grants; None is no limit. Per minute means per `window_s`."""

    requests: int | None = None
    """Requests a minute."""
    tokens: int | None = None
    """Input tokens a minute."""
    per_day: int | None = None
    """Requests a day; it ends at midnight, America/Los_Angeles."""
    window_s: float = 60.0

    @classmethod
    def of(cls, provider: str) -> Self:
        """Return the quota that the settings state for a provider; the local engine has none."""
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
    """How the gate behaves; seconds of this process's clock."""

    guard_s: float = 0.15
    """Least that the window is lengthened by, for the way from admission to the provider."""
    cooldown_base_s: float = 5.0
    cooldown_cap_s: float = 60.0
    quiet_s: float = 60.0
    """After so long without a cooldown the next one is the first in a row."""
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
    """Part of the quota that a process keeps to while Redis is away."""

    @classmethod
    def of_settings(cls) -> Self:
        """Return the figures of the settings, in this process's seconds."""
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
