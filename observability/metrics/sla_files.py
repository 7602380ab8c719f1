"""The hourly snapshots as files: `MEDPROC_DATA_DIR/metrics/sla-2026-11-30T07Z.json`.

A file appears whole. Each run writes the files that are missing, and deletes the files of hours
before the oldest row.
"""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from medproc import private
from medproc.timing import scaled
from observability.models import SlaSnapshot
from pipeline.core.labels import counted
from pipeline.documents.storage import NO_ROOM

logger = logging.getLogger(__name__)

PATTERN = "sla-%Y-%m-%dT%HZ.json"
AT_ONCE = 1_000
"""Files that one run writes at most."""
ALARM_S = 900.0
"""Age of a row from which its missing file is a problem: three runs."""
DRAFT_S = 3600.0
"""Age of a draft from which its writer is dead."""
_FIGURES = (
    "target_s", "finished", "met", "missed", "median_s", "p95_s", "backlog", "late",
    "backlog_ends_at",
)  # fmt: skip


def folder() -> Path:
    """Return the folder of the files."""
    return Path(settings.MEDPROC_DATA_DIR) / "metrics"


def write_missing_files() -> None:
    """Write the missing files, and delete the files of pruned hours.

    The refusal of a disk is logged in one line and never raised. The rows are complete, `health`
    shows `problems`, and the next run tries again.
    """
    hours = _hours()
    try:
        private.folder(folder())
        found = _found()
        missing = [hour for hour in hours if hour.strftime(PATTERN) not in found][:AT_ONCE]
        for hour, rows in _rows(missing).items():
            private.replace(folder() / hour.strftime(PATTERN), _content(hour, rows))
        _clear(found, hours)
    except OSError as error:
        logger.error(
            "the hourly snapshots cannot be written to %s: %s",
            folder(),
            _why(error),
            extra={"action": "snapshot_files"},
        )


def count_missing_files(older_s: float = 0.0) -> int:
    """Return how many hours of the table have no file and are older than `older_s` seconds."""
    hours = _hours(older_s)
    found: set[str] = set()
    with suppress(OSError):
        found = _found()
    return sum(hour.strftime(PATTERN) not in found for hour in hours)


def problems() -> list[str]:
    """Return a sentence for `health` if rows have no file."""
    missing = count_missing_files(scaled(ALARM_S))
    if not missing:
        return []
    number = counted(missing, "hourly snapshot")
    return [f"{number} not in {folder()}; the log of the scheduler says why"]


def _hours(older_s: float = 0.0) -> list[datetime]:
    """Return the hours whose rows are older than `older_s` seconds, oldest first.

    Each hour has one row of the class `normal`.
    """
    rows = SlaSnapshot.objects.filter(priority="normal").order_by("hour")
    now = time.time()
    return [
        hour
        for hour, made in rows.values_list("hour", "created_at")
        if now - made.timestamp() >= older_s
    ]


def _found() -> set[str]:
    with suppress(FileNotFoundError):
        return {path.name for path in folder().iterdir()}
    return set()


def _rows(hours: Sequence[datetime]) -> dict[datetime, list[SlaSnapshot]]:
    found: defaultdict[datetime, list[SlaSnapshot]] = defaultdict(list)
    if hours:
        for row in SlaSnapshot.objects.filter(hour__in=hours).order_by("hour", "priority"):
            found[row.hour].append(row)
    return dict(found)


def _content(hour: datetime, rows: Sequence[SlaSnapshot]) -> bytes:
    figures = {
        row.priority: {name: _plain(getattr(row, name)) for name in _FIGURES} for row in rows
    }
    text = json.dumps({"hour": _plain(hour), "priorities": figures}, indent=1)
    return f"{text}\n".encode()


def _plain(value: Any) -> Any:
    is_time = isinstance(value, datetime)
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z") if is_time else value


def _clear(found: set[str], hours: Sequence[datetime]) -> None:
    """Delete the files of hours before the oldest row, and the drafts of dead writers."""
    for name in found:
        if name.startswith(private.DRAFT):
            with suppress(FileNotFoundError):
                if time.time() - (folder() / name).stat().st_mtime > DRAFT_S:
                    (folder() / name).unlink()
            continue
        with suppress(ValueError):
            hour = datetime.strptime(name, PATTERN).replace(tzinfo=UTC)
            if hours and hour < hours[0]:
                (folder() / name).unlink(missing_ok=True)


def _why(error: OSError) -> str:
    """Return the reason without a path, and what to do."""
    if error.errno in NO_ROOM:
        return "the disk is full (STORAGE_FULL). Free some space; the next run writes the files"
    return f"{error.strerror}. Let the user of the scheduler write there"
