"""Compute when an exhausted quota resets. Pure: no clock, no settings.

Gemini's days end at midnight Pacific time. The hint in the refusal does not count: the service
sends a hint of 5 s with an exhausted day quota.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LAG_S = 60.0
"""Seconds after midnight in which a refusal is one of the day before: the provider's clock may
differ, and a refusal may have been on its way. Then the quota is tried again so much later."""
SPEND_PAUSE_S = 600.0
"""A spend limit covers a rolling ten minutes (Gemini API, rate limits)."""


def resets_at(quota_id: str, hint_s: float | None, now: datetime) -> datetime:
    """Return when a day quota or a spend limit resets. A longer hint extends a spend limit."""
    if "spend" in quota_id.lower():
        return now + timedelta(seconds=max(SPEND_PAUSE_S, hint_s or 0.0))
    since_midnight = now - _midnight(now, days=0)
    if since_midnight < timedelta(seconds=LAG_S):
        return now + timedelta(seconds=LAG_S)
    return day_ends_at(now)


def day_ends_at(now: datetime) -> datetime:
    """Return the next midnight in America/Los_Angeles."""
    return _midnight(now, days=1)


def _midnight(now: datetime, *, days: int) -> datetime:
    """Return the midnight at which the Pacific day of `now` began, or so many days later."""
    day = now.astimezone(_pacific()).date() + timedelta(days=days)
    return datetime(day.year, day.month, day.day, tzinfo=_pacific()).astimezone(UTC)


def _pacific() -> tzinfo:
    try:
        return ZoneInfo("America/Los_Angeles")
    except ZoneInfoNotFoundError:
        # Without a zone database, use winter time all year. In summer the day then ends an hour
        # after the provider's day, never before.
        return timezone(timedelta(hours=-8))
