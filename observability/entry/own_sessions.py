"""The page of the user's own sessions, and the end of other sessions (OWASP ASVS 5.0, 7.5.2).

A session is named by a digest: with its key, a reader of the page could use the session.
django-user-sessions has such a page, but replaces the engine and the table of all sessions. Here
few sessions are live at once, so the page decodes all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from http import HTTPStatus

from django.contrib import messages
from django.contrib.auth import SESSION_KEY, authenticate
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from medproc.reading import reading
from observability.audit import log
from observability.entry.sessions import ADDRESS, BEGAN, BROWSER, SEEN, why_ended
from observability.entry.throttle import attempted
from observability.views.render import render_page
from pipeline.core.labels import counted, duration

FRESH_S = 300.0
"""Seconds after a log-in through the identity provider in which the user may end other sessions. A
user without a password cannot enter one."""


@dataclass(frozen=True, kw_only=True)
class OwnSession:
    """A live session of the user."""

    key: str
    began_at: datetime
    seen_at: datetime
    """The last request, to a minute by default; see `sessions.SEEN_SHARE`."""
    address: str
    browser: str
    """As the browser names itself; empty if it does not."""
    is_this: bool

    @property
    def mark(self) -> str:
        """The name of the session in forms."""
        return sha256(self.key.encode()).hexdigest()[:16]


@require_safe
def own_sessions(request: HttpRequest) -> HttpResponse:
    """Show the live sessions of the user, the newest first."""
    return _page(request)


@require_POST
def end_sessions(request: HttpRequest) -> HttpResponse:
    """End the chosen sessions of the user, after the user has proved who they are."""
    chosen = set(request.POST.getlist("session"))
    if not chosen:
        return _page(request, "Choose the sessions to end.", HTTPStatus.BAD_REQUEST)
    refusal = _refusal(request)
    if refusal is not None:
        words, status = refusal
        return _page(request, words, status)
    with transaction.atomic():
        found = [each for each in _sessions_of(request) if each.mark in chosen and not each.is_this]
        ended, _ = Session.objects.filter(session_key__in=[each.key for each in found]).delete()
        log.record(
            request.user,
            "end_sessions",
            target_kind="user",
            target_id=request.user.pk,
            facts={"sessions": ended},
        )
    messages.success(request, f"{counted(ended, 'session')} ended.")
    return redirect("admin:own_sessions")


def _page(
    request: HttpRequest, refusal: str = "", status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    with reading():
        found = sorted(_sessions_of(request), key=lambda each: each.began_at, reverse=True)
        return render_page(
            request,
            "console/own_sessions.html",
            "Your sessions",
            status=status,
            sessions=found,
            others=sum(not each.is_this for each in found),
            refusal=refusal,
            has_password=_has_password(request),
            fresh_for=duration(FRESH_S),
        )


def _sessions_of(request: HttpRequest) -> Iterator[OwnSession]:
    own = str(request.user.pk)
    now = time.time()
    for row in Session.objects.filter(expire_date__gt=timezone.now()).iterator():
        kept = row.get_decoded()
        if kept.get(SESSION_KEY) != own or why_ended(kept, now):
            continue
        yield OwnSession(
            key=row.session_key,
            began_at=datetime.fromtimestamp(kept[BEGAN], UTC),
            seen_at=datetime.fromtimestamp(kept[SEEN], UTC),
            address=kept.get(ADDRESS) or "",
            browser=kept.get(BROWSER) or "",
            is_this=row.session_key == request.session.session_key,
        )


def _refusal(request: HttpRequest) -> tuple[str, HTTPStatus] | None:
    """Return why the user is not believed, or None. A password counts as an attempt to log in."""
    if not _has_password(request):
        if time.time() - request.session[BEGAN] <= FRESH_S:
            return None
        words = f"Your log-in is older than {duration(FRESH_S)}. Log out, log in, and try again."
        return words, HTTPStatus.FORBIDDEN
    name = request.user.get_username()
    attempt = attempted(request, name)
    if attempt.wait_s:
        words = f"Too many wrong passwords from this address. Try again in {attempt.wait}."
        return words, HTTPStatus.TOO_MANY_REQUESTS
    user = authenticate(request, username=name, password=request.POST.get("password", ""))
    if user != request.user:
        return "The password is wrong. Nothing was ended.", HTTPStatus.FORBIDDEN
    attempt.succeeded()
    return None


def _has_password(request: HttpRequest) -> bool:
    return isinstance(request.user, User) and request.user.has_usable_password()
