"""The user who acts in this thread: the user of the request, or the user of the command line.

A middleware stores the request's user. Code without a request, such as a model signal, asks here.
"""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest, HttpResponse

_REQUEST: ContextVar[HttpRequest | None] = ContextVar("request", default=None)
_NAME: ContextVar[str] = ContextVar("name", default="")


class ActingUser:
    """Middleware after Django's authentication: makes the request's user known to `actor`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request, then forget its user."""
        token = _REQUEST.set(request)
        try:
            return self._get_response(request)
        finally:
            _REQUEST.reset(token)


def actor() -> AbstractBaseUser | AnonymousUser | str:
    """Return the name of `acting_as`, else the request's user, else the command line's user."""
    if name := _NAME.get():
        return name
    request = _REQUEST.get()
    return command_line() if request is None else request.user


@contextmanager
def acting_as(name: str) -> Iterator[None]:
    """Name the actor of changes in the block: during a log-in, the request has no user yet."""
    token = _NAME.set(name)
    try:
        yield
    finally:
        _NAME.reset(token)


def operator() -> str:
    """Return the system's user and host: `root@host`."""
    try:
        # From the process, because environment variables can be set to any name.
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"


def command_line() -> str:
    """Return the audit's name of the command line's user; no console user can have this name."""
    return f"command line: {operator()}"
