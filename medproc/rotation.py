"""Rotation of the logs of `make up` and of the embedded servers.

A log is copied and then emptied, because its writers keep it open. Lines that arrive between copy
and emptying are lost. A log takes at most `MAX_BYTES` and one more minute of lines, and `COPIES`
copies.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 10 * 1024 * 1024
"""Bytes from which a log is rotated."""
COPIES = 3
"""Copies of a log that are kept: `name.log.1` is the newest."""


def rotate_logs() -> str:
    """Rotate each large log of this installation; return a line to log, or an empty string."""
    from django.conf import settings

    places = settings.EMBEDDED
    logs = [places.postgres_data / "server.log", places.valkey_data / "server.log"]
    with suppress(OSError):
        logs += (settings.MEDPROC_DATA_DIR / "logs").glob("*.log")
    rotated = [path for path in logs if rotate(path)]
    return f"rotated {len(rotated)} logs" if rotated else ""


def rotate(log: Path) -> bool:
    """Move the lines of a large log to a copy; return whether there were enough lines.

    A link is never followed, and a hard link to another file is never emptied. A log that this
    process cannot write stays as it is.
    """
    try:
        descriptor = os.open(log, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as source:
        status = os.fstat(descriptor)
        if status.st_size < MAX_BYTES or status.st_nlink != 1:
            return False
        try:
            for number in range(COPIES, 1, -1):
                with suppress(FileNotFoundError):
                    _copy(log, number - 1).replace(_copy(log, number))
            _fill(_copy(log, 1), source)
        except OSError:
            # A full disk: the old lines are worth less than a running service.
            with suppress(OSError):
                _copy(log, 1).unlink(missing_ok=True)
        os.ftruncate(descriptor, 0)
    return True


def _copy(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def _fill(path: Path, source: BinaryIO) -> None:
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as copy:
        shutil.copyfileobj(source, copy)
