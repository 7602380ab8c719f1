"""The access check of every page and every action of the console.

A page runs in a read-only transaction with a time limit, so no GET changes data. An action accepts
only POST with Django's CSRF token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from medproc.reading import reading
from observability.audit import log
from observability.permissions import Right

View = Callable[..., HttpResponse]


def page(right: Right = Right.VIEW) -> Callable[[View], View]:
    """Restrict a view to GET and to users with the right; the view writes nothing.

    Return 403 without the right and 405 for another method. `admin_view` sends anonymous users to
    the log-in page.
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
    """A response that contains PHI, and the facts that the audit records."""

    response: HttpResponse
    target_kind: str
    target_id: object
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_written_down: bool = False
    """The audit already has the page of this response; a second row would count a reading twice."""


def phi(view: Callable[..., PhiResponse]) -> View:
    """Restrict a view to GET and to users who may read PHI, and record each reading.

    The view uses `reading()` for its queries. A missing page is not a reading. PHI is shown only
    after the audit has the row.
    """

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method not in {"GET", "HEAD"}:
            return HttpResponseNotAllowed(["GET", "HEAD"])
        _require(request, Right.READ_PHI)
        return written_down(request, view(request, *args, **kwargs))

    return answer


def written_down(request: HttpRequest, seen: PhiResponse) -> HttpResponse:
    """Record a reading of PHI, and return the response."""
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


@dataclass(frozen=True, kw_only=True)
class RequestedAction:
    """The request of a form: an action, its right and its target."""

    action: str
    right: Right
    target_kind: str
    target_id: object = ""
    """A validated id or name, never the posted text."""


def action(read_request: Callable[..., RequestedAction]) -> Callable[[View], View]:
    """Restrict a view to POST and to users with the right that `read_request` returns.

    A user without the right gets 403, and the audit records the refusal. `read_request` raises
    Http404 for an unknown target.
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
