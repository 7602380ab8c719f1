"""Who acts in this thread of execution: the user of the request, or whoever runs the command.

A middleware says it; what has no request of its own, such as a signal of a model, asks here.
"""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Callable
from contextvars import ContextVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest, HttpResponse

_REQUEST: ContextVar[HttpRequest | None] = ContextVar("request", default=None)


class ActingUser:
    """Middleware, after Django's own that names the user: lets `actor` know the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, and forget the request."""
        token = _REQUEST.set(request)
        try:
            return self._get_response(request)
        finally:
            _REQUEST.reset(token)


def actor() -> AbstractBaseUser | AnonymousUser | str:
    """Return the user of the request, or the command line's."""
    request = _REQUEST.get()
    return command_line() if request is None else request.user


def operator() -> str:
    """Return the system's user and host: `root@host`."""
    try:
        # Of the process, not of its environment, which says whatever it is told.
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"


def command_line() -> str:
    """Return the same as the audit has it; no user of the console can have that name."""
    return f"command line: {operator()}"
