"""The periodic task that deletes files of killed processes from the private folder.

A file is deleted if it was not written to for an hour and no reader holds a lock on it.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from medproc.timing import scaled

OLD_S = 3600.0


def sweep() -> str:
    """Delete the abandoned files; return how many were deleted, in words."""
    before, gone = time.time() - scaled(OLD_S), 0
    for path in Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir():
        # Another process may delete the file at the same moment.
        with suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_mtime < before and not _is_in_use(path):
                path.unlink()
                gone += 1
    return f"deleted {gone} abandoned files of uploads and reads" if gone else ""


def _is_in_use(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
