"""Descriptions of exceptions without document text.

An exception's message or values can contain document text (PHI). A description keeps the types,
the error code and the places in the source, and drops every message and every value.
"""

from __future__ import annotations

import traceback

from pipeline.core.errors import PipelineError

FRAMES_KEPT = 6


def redacted(error: BaseException) -> str:
    """Describe an exception in one line by its types, its code and the place that raised it."""
    code = f" [{error.code}]" if isinstance(error, PipelineError) else ""
    causes = "".join(f" from {type(cause).__name__}" for cause in _causes(error))
    return f"{type(error).__name__}{code}{causes} at {_places(error)}"


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and cause not in found and len(found) < FRAMES_KEPT:
        found.append(cause)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return found


def _places(error: BaseException) -> str:
    frames = [
        f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return " < ".join(reversed(frames[-FRAMES_KEPT:])) or "an unknown place"
