"""The end of a session: after a time without a request, and after a time since the log-in.

Django counts one time only, from the last change of a session, so that a session in use never ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import SESSION_KEY, logout
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.backends.base import SessionBase
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse

from medproc.web.client_address import client_address
from pipeline.core.labels import duration

BEGAN, SEEN = "began_at", "seen_at"
"""Keys of the session: the times of the log-in and of the last request, in seconds of the clock."""
ADDRESS, BROWSER = "address", "browser"
"""Keys of the session: the address of the log-in, and how the browser names itself."""
BROWSER_LENGTH = 200
"""Longest kept name of a browser; such a name is about 120 characters long."""
SEEN_SHARE = 1 / 30
"""The precision of the last request: a session is written at most once in this share of
SESSION_IDLE_S, which is a minute by default."""


@receiver(user_logged_in)
def begin(sender: Any, request: HttpRequest, **_: Any) -> None:
    """Note the time, the address and the browser of the log-in.

    A log-in that was begun at the identity provider gives the session of a stranger a near end. A
    password makes that session the user's.
    """
    request.session.set_expiry(None)
    request.session[BEGAN] = request.session[SEEN] = time.time()
    request.session[ADDRESS] = client_address(request)
    request.session[BROWSER] = request.headers.get("User-Agent", "")[:BROWSER_LENGTH]


class SessionLimits:
    """Logs a user out whose session has ended; the log-in page says why."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request of a session, or that of an anonymous user after the end."""
        if SESSION_KEY in request.session:
            now = time.time()
            if reason := why_ended(request.session, now):
                logout(request)
                messages.info(request, reason)
            elif now - request.session[SEEN] > settings.SESSION_IDLE_S * SEEN_SHARE:
                request.session[SEEN] = now
        return self._get_response(request)


def why_ended(session: SessionBase | Mapping[str, Any], now: float) -> str:
    """Return the reason why a session has ended, or an empty text."""
    began, seen = session.get(BEGAN), session.get(SEEN)
    if began is None or seen is None:
        return "Your session has ended. Log in again."
    if now - seen > settings.SESSION_IDLE_S:
        idle = duration(settings.SESSION_IDLE_S)
        return f"Your session ended after {idle} without a request. Log in again."
    if now - began > settings.SESSION_MAX_S:
        return f"Your session ended {duration(settings.SESSION_MAX_S)} after the log-in."
    return ""
