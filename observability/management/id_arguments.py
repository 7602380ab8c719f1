"""The arguments that `retry`, `cancel` and `requeue` share: ids or their beginnings, and times.

Every error is one line and exit code 1.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.core.management.base import CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from observability.drilldown.lookup import IdError, Located, locate

_AGO = re.compile(r"(\d+)\s*([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def located(text: str, kinds: Collection[str] = ()) -> Located:
    """Look up an id; it must be of one of `kinds`. Raises CommandError."""
    try:
        found = locate(text)
    except IdError as error:
        raise CommandError(str(error)) from None
    if kinds and found.kind not in kinds:
        raise CommandError(f"{text} is the id of {found.named}, not of a {' or '.join(kinds)}.")
    return found


def record_of(text: str) -> UUID:
    """Return the record that any id belongs to. Raises CommandError."""
    found = located(text)
    if found.shell_file_id is None:
        raise CommandError(f"{text} is the id of {found.named}, which belongs to no record.")
    return found.shell_file_id


def moment(text: str) -> datetime:
    """Return a time from `90m`, `2h` or `7d` (ago) or ISO 8601, in UTC. Raises CommandError."""
    ago = _AGO.fullmatch(text.strip())
    if ago:
        return timezone.now() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        at = parse_datetime(text.strip())
    except ValueError:
        at = None
    if at is None:
        raise CommandError(
            f"not a time: {text}; give 90m, 2h, 7d or 2026-11-28T02:41", returncode=2
        )
    return at if at.tzinfo else at.replace(tzinfo=UTC)
