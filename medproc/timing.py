"""The time scale of all schedules.

Every backoff, lease and deadline passes through `scaled`, so that a rehearsal or a test runs the
same schedule in a fraction of the time.
"""

from __future__ import annotations

from django.conf import settings


def scaled(seconds: float) -> float:
    """Return `seconds` of the documented schedule as seconds of this process's clock."""
    return seconds * float(settings.TIME_SCALE)
