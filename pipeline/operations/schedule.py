"""The intervals of the periodic tasks, and the time without a run that counts as an alarm."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from django.conf import settings

from medproc.timing import scaled

SHORTEST_S = 0.1
"""Shortest interval in seconds, whatever TIME_SCALE says."""
STALE_EVERY_S = 300.0
"""Seconds between two checks for stale batches (requirement 24)."""
ALARM_INTERVALS = 3
"""Intervals without a run that count as an alarm."""
ALARM_LEAST_S = 15.0
"""Least seconds that count as an alarm: tasks run one after the other, and one can take a while."""

RECONCILE, SETTLE_RECORD_BATCHES = "reconcile", "settle_record_batches"
PLACE_REVIEW_ITEMS = "place_review_items"
PLACE_REVIEWS_EVERY_S = 60.0
"""Seconds between two moves of overdue reviews into their lane: an order can be wrong that long."""
FOLD_COUNTS, FOLD_COUNTS_EVERY_S = "fold_counts", 60.0
"""A scrape sums the rows of the last minute: some thousands at full load."""
DETECT_INCIDENTS, RESET_STALE = "detect_incidents", "reset_stale_batches"

_OWN: Mapping[str, str | float] = MappingProxyType(
    {
        RECONCILE: "RECONCILE_S",
        SETTLE_RECORD_BATCHES: "RECONCILE_S",
        DETECT_INCIDENTS: "INCIDENT_TICK_S",
        RESET_STALE: STALE_EVERY_S,
        PLACE_REVIEW_ITEMS: PLACE_REVIEWS_EVERY_S,
        FOLD_COUNTS: FOLD_COUNTS_EVERY_S,
    }
)
"""Interval of each of the pipeline's tasks in seconds, or the setting with the interval."""


def names() -> list[str]:
    """Return the periodic tasks: the pipeline's, then those of `settings.PERIODIC_TASKS`."""
    return [*_OWN, *settings.PERIODIC_TASKS]


def every_s(task: str) -> float:
    """Return the documented interval of a task, in seconds."""
    if task in settings.PERIODIC_TASKS:
        return float(settings.PERIODIC_TASKS[task][0])
    found = _OWN[task]
    return float(getattr(settings, found) if isinstance(found, str) else found)


def interval_s(task: str) -> float:
    """Return the interval of a task in seconds of this process's clock."""
    return max(SHORTEST_S, scaled(every_s(task)))


def alarm_s(task: str) -> float:
    """Return the seconds without a run that count as an alarm, in this process's clock."""
    return max(interval_s(task) * ALARM_INTERVALS, scaled(ALARM_LEAST_S))
