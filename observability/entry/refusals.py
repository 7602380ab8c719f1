"""Answers that are the same on every page: NUL bytes, a statement timeout, a server that refuses.

Each gets one clear line. The log never contains the text of the request.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from http import HTTPStatus
from urllib.parse import unquote

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.template import loader
from psycopg.errors import QueryCanceled

from medproc.reading import PAGE_DEADLINE_MS
from pipeline.core.server_faults import FaultLog, ServerFault, fault_of, text_of
from pipeline.operations.server_check import postgres_fault

logger = logging.getLogger(__name__)

_NUL = "\0"
_FAULTS = FaultLog()


class ClearRefusals:
    """Refuses NUL bytes with 400, and answers 503 after a statement timeout."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, unless path, query or a cookie contains NUL, which PostgreSQL cannot store."""
        # Cookies too: the session is looked up in the database by a cookie's value.
        if any(_NUL in text for text in _addressed(request)):
            return _nul()
        return self._get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], *_: object
    ) -> HttpResponse | None:
        """Refuse NUL in the fields of a form, which the CSRF check has parsed by now.

        A view without that check, such as a view of the API, reads its body itself.
        """
        if request.method != "POST" or getattr(view, "csrf_exempt", False):
            return None
        fields = request.POST.lists()
        return _nul() if any(_NUL in text for k, each in fields for text in (k, *each)) else None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer 503 after a statement timeout, and if a server refuses."""
        refused = refusal(request, error)
        if refused is not None:
            return refused
        if not (isinstance(error, OperationalError) and isinstance(error.__cause__, QueryCanceled)):
            return None
        route = _route(request)
        logger.warning(
            "a statement of %s took more than %d s", route, PAGE_DEADLINE_MS // 1000,
            extra={"action": "page_timed_out", "route": route},
        )  # fmt: skip
        response = _page("503.html", HTTPStatus.SERVICE_UNAVAILABLE)
        response["Retry-After"] = "30"
        return response


def refusal(request: HttpRequest, error: BaseException | None) -> HttpResponse | None:
    """Return the page that names why a server refuses, or None for another error."""
    fault = None if error is None else fault_to_tell(_route(request), error)
    if fault is None:
        return None
    # Everybody who can reach the log-in page sees this page.
    text = text_of(fault, names_address=False)
    page = loader.render_to_string(
        "refused.html", {"fault": fault, "text": text, "server": fault.server}
    )
    response = HttpResponse(page, status=HTTPStatus.SERVICE_UNAVAILABLE)
    response["Retry-After"] = "30"
    response["Cache-Control"] = "no-store"
    return response


def fault_to_tell(route: str, error: BaseException) -> ServerFault | None:
    """Log and return the fault of a server that the client of a route is told; None for others."""
    fault = fault_of(error)
    # A page reads in a read-only transaction, so a write in it would be an error of ours.
    if fault is ServerFault.POSTGRES_READ_ONLY and postgres_fault() is not fault:
        return None
    if fault is not None and (line := _FAULTS.line_if_due(error)):
        logger.error("%s refused: %s", route, line, extra={"action": "server_refuses"})
    return fault


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer an error outside a view, such as one of the session: 503 with its cause, or 500."""
    return refusal(request, sys.exception()) or _page("500.html", HTTPStatus.INTERNAL_SERVER_ERROR)


def _route(request: HttpRequest) -> str:
    return request.resolver_match.route if request.resolver_match else "?"


def _addressed(request: HttpRequest) -> Iterator[str]:
    yield request.path_info
    yield unquote(request.META.get("QUERY_STRING", ""))
    yield from request.COOKIES.values()


def _nul() -> HttpResponse:
    return _page("400.html", HTTPStatus.BAD_REQUEST)


def _page(template: str, status: HTTPStatus) -> HttpResponse:
    # Rendered without the request, so that the page needs no database to know the user.
    return HttpResponse(loader.render_to_string(template), status=status)
