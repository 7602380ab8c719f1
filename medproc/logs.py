"""Log filters that keep patients' data out of the log.

A query, path, method, host or form can name a patient. The message of an exception can quote it,
and a database error quotes its statement. So a log record of Django keeps only words of Django,
numbers, and the shape of its path. An error keeps only its types and places.
"""

from __future__ import annotations

import logging
import re
import traceback
from functools import cache
from http import HTTPStatus
from urllib.parse import unquote
from uuid import UUID

from django.urls import Resolver404, resolve

_STATIC = re.compile(r"/static/([\w-][\w./-]*)", re.ASCII)
_HASH = re.compile(r"\.[0-9a-f]{12}(?=\.\w+$)", re.ASCII)
"""What the collection of static files adds to a name."""
_REQUEST_LINE = re.compile(r"(\S+) (\S.*?)(?: (HTTP/\d\.\d))?", re.DOTALL)
_STATUS = re.compile(r"\d{3}|\d{1,12}|-")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
_SECURITY = "django.security."
_NO_PAGE = "(unknown page)"
_NOT_SHOWN = "(not shown)"
PROBES = frozenset({"/health/live", "/health/ready"})
"""The paths of `medproc.web.probes`, which are no routes."""
METRICS = "/metrics"
"""The path of `observability.metrics.prometheus.endpoint`, which is no route."""
ASKED_OFTEN = PROBES | {METRICS}
"""The paths that machines ask for every few seconds."""
_LARGEST_NUMBER = 100_000
"""A larger number in a path could be the number of a patient, not of a page."""
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_FRAMES = 10
REFUSALS = (
    "SuspiciousOperation", "SuspiciousMultipartForm", "SuspiciousFileOperation", "DisallowedHost",
    "DisallowedRedirect", "DisallowedModelAdminLookup", "DisallowedModelAdminToField",
    "TooManyFieldsSent", "TooManyFilesSent", "RequestDataTooBig", "SuspiciousSession",
    "BadSignature", "InvalidSessionKey",
)  # fmt: skip
"""The exceptions with which Django refuses a request. Each is also the name of its logger."""
_PHRASES = frozenset(status.phrase for status in HTTPStatus)


class PathsOnly(logging.Filter):
    """Removes all user input from Django's log records; other records pass as they are."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the message of the record; every record passes."""
        is_new = not hasattr(record, "medproc_plain")
        if is_new and record.name.partition(".")[0] == "django":
            # A record meets this filter at its logger and at its handler.
            record.medproc_plain = True
            _rewrite(record)
        return True


def _rewrite(record: logging.LogRecord) -> None:
    name = record.name.removeprefix(_SECURITY)
    if record.name != name and name != "csrf":
        # The message quotes the name of a parameter or of a host.
        record.msg, record.args = f"refused: {name}", ()
    elif record.args and isinstance(record.args, tuple):
        if record.msg == "code %d, message %s":
            # The message quotes a request line that the server could not read.
            record.args = (record.args[0], _phrase(record.args[0]))
        record.args = tuple(map(allowed, record.args))
    elif record.args:
        record.msg, record.args = f"{name}: {_NOT_SHOWN}", ()
    if record.exc_info:
        record.msg = f"{record.getMessage()}: {places(record.exc_info[1])}"
        record.args, record.exc_info, record.exc_text = (), None, None


def _phrase(code: object) -> str:
    return next((status.phrase for status in HTTPStatus if status == code), _NOT_SHOWN)


def allowed(part: object) -> object:
    """Return an argument of a message as the log may hold it."""
    if isinstance(part, int | float | HTTPStatus):
        return part
    if not isinstance(part, str):
        return type(part).__name__
    if part in _METHODS or part in _PHRASES or _STATUS.fullmatch(part):
        return part
    if part.startswith("/"):
        return _shape(part)
    for beginning, reason in _csrf_reasons().items():
        if part.startswith(beginning):
            return reason
    found = _REQUEST_LINE.fullmatch(part)
    if found and found[1] in _METHODS and found[2].startswith("/"):
        return " ".join(filter(None, (found[1], _shape(found[2]), found[3])))
    return _NOT_SHOWN


@cache
def _csrf_reasons() -> dict[str, str]:
    """Return the beginning of each reason of the CSRF check, and the reason without an address."""
    # Imported late: the settings import this module.
    from django.middleware import csrf

    reasons = [each for name, each in vars(csrf).items() if name.startswith("REASON_")]
    return {each.partition("%s")[0]: each.replace("%s", _NOT_SHOWN) for each in reasons}


def _shape(path: str) -> str:
    """Return a path of ids unchanged, the route of a path with words, or "(unknown page)"."""
    path = path.partition("?")[0]
    if static := _STATIC.fullmatch(path):
        return path if _is_static_file(static[1]) else _NO_PAGE
    if path in ASKED_OFTEN:
        return path
    try:
        found = resolve(unquote(path))
    except Resolver404:
        return _NO_PAGE
    if found.url_name is None and found.kwargs:
        return (
            _NO_PAGE  # The last route of the admin accepts every path that no other route accepts.
        )
    is_plain = all(map(_is_id, found.kwargs.values())) and not found.args
    return path if is_plain and path.isascii() and "%" not in path else f"/{found.route}"


def _is_id(value: object) -> bool:
    # The routes of the API pass an id as text.
    if isinstance(value, str):
        return _UUID.fullmatch(value) is not None
    return isinstance(value, UUID) or (isinstance(value, int) and value < _LARGEST_NUMBER)


def _is_static_file(name: str) -> bool:
    # Imported late: the settings import this module.
    from django.contrib.staticfiles import finders

    return finders.find(_HASH.sub("", name)) is not None


def places(error: BaseException | None) -> str:
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
