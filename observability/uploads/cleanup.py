"""The periodic task that deletes files of killed processes from the private folder.

A file is deleted if it was not written to for an hour and no reader holds a lock on it.
"""

from __future__ import annotations

from medproc.timing import scaled
from pipeline.documents import scratch

OLD_S = 3600.0


def sweep() -> str:
    """Delete the abandoned files; return how many were deleted, in words."""
    gone = scratch.delete(scratch.abandoned(scaled(OLD_S)))
    return f"deleted {gone} abandoned files of uploads and reads" if gone else ""
