"""Drafts: files under a hidden name, which a rename makes visible at once.

A draft is locked while its writer lives. A killed writer leaves an unlocked draft, which the next
export of the same record to the same folder deletes.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

PART = ".part"


class DraftFile:
    """A file that is being written, readable by its owner only."""

    def __init__(self, folder: Path, name: str) -> None:
        self._at = folder / name
        self.is_kept = False
        """Whether an error leaves the file: a name that others may see points to it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._at, flags, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.file: BinaryIO = os.fdopen(descriptor, "wb")

    def settle(self) -> int:
        """Force the content to the disk; return its size in bytes."""
        self.file.flush()
        os.fsync(self.file.fileno())
        return os.fstat(self.file.fileno()).st_size

    def rename(self, path: Path) -> None:
        """Give the file its name; a file of that name is replaced."""
        self._at.replace(path)
        self._at = path

    def close(self) -> None:
        """Release the lock."""
        # The content is settled, or the draft is discarded; so a second failing flush says nothing.
        with suppress(OSError):
            self.file.close()

    def discard(self) -> None:
        """Close and delete the file, under whichever name it has, unless it is kept."""
        self.close()
        if not self.is_kept:
            with suppress(OSError):
                self._at.unlink()


def switch(draft: DraftFile, path: Path, *others: DraftFile) -> None:
    """Make a draft visible under `path`, and keep it and the others from now on.

    A signal can arrive directly behind the rename. So everything is kept before the rename, and
    only a refused rename takes that back.
    """
    for each in (draft, *others):
        each.is_kept = True
    try:
        draft.rename(path)
    except OSError:
        for each in (draft, *others):
            each.is_kept = False
        raise


@contextmanager
def drafts(folder: Path, *names: str) -> Iterator[tuple[DraftFile, ...]]:
    """Open drafts; after an error they are deleted, and otherwise only closed."""
    opened: list[DraftFile] = []
    try:
        for name in names:
            opened.append(DraftFile(folder, name))
        yield tuple(opened)
    except BaseException:
        for each in opened:
            each.discard()
        raise
    for each in opened:
        each.close()


def draft_name(record_id: UUID, generation: UUID, suffix: str) -> str:
    """Return the hidden name of a draft."""
    return f".{record_id}.{generation}{suffix}{PART}"


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, so that a pair is switched and tidied by one process at a time."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def delete_unused(paths: Iterator[Path]) -> None:
    """Delete the files that no living writer holds; a file that cannot be deleted stays."""
    for path in paths:
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)
