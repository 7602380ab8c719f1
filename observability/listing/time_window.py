"""The time that a page is about: a window that ends now, or one that somebody has typed.

Imports the pipeline's errors. Times without a zone are UTC, as all that the console shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from pipeline.core.errors import UserError, UserErrorCode

YEARS = range(2000, 9000)
"""Years that a time may have; the database and the charts know all of them."""


class Window(StrEnum):
    """How far back."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"

    @property
    def length(self) -> timedelta:
        """As a duration."""
        return {
            Window.HOUR: timedelta(hours=1),
            Window.DAY: timedelta(hours=24),
            Window.WEEK: timedelta(days=7),
        }[self]

    @property
    def words(self) -> str:
        """As people say it."""
        return {Window.HOUR: "1 hour", Window.DAY: "24 hours", Window.WEEK: "7 days"}[self]


@dataclass(frozen=True, kw_only=True)
class Period:
    """From when to when."""

    since: datetime
    until: datetime
    window: Window | None = None
    """Set where it ends now."""

    @classmethod
    def last(cls, window: Window, now: datetime) -> Period:
        """Return the window that ends now."""
        return cls(since=now - window.length, until=now, window=window)

    @property
    def words(self) -> str:
        """As people say it."""
        if self.window is not None:
            return f"last {self.window.words}"
        return f"{self.since:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M}"

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a URL that `asked_for` reads."""
        if self.window is not None:
            return {"window": self.window.value}
        return {"since": f"{self.since:%Y-%m-%dT%H:%M}", "until": f"{self.until:%Y-%m-%dT%H:%M}"}


def asked_for(asked: Mapping[str, str], now: datetime) -> Period:
    """Read `window`, or else `since` and `until`, of which one may be missing; 24 hours without.

    Raises UserError for what is no time, and for an end before its beginning.
    """
    if window := asked.get("window"):
        try:
            return Period.last(Window(window), now)
        except ValueError:
            raise UserError(
                f"window is one of {', '.join(Window)}", code=UserErrorCode.VALUE_INVALID
            ) from None
    if not asked.get("since") and not asked.get("until"):
        return Period.last(Window.DAY, now)
    until = moment(asked.get("until") or now.isoformat())
    since = moment(asked["since"]) if asked.get("since") else until - Window.DAY.length
    if since >= until:
        raise UserError(
            "the time ends before it begins; give since before until",
            code=UserErrorCode.VALUE_INVALID,
        )
    return Period(since=since, until=until)


def moment(text: str) -> datetime:
    """Read a time of ISO 8601. Raises UserError where it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.year not in YEARS:
        raise UserError("give times as 2026-01-31T02:41", code=UserErrorCode.VALUE_INVALID)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
