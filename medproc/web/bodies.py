"""A client without a log-in may not send a long body: a thread would read the body."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from medproc.web.limits import ANONYMOUS_BODY


class ShortAnonymousBodies:
    """Refuses a long body of a client without a log-in, before anything reads the body."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer 413 to a long body without a log-in."""
        length = request.META.get("CONTENT_LENGTH") or "0"
        is_long = not length.isascii() or not length.isdigit() or int(length) > ANONYMOUS_BODY
        if is_long and not request.user.is_authenticated:
            return HttpResponse(
                "Log in before you send a file.\n",
                status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                content_type="text/plain; charset=utf-8",
            )
        return self._get_response(request)
