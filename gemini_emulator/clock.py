"""The clock by which the emulated project's day ends: midnight Pacific, wherever it runs.

Imports nothing of the project. It can be set and put forward, so that a rehearsal of a day's quota
need not wait for the night. Latencies and windows do not follow it.
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
    """Unix time minus the monotonic clock, what it was put forward by included."""

    @classmethod
    def set_to(cls, text: str, *, now: float) -> PacificClock:
        """Make a clock that shows `text` at `now`: `23:59:30`, or `2026-03-07 23:59:30`.

        Raises ValueError for any other form.
        """
        today = datetime.fromtimestamp(_real_offset() + now, tz=PACIFIC).date()
        form = f"{today} {text}" if len(text.split()) == 1 and "T" not in text else text
        try:
            shown = datetime.fromisoformat(form).replace(tzinfo=PACIFIC)
        except ValueError:
            raise ValueError(f"not a time: {text!r}; write 23:59:30, Pacific time") from None
        return cls(offset_s=shown.timestamp() - now)

    def at(self, now: float) -> datetime:
        """Return what it shows."""
        return datetime.fromtimestamp(self.offset_s + now, tz=PACIFIC)

    def day(self, now: float) -> date:
        """Return the day for which calls are counted."""
        return self.at(now).date()

    def to_midnight_s(self, now: float) -> float:
        """Return the seconds that are left of the day."""
        tomorrow = self.day(now) + timedelta(days=1)
        midnight = datetime(tomorrow.year, tomorrow.month, tomorrow.day, tzinfo=PACIFIC)
        return midnight.timestamp() - self.offset_s - now

    def advance(self, seconds: float) -> None:
        """Put it forward."""
        self.offset_s += seconds
