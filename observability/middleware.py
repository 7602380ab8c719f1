"""Answers that are the same on every page: a request with NUL bytes, and a statement timeout.

Both get one clear line. The log never contains the text of the request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from http import HTTPStatus
from urllib.parse import unquote

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.template import loader
from psycopg.errors import QueryCanceled

from observability.views.decorators import PAGE_DEADLINE_MS

logger = logging.getLogger(__name__)

_NUL = "\0"


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

    def process_view(self, request: HttpRequest, *_: object) -> HttpResponse | None:
        """Refuse NUL in the fields of a form, which the CSRF check has parsed by now."""
        if request.method != "POST":
            return None
        fields = request.POST.lists()
        return _nul() if any(_NUL in text for k, each in fields for text in (k, *each)) else None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer 503 if a statement took too long; leave every other error to Django."""
        if not (isinstance(error, OperationalError) and isinstance(error.__cause__, QueryCanceled)):
            return None
        route = request.resolver_match.route if request.resolver_match else "?"
        logger.warning(
            "a statement of %s took more than %d s", route, PAGE_DEADLINE_MS // 1000,
            extra={"action": "page_timed_out", "route": route},
        )  # fmt: skip
        response = _page("503.html", HTTPStatus.SERVICE_UNAVAILABLE)
        response["Retry-After"] = "30"
        return response


def _addressed(request: HttpRequest) -> Iterator[str]:
    yield request.path_info
    yield unquote(request.META.get("QUERY_STRING", ""))
    yield from request.COOKIES.values()


def _nul() -> HttpResponse:
    return _page("400.html", HTTPStatus.BAD_REQUEST)


def _page(template: str, status: HTTPStatus) -> HttpResponse:
    # Rendered without the request, so that the page needs no database to know the user.
    return HttpResponse(loader.render_to_string(template), status=status)
