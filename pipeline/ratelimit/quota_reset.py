"""Compute when an exhausted quota resets. Pure: no clock, no settings.

Gemini's days end at midnight Pacific time. The hint in the refusal does not count: the service
sends a hint of 5 s with an exhausted day quota.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

SPEND_PAUSE_S = 600.0
"""A spend limit covers a rolling ten minutes (Gemini API, rate limits)."""


def resets_at(quota_id: str, hint_s: float | None, now: datetime) -> datetime:
    """Return when a day quota or a spend limit resets. A longer hint extends a spend limit."""
    if "spend" in quota_id.lower():
        return now + timedelta(seconds=max(SPEND_PAUSE_S, hint_s or 0.0))
    return day_ends_at(now)


def day_ends_at(now: datetime) -> datetime:
    """Return the next midnight in America/Los_Angeles."""
    local = now.astimezone(_pacific())
    tomorrow = local.date() + timedelta(days=1)
    midnight = datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=_pacific())
    return midnight.astimezone(UTC)


def _pacific() -> tzinfo:
    try:
        return ZoneInfo("America/Los_Angeles")
    except ZoneInfoNotFoundError:
        # Without a zone database, use winter time all year. In summer the day then ends an hour
        # after the provider's day, never before.
        return timezone(timedelta(hours=-8))
