"""What a killed process leaves in the private folder is deleted; a duty of the clock.

Imports settings. A file goes that nobody has written to for an hour and no reader has locked.
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
    """Delete what was left, and say how many files that were."""
    before, gone = time.time() - scaled(OLD_S), 0
    for path in Path(settings.FILE_UPLOAD_TEMP_DIR).iterdir():
        # Another process may be done with it at the same moment.
        with suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_mtime < before and not _is_in_use(path):
                path.unlink()
                gone += 1
    return f"deleted {gone} files that were left while they arrived or were read" if gone else ""


def _is_in_use(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
