"""The finder of the console's own files: a path that leaves their folder finds nothing."""

from __future__ import annotations

from typing import Any

from django.contrib.staticfiles.finders import AppDirectoriesFinder
from django.core.exceptions import SuspiciousOperation


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
