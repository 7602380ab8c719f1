"""What may be logged of a request. Imports the standard library and Django's resolver only.

What is typed into a browser can name a patient, in a query, in a path, in a form; what an exception
says can quote it, and the database quotes its statement. So a record of Django's has the shape of
its path, and of an error the types and places.
"""

from __future__ import annotations

import logging
import re
import traceback
from urllib.parse import unquote
from uuid import UUID

from django.urls import Resolver404, resolve

_QUERY = re.compile(r"\?\S*")
_PATH = re.compile(r"(?<=\s)/.*?(?=\s+HTTP/\d|$)", re.DOTALL)
_STATIC = re.compile(r"/static/[\w./-]+\Z")
_SECURITY = "django.security."
_NO_PAGE = "(no page of ours)"
_FRAMES = 10
REFUSALS = (
    "SuspiciousOperation", "SuspiciousMultipartForm", "SuspiciousFileOperation", "DisallowedHost",
    "DisallowedRedirect", "DisallowedModelAdminLookup", "DisallowedModelAdminToField",
    "TooManyFieldsSent", "TooManyFilesSent", "RequestDataTooBig", "SuspiciousSession",
    "BadSignature", "InvalidSessionKey",
)  # fmt: skip
"""What Django refuses, by the name of its exception, which is its logger's too."""


class PathsOnly(logging.Filter):
    """Leaves of a record of Django's what no person has typed."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record's words; every record passes."""
        if record.name.startswith(_SECURITY):
            # Its words quote the name of the parameter or of the host.
            record.msg, record.args = f"refused: {record.name.removeprefix(_SECURITY)}", ()
        if isinstance(record.args, tuple):
            record.args = tuple(_stripped(part) for part in record.args)
        if isinstance(record.msg, str):
            record.msg = _QUERY.sub("", record.msg)
        if record.exc_info:
            record.msg = f"{record.getMessage()}: {_places(record.exc_info[1])}"
            record.args, record.exc_info, record.exc_text = (), None, None
        return True


def _stripped(part: object) -> object:
    if not isinstance(part, str):
        return part
    text = _QUERY.sub("", part)
    return _shape(text) if text.startswith("/") else _PATH.sub(lambda found: _shape(found[0]), text)


def _shape(path: str) -> str:
    """Return a path of ids and numbers, the route of one with words, and of an unknown one none."""
    if _STATIC.match(path) and ".." not in path:
        return path
    try:
        found = resolve(unquote(path))
    except Resolver404:
        return _NO_PAGE
    if found.url_name is None and found.kwargs:
        return _NO_PAGE  # The admin's own last route takes whatever no other does.
    is_plain = all(isinstance(each, UUID | int) for each in found.kwargs.values())
    return path if is_plain and not found.args else f"/{found.route}"


def _places(error: BaseException | None) -> str:
    """Name the types of an error and of its causes, and where it was raised; not what it says."""
    if error is None:
        return "an unknown error"
    types, cause = [type(error).__name__], error.__cause__ or error.__context__
    while cause is not None and len(types) < _FRAMES:
        types.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    frames = [
        f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    return f"{' from '.join(types)} at {' < '.join(reversed(frames[-_FRAMES:]))}"
