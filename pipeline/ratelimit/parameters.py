"""The configuration that travels with every script: quota, tuning, guard and the end of the day.

Packed into one argument of big-endian doubles, in the order of the names in `common.lua`. The bytes
are cached: only the guard and the end of the day ever change.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import UTC, datetime

from pipeline.ratelimit.config import PATIENCE_S, Quota, Tuning
from pipeline.ratelimit.quota_reset import day_ends_at


class ScriptParameters:
    """Packs the parameters of one rate limiter; `arms` says that the asker can restore holds."""

    def __init__(
        self, quota: Quota, tuning: Tuning, wall: Callable[[], float], *, arms: bool
    ) -> None:
        self._quota = quota
        self._tuning = tuning
        self._wall = wall
        self._arms = arms
        self._day_ends_at = -math.inf
        self._packed: tuple[tuple[float, float], bytes] = ((0.0, 0.0), b"")

    def packed(self, guard_s: float) -> bytes:
        """Return the parameters with this guard, in seconds."""
        varying = (guard_s, self._day_end())
        if self._packed[0] != varying:
            values = self._values(guard_s)
            self._packed = (varying, struct.pack(f">{len(values)}d", *values))
        return self._packed[1]

    def _day_end(self) -> float:
        if (now := self._wall()) >= self._day_ends_at:
            self._day_ends_at = day_ends_at(datetime.fromtimestamp(now, UTC)).timestamp()
        return self._day_ends_at

    def _values(self, guard_s: float) -> tuple[float, ...]:
        quota, tuning = self._quota, self._tuning
        return (
            quota.requests or 0,
            quota.tokens or 0,
            quota.per_day or 0,
            quota.window_s,
            guard_s,
            tuning.ramp_first,
            tuning.ramp_growth,
            tuning.ramp_step_s,
            tuning.cooldown_base_s,
            tuning.cooldown_cap_s,
            tuning.quiet_s,
            tuning.breaker_window_s,
            tuning.breaker_failures,
            tuning.breaker_share,
            tuning.probe_s,
            tuning.lease_s,
            tuning.poll_s,
            PATIENCE_S,
            self._day_ends_at,
            float(self._arms),
        )
