"""The clock by which the emulated project's day ends: midnight Pacific time, on every host.

The clock can be set and advanced, so that a rehearsal of a day quota does not have to wait for the
night. Latencies and windows do not follow this clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

PACIFIC = ZoneInfo("America/Los_Angeles")


def _real_offset() -> float:
    return time.time() - time.monotonic()


@dataclass(kw_only=True)
class PacificClock:
    """Tells the Pacific date and time at a monotonic `now` (seconds)."""

    offset_s: float = field(default_factory=_real_offset)
    """Unix time minus the monotonic clock, plus all advances."""

    @classmethod
    def set_to(cls, text: str, *, now: float) -> PacificClock:
        """Make a clock that shows `text` at `now`: `23:59:30`, or `2026-03-07 23:59:30`.

        Raises ValueError for any other format.
        """
        today = datetime.fromtimestamp(_real_offset() + now, tz=PACIFIC).date()
        form = f"{today} {text}" if len(text.split()) == 1 and "T" not in text else text
        try:
            shown = datetime.fromisoformat(form).replace(tzinfo=PACIFIC)
        except ValueError:
            raise ValueError(
                f"not a time: {text!r}; write a Pacific time such as 23:59:30"
            ) from None
        return cls(offset_s=shown.timestamp() - now)

    def at(self, now: float) -> datetime:
        """Return the date and time that the clock shows."""
        return datetime.fromtimestamp(self.offset_s + now, tz=PACIFIC)

    def day(self, now: float) -> date:
        """Return the day for which calls are counted."""
        return self.at(now).date()

    def to_midnight_s(self, now: float) -> float:
        """Return the seconds until midnight."""
        tomorrow = self.day(now) + timedelta(days=1)
        midnight = datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=PACIFIC)
        return midnight.timestamp() - self.offset_s - now

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        self.offset_s += seconds
