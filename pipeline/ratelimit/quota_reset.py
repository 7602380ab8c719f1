"""When a quota that is used up comes back. Pure: no clock, no settings.

Imports nothing of the project. Gemini's days end at midnight Pacific time, whatever hint comes with
the refusal: the service sends 5 s with a day's quota.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

SPEND_PAUSE_S = 600.0
"""A spend limit is a rolling ten minutes (Gemini API, rate limits)."""


def resets_at(quota_id: str, hint_s: float | None, now: datetime) -> datetime:
    """Return when a day's quota or a spend limit is there again; the later of pause and hint."""
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
        # Without a zone database winter time holds all the year: in summer the day ends an hour
        # after the provider's, never before.
        return timezone(timedelta(hours=-8))
