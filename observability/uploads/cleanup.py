"""The periodic task that deletes the scratch files of killed processes.

A file is deleted if the last write is an hour ago and no process holds a lock on the file.
"""

from __future__ import annotations

from medproc.timing import scaled
from pipeline.documents import scratch

OLD_S = 3600.0


def sweep() -> str:
    """Delete the abandoned files; return how many were deleted, in words."""
    gone = scratch.delete(scratch.abandoned(scaled(OLD_S)))
    return f"deleted {gone} abandoned files of uploads and reads" if gone else ""
