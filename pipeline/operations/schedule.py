"""How often each duty of the clock is due. Imports Django's settings, nothing of the pipeline.

The clock runs them; whoever looks whether it still does knows by this when to be alarmed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from django.conf import settings

from medproc.timing import scaled

SHORTEST_S = 0.1
"""No duty runs oftener, whatever TIME_SCALE says."""
STALE_EVERY_S = 300.0
"""Between two looks for stale batches (`spec.md` point 24)."""
ALARM_INTERVALS = 3
"""Intervals of a duty without a tick that are an alarm."""
ALARM_LEAST_S = 15.0
"""The same in seconds at least: duties run one after the other, and one may take some."""

RECONCILE, SETTLE_RECORD_BATCHES = "reconcile", "settle_record_batches"
DETECT_INCIDENTS, RESET_STALE = "detect_incidents", "reset_stale_batches"

_OWN: Mapping[str, str | float] = MappingProxyType(
    {
        RECONCILE: "RECONCILE_S",
        SETTLE_RECORD_BATCHES: "RECONCILE_S",
        DETECT_INCIDENTS: "INCIDENT_TICK_S",
        RESET_STALE: STALE_EVERY_S,
    }
)
"""Seconds of each duty of the pipeline, or the setting that says them."""


def names() -> list[str]:
    """Return the duties of a clock: the pipeline's, then those of `settings.CLOCK_DUTIES`."""
    return [*_OWN, *settings.CLOCK_DUTIES]


def every_s(duty: str) -> float:
    """Return the seconds of the documented schedule between two ticks of a duty."""
    if duty in settings.CLOCK_DUTIES:
        return float(settings.CLOCK_DUTIES[duty][0])
    found = _OWN[duty]
    return float(getattr(settings, found) if isinstance(found, str) else found)


def interval_s(duty: str) -> float:
    """Return the same in seconds of this process's clock."""
    return max(SHORTEST_S, scaled(every_s(duty)))


def alarm_s(duty: str) -> float:
    """Return after how many seconds of this process's clock without a tick something is wrong."""
    return max(interval_s(duty) * ALARM_INTERVALS, scaled(ALARM_LEAST_S))
