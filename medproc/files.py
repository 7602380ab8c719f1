"""The files of records, on a local disk.

A command that root runs stores files for workers that are not root. So a new file or folder belongs
to the owner of the folder above.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO, Any, BinaryIO

from django.core.files import File
from django.core.files.storage import FileSystemStorage

from medproc import private

_PRIVATE = 0o600


class FinishedFile(File):  # type: ignore[type-arg]  # Django's class has no type at run time
    """An open file that this process has written and hashed, and that no process changes."""

    def __init__(self, file: BinaryIO, sha256: str) -> None:
        super().__init__(file)
        self.sha256 = sha256


class OwnedStorage(FileSystemStorage):
    """Stores files as Django does, and gives what root stores to the owner of the folder."""

    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        """Save as Django does, and force file and name to the disk: a row that names the file is
        on the disk too once its transaction has committed.

        As root, also set the owner of the file and of new folders. A finished file is kept without
        a copy. Root copies it: the owner of its folder could put a link to a file of root in its
        place.
        """
        saved = self._saved(name, content, max_length)
        _sync(Path(self.path(saved)))
        return saved

    def _saved(self, name: str | None, content: IO[Any], max_length: int | None) -> str:
        if os.geteuid() != 0:
            if name and self._has_linked(name, content):
                return name
            return super().save(name, content, max_length)
        folder = Path(self.path(name or "")).parent
        above = [folder, *folder.parents]
        for missing in reversed(above[: above.index(Path(self.location)) + 1]):
            private.folder(missing)
        saved = super().save(name, content, max_length)
        _give(Path(self.path(saved)), folder.stat())
        return saved

    def _has_linked(self, name: str, content: IO[Any]) -> bool:
        """Give a finished file a second name, so that no byte is copied; return whether it worked.

        It does not work to another disk, on a disk without links, and if a folder is missing.
        """
        if not isinstance(content, FinishedFile):
            return False
        try:
            os.fchmod(content.fileno(), self.file_permissions_mode or _PRIVATE)
            # The sweep of stored files counts the age from now.
            os.utime(content.fileno())
            os.link(str(content.name), self.path(name))
        except OSError:
            return False
        return True


def sync_folder(folder: Path) -> None:
    """Force the names of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def _give(path: Path, owner: os.stat_result) -> None:
    """Give a file that root has just created to `owner`.

    The owner of the folder could replace the file in the meantime, by a link to a file of root.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise PermissionError(f"{path} was replaced")
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    finally:
        os.close(descriptor)
