"""The door of every page and verb of the console.

Imports rights. A page is read in a read-only transaction with a time limit, so that no GET changes
anything, whatever its code does; a verb takes POST alone, with Django's CSRF token.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from observability.rights import Right

View = Callable[..., HttpResponse]

PAGE_DEADLINE_MS = 10_000
"""Longest that one statement of a page may take; no page holds up the database for longer."""


def page(right: Right = Right.VIEW) -> Callable[[View], View]:
    """Let a view answer GET alone, to whoever has the right, and write nothing.

    403 without the right, 405 for another method; who is not logged in is sent to the log-in by
    `admin_view`.
    """

    def guarded(view: View) -> View:
        @wraps(view)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.method not in {"GET", "HEAD"}:
                return HttpResponseNotAllowed(["GET", "HEAD"])
            _require(request, right)
            with transaction.atomic():
                _read_only()
                return view(request, *args, **kwargs)

        return answer

    return guarded


def verb(right: Right = Right.VIEW) -> Callable[[View], View]:
    """Let a view answer POST alone, to whoever has the right.

    A view whose verb is in its URL asks for the verb's right itself.
    """

    def guarded(view: View) -> View:
        @wraps(view)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            _require(request, right)
            return view(request, *args, **kwargs)

        return answer

    return guarded


def _require(request: HttpRequest, right: Right) -> None:
    if not request.user.has_perm(right.permission):
        raise PermissionDenied


def _read_only() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('transaction_read_only', 'on', true),"
            " set_config('statement_timeout', %s, true)",
            [str(PAGE_DEADLINE_MS)],
        )
