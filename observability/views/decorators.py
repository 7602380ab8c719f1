"""The access check of every page and action of the console.

Imports rights. A page is read in a read-only transaction with a time limit, so that no GET changes
anything, whatever its code does; an action takes POST alone, with Django's CSRF token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from observability.audit import log
from observability.permissions import Right

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
            with reading():
                return view(request, *args, **kwargs)

        return answer

    return guarded


@dataclass(frozen=True, kw_only=True)
class PhiResponse:
    """A response that holds PHI, and what of it the audit is told."""

    response: HttpResponse
    target_kind: str
    target_id: object
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_written_down: bool = False
    """The page that it belongs to has been; a second row would count one reading twice."""


def phi(view: Callable[..., PhiResponse]) -> View:
    """Let a view answer GET alone, to whoever may read PHI, once it is written down.

    The view reads in `reading()` where it asks the database; a page that is not there is no
    reading. Nothing is shown whose row could not be written.
    """

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        _require(request, Right.READ_PHI)
        seen = view(request, *args, **kwargs)
        if not seen.is_written_down:
            log.record(
                request.user,
                log.READ_PHI,
                target_kind=seen.target_kind,
                target_id=seen.target_id,
                facts=seen.facts,
            )
        seen.response["Cache-Control"] = "no-store"
        return seen.response

    return answer


@contextmanager
def reading() -> Iterator[None]:
    """Open a read-only transaction with a time limit."""
    with transaction.atomic():
        _read_only()
        yield


@dataclass(frozen=True, kw_only=True)
class RequestedAction:
    """What a form asks for: an action, its right, and on what."""

    action: str
    right: Right
    target_kind: str
    target_id: object = ""
    """An id or a name that has been read; never a text as it was posted."""


def action(read_request: Callable[..., RequestedAction]) -> Callable[[View], View]:
    """Let a view answer POST alone, to users with the right that `read_request` returns.

    Who has not gets 403, and a row of the audit. `read_request` raises Http404 for what is not
    there.
    """

    def guarded(view: View) -> View:
        @wraps(view)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.method != "POST":
                return HttpResponseNotAllowed(["POST"])
            asked = read_request(request, *args, **kwargs)
            if not request.user.has_perm(asked.right.permission):
                log.record(
                    request.user,
                    asked.action,
                    target_kind=asked.target_kind,
                    target_id=asked.target_id,
                    result=log.AuditResult.REFUSED,
                    facts={"message": "without the right"},
                )
                raise PermissionDenied
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
