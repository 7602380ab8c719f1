"""What a page says whose statement was stopped by the time limit. Imports the frame of a page."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse

from observability.views.shown import shown

logger = logging.getLogger(__name__)

STOPPED = "57014"
"""SQLSTATE of a statement that ran into `statement_timeout`."""


class TimeLimit:
    """Answer 503 with one line where the database was given up on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer for a view, or the rendering of its page, that was stopped."""
        is_stopped = getattr(error.__cause__, "sqlstate", None) == STOPPED
        if not isinstance(error, OperationalError) or not is_stopped:
            return None
        logger.warning("a page took too long: %s", request.path)
        return shown(
            request, "console/too_long.html", "Too long", status=HTTPStatus.SERVICE_UNAVAILABLE
        )
