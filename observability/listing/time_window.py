"""The time span of a page: a window that ends now, or a span that the user has typed.

Times without a zone are UTC, like all times in the console.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from pipeline.core.errors import UserError, UserErrorCode

YEARS = range(2000, 9000)
"""Valid years; the database and the charts can represent all of them."""


class Window(StrEnum):
    """The length of a window."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"

    @property
    def length(self) -> timedelta:
        """The length as a duration."""
        return {
            Window.HOUR: timedelta(hours=1),
            Window.DAY: timedelta(hours=24),
            Window.WEEK: timedelta(days=7),
        }[self]

    @property
    def words(self) -> str:
        """The length in words."""
        return {Window.HOUR: "1 hour", Window.DAY: "24 hours", Window.WEEK: "7 days"}[self]


@dataclass(frozen=True, kw_only=True)
class Period:
    """A time span."""

    since: datetime
    until: datetime
    window: Window | None = None
    """Set if the span ends now."""

    @classmethod
    def last(cls, window: Window, now: datetime) -> Period:
        """Return the window that ends now."""
        return cls(since=now - window.length, until=now, window=window)

    @property
    def words(self) -> str:
        """The span in words."""
        if self.window is not None:
            return f"last {self.window.words}"
        return f"{self.since:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M}"

    @property
    def fields(self) -> dict[str, str]:
        """The URL fields from which `asked_for` parses the span."""
        if self.window is not None:
            return {"window": self.window.value}
        return {"since": f"{self.since:%Y-%m-%dT%H:%M}", "until": f"{self.until:%Y-%m-%dT%H:%M}"}


def asked_for(asked: Mapping[str, str], now: datetime) -> Period:
    """Parse `window`, or else `since` and `until`; one may be missing. The default is 24 hours.

    Raises UserError for an invalid time, and if the end is before the beginning.
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
    """Parse an ISO 8601 time. Raises UserError for any other text."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.year not in YEARS:
        raise UserError("give times as 2026-01-31T02:41", code=UserErrorCode.VALUE_INVALID)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
