"""The exception of the embedded servers."""

from __future__ import annotations

from pathlib import Path

NO_ROOM = "No space left on device"
"""The text of ENOSPC, which the servers write in English."""


class EmbeddedError(Exception):
    """An embedded server cannot be found, started or stopped; the message is one line."""


def no_room(path: Path | str) -> EmbeddedError:
    """Return the error of a full disk; `path` is a file or folder on the disk."""
    return EmbeddedError(
        f"STORAGE_FULL: the disk of {path} has no room left; make room, then start again"
    )
