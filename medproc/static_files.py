"""The console's own files: found below the applications, served under names with a hash.

`manage.py serve` collects the files. Until then, for example in a command that renders a page, the
addresses have no hash.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.finders import AppDirectoriesFinder
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.core.exceptions import SuspiciousOperation
from whitenoise.storage import CompressedManifestStaticFilesStorage


class InsideFinder(AppDirectoriesFinder):
    """Finds files below the folders of the applications."""

    def find(self, path: str, *args: Any, **kwargs: Any) -> Any:
        """Return the places of a file; an impossible path has none.

        Django's finder raises, and its server then prints the path with a traceback.
        """
        try:
            return super().find(path, *args, **kwargs)
        except (SuspiciousOperation, ValueError, OSError):
            return []


class CollectedStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # whitenoise is untyped
    """Names each file with the hash of its content, so that a browser may keep the file."""

    def url(self, name: str, force: bool = False) -> str:
        """Return the address of a file."""
        if not self.hashed_files:
            return StaticFilesStorage.url(self, name)
        address: str = super().url(name, force)
        return address


def stamp_of_sources() -> str:
    """Return a hash of the paths, sizes and times of all files that a collection would take."""
    seen = hashlib.sha256()
    for finder in finders.get_finders():
        for name, storage in finder.list([]):
            status = Path(storage.path(name)).stat()
            seen.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return seen.hexdigest()
