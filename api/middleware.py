"""The requests under /api/: no cookie counts, only a token does, and no error is a page.

The tokens are checked before anything reads a body, so a stranger cannot send one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from api.problems import MEDIA_TYPE, ApiError, ApiErrorCode, as_problem, problem_of
from api.throttle import wait_s
from api.tokens import note_use, token_of

OPENAPI_PATH = "/api/v1/openapi.json"
_REALM = 'Bearer realm="medproc"'
_BEARER = re.compile(r"Bearer +(\S+) *", re.IGNORECASE)


def is_of_the_api(request: HttpRequest) -> bool:
    """Return whether the address belongs to the API."""
    return request.path_info.startswith("/api/")


class ApiAnswers:
    """Removes the cookies of a request of the API, and gives every error answer its form."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer; other addresses pass unchanged."""
        if not is_of_the_api(request):
            return self._get_response(request)
        # A browser adds the cookie of a logged-in user to the request of any page.
        request.META.pop("HTTP_COOKIE", None)
        response = self._get_response(request)
        is_error = response.status_code >= HTTPStatus.BAD_REQUEST
        if is_error and response.headers.get("Content-Type") != MEDIA_TYPE:
            response = as_problem(response)
        response["Cache-Control"] = "no-store"
        return response


class BearerTokens:
    """Makes the user of the token's client the user of the request, or refuses the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer a request with a valid token; refuse any other with 401 (RFC 6750)."""
        if not is_of_the_api(request) or request.path_info == OPENAPI_PATH:
            return self._get_response(request)
        try:
            self._admit(request)
        except Exception as error:  # noqa: BLE001 - the answer names the cause, or logs its place
            return problem_of(request, error)
        return self._get_response(request)

    def _admit(self, request: HttpRequest) -> None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            raise ApiError(ApiErrorCode.TOKEN_MISSING, headers={"WWW-Authenticate": _REALM})
        found = _BEARER.fullmatch(header)
        token = token_of(found[1]) if found else None
        if token is None:
            raise ApiError(
                ApiErrorCode.TOKEN_INVALID,
                headers={"WWW-Authenticate": f'{_REALM}, error="invalid_token"'},
            )
        seconds = wait_s(token.client_id)
        if seconds is not None:
            raise ApiError(ApiErrorCode.TOO_MANY_REQUESTS, headers={"Retry-After": str(seconds)})
        note_use(token)
        request.user = token.client.user
        request.api_token = token  # type: ignore[attr-defined]  # for the views of the API


def refused_route(request: HttpRequest, rest: str = "") -> HttpResponse:
    """Answer an unknown address under /api/."""
    return as_problem(HttpResponse(status=HTTPStatus.NOT_FOUND))
