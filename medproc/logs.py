"""Log filters that keep patients' data out of the log.

A query, path or form can name a patient. The message of an exception can quote it, and a database
error quotes its statement. So a log record of Django keeps only the shape of its path. An error
keeps only its types and places.
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
_NO_PAGE = "(unknown page)"
_FRAMES = 10
REFUSALS = (
    "SuspiciousOperation", "SuspiciousMultipartForm", "SuspiciousFileOperation", "DisallowedHost",
    "DisallowedRedirect", "DisallowedModelAdminLookup", "DisallowedModelAdminToField",
    "TooManyFieldsSent", "TooManyFilesSent", "RequestDataTooBig", "SuspiciousSession",
    "BadSignature", "InvalidSessionKey",
)  # fmt: skip
"""The exceptions with which Django refuses a request. Each is also the name of its logger."""


class PathsOnly(logging.Filter):
    """Removes all user input from Django's log records."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the message of the record; every record passes."""
        if record.name.startswith(_SECURITY):
            # The message quotes the name of a parameter or of a host.
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
    """Return a path of ids unchanged, the route of a path with words, or "(unknown page)"."""
    if _STATIC.match(path) and ".." not in path:
        return path
    try:
        found = resolve(unquote(path))
    except Resolver404:
        return _NO_PAGE
    if found.url_name is None and found.kwargs:
        return (
            _NO_PAGE  # The last route of the admin accepts every path that no other route accepts.
        )
    is_plain = all(isinstance(each, UUID | int) for each in found.kwargs.values())
    return path if is_plain and not found.args else f"/{found.route}"


def _places(error: BaseException | None) -> str:
    """Return the types of an error and its causes, and its place, without its message."""
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
