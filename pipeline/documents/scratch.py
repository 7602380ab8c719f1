"""Private temporary files of this host: uploads under way, and copies that a reader works on.

The process that made a file deletes it. A file is abandoned if the last write is older than the
safe age and no process holds a lock on the file. A copy from the bucket has a lock from before its
first byte to its deletion, so a copy with bytes and without a lock is abandoned at any age.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from django.conf import settings

_COPY = "medproc-"
"""The beginning of the names of copies."""


@contextmanager
def new_copy() -> Iterator[BinaryIO]:
    """Yield a new private file for the bytes of a record; the file is deleted after the block."""
    folder = settings.FILE_UPLOAD_TEMP_DIR
    with tempfile.NamedTemporaryFile(prefix=_COPY, dir=folder) as copy:
        fcntl.flock(copy, fcntl.LOCK_EX)
        yield cast(BinaryIO, copy)


def delete_abandoned_copies() -> int:
    """Delete the copies that killed processes of this host have left, and count them."""
    return delete(_abandoned_copies())


def _abandoned_copies() -> Iterator[Path]:
    for path in Path(settings.FILE_UPLOAD_TEMP_DIR).glob(f"{_COPY}*"):
        # Another process may delete the file at the same moment.
        with suppress(FileNotFoundError):
            found = path.lstat()
            # An empty copy may be so new that its process has not locked it yet.
            if stat.S_ISREG(found.st_mode) and found.st_size and not _is_in_use(path):
                yield path


def abandoned(older_s: float) -> Iterator[Path]:
    """Yield the abandoned files of this host."""
    before = time.time() - older_s
    folder = Path(settings.FILE_UPLOAD_TEMP_DIR)
    drafts = Path(settings.MEDPROC_DATA_DIR).glob(".*.*.*")  # `private.kept_text` writes these.
    for path in (*folder.rglob("*"), *drafts):
        # Another process may delete the file at the same moment.
        with suppress(FileNotFoundError):
            found = path.lstat()
            # A link is left alone: its end can be outside this folder.
            is_file = stat.S_ISREG(found.st_mode)
            if is_file and found.st_mtime < before and not _is_in_use(path):
                yield path


def delete(files: Iterable[Path]) -> int:
    """Delete abandoned files, and count them."""
    gone = 0
    for file in files:
        with suppress(FileNotFoundError):
            file.unlink()
            gone += 1
    return gone


def _is_in_use(path: Path) -> bool:
    """Return whether a process holds a lock, or this process cannot open or lock the file.

    A command of root leaves files that the user of the service cannot open.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        raise
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
