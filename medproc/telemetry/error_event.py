"""What an error tracker may know of an error: types, codes and places. Nothing else is copied.

The event is built from the exception, not from what the tracker's library collected. So a new
version of the library cannot add anything. Messages, values, arguments and variables can quote a
record; the names of types, modules and functions are source code.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from enum import Enum
from typing import Any

FRAMES = 50
"""Innermost frames of one exception that are sent."""
CAUSES = 10
"""Exceptions of one chain that are sent."""
OURS = ("medproc", "pipeline", "observability", "api")


def places_of(error: BaseException) -> list[dict[str, Any]]:
    """Return the frames of an exception, outermost first: module, function and line."""
    frames = [
        (str(frame.f_globals.get("__name__", "?")), frame.f_code.co_qualname, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return [
        {"module": module, "function": function, "lineno": line, "in_app": _is_ours(module)}
        for module, function, line in frames[-FRAMES:]
    ]


def code_of(error: BaseException) -> str:
    """Return the first code of ours in a chain of exceptions; empty without one."""
    for each in chain_of(error):
        code = getattr(each, "code", None)
        # Other programs' exceptions have codes too, some with text of a request.
        if isinstance(code, Enum) and _is_ours(type(code).__module__):
            return str(code.value)
    return ""


def chain_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, at most CAUSES in all."""
    seen: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in seen and len(seen) < CAUSES:
        seen.append(each)
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)


def event_of(
    error: BaseException, *, event_id: str, timestamp: str, release: str | None, **tags: str
) -> dict[str, Any]:
    """Return the whole event; empty tags are left out."""
    tags = {"code": code_of(error), **{name: text for name, text in tags.items() if text}}
    event: dict[str, Any] = {
        "event_id": event_id,
        "timestamp": timestamp,
        "platform": "python",
        "level": "error",
        "tags": {name: text for name, text in tags.items() if text},
        "exception": {
            # The tracker wants the cause first.
            "values": [
                {
                    "type": type(each).__qualname__,
                    "module": type(each).__module__,
                    "stacktrace": {"frames": places_of(each)},
                }
                for each in reversed(list(chain_of(error)))
            ]
        },
    }
    return event | ({"release": release} if release else {})


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in OURS
