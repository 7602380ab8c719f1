"""The files of records, on a local disk.

A command that root runs stores files for workers that are not root. So a new file or folder belongs
to the owner of the folder above.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

from django.core.files.storage import FileSystemStorage

from medproc import private


class OwnedStorage(FileSystemStorage):
    """Stores files as Django does, and gives what root stores to the owner of the folder."""

    def save(self, name: str | None, content: IO[Any], max_length: int | None = None) -> str:
        """Save as Django does; as root, also set the owner of the file and of new folders."""
        if os.geteuid() != 0:
            return super().save(name, content, max_length)
        folder = Path(self.path(name or "")).parent
        above = [folder, *folder.parents]
        for missing in reversed(above[: above.index(Path(self.location)) + 1]):
            private.folder(missing)
        saved = super().save(name, content, max_length)
        owner = folder.stat()
        os.chown(self.path(saved), owner.st_uid, owner.st_gid, follow_symlinks=False)
        return saved
