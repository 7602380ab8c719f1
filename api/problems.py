"""Every error answer of the API: `application/problem+json` (RFC 9457) with a named code.

An answer repeats no value of the request, and no exception leaves the API as a page or a trace.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    UnreadablePostError,
)
from django.http.multipartparser import MultiPartParserError
from ninja.errors import HttpError, ValidationError
from psycopg.errors import QueryCanceled

from medproc.logs import places
from medproc.telemetry import errors
from observability.entry.refusals import fault_to_tell
from pipeline.core.errors import ErrorCode, MedprocError, PipelineError, UserError, UserErrorCode
from pipeline.core.server_faults import text_of

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 30
"""Seconds after which a client asks again when a server refuses; the same as for the console."""


class ApiErrorCode(StrEnum):
    """The codes that only the HTTP API has."""

    TOKEN_MISSING = "TOKEN_MISSING"  # noqa: S105 - the name of a code
    TOKEN_INVALID = "TOKEN_INVALID"  # noqa: S105 - the name of a code
    SCOPE_MISSING = "SCOPE_MISSING"
    REQUEST_MALFORMED = "REQUEST_MALFORMED"
    METHOD_NOT_ALLOWED = "METHOD_NOT_ALLOWED"
    MEDIA_TYPE_UNSUPPORTED = "MEDIA_TYPE_UNSUPPORTED"
    IDEMPOTENCY_KEY_REUSED = "IDEMPOTENCY_KEY_REUSED"
    IDEMPOTENCY_KEY_IN_USE = "IDEMPOTENCY_KEY_IN_USE"
    TOO_MANY_REQUESTS = "TOO_MANY_REQUESTS"
    TOO_MANY_UPLOADS = "TOO_MANY_UPLOADS"
    SERVER_BUSY = "SERVER_BUSY"


API_ERRORS: dict[ApiErrorCode, tuple[HTTPStatus, str]] = {
    ApiErrorCode.TOKEN_MISSING: (
        HTTPStatus.UNAUTHORIZED,
        "Send a token in the header: Authorization: Bearer medproc_…",
    ),
    ApiErrorCode.TOKEN_INVALID: (
        HTTPStatus.UNAUTHORIZED,
        "The token is unknown, revoked or expired. Ask an operator for another token.",
    ),
    ApiErrorCode.SCOPE_MISSING: (
        HTTPStatus.FORBIDDEN,
        "The token lacks the scope of this request. Ask an operator for a token with the scope.",
    ),
    ApiErrorCode.REQUEST_MALFORMED: (
        HTTPStatus.BAD_REQUEST,
        "The request cannot be read. Check its body, its headers and its path.",
    ),
    ApiErrorCode.METHOD_NOT_ALLOWED: (
        HTTPStatus.METHOD_NOT_ALLOWED,
        "This address does not accept the method. The header Allow names the methods.",
    ),
    ApiErrorCode.MEDIA_TYPE_UNSUPPORTED: (
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "Send the file as multipart/form-data, or alone with its own Content-Type.",
    ),
    ApiErrorCode.IDEMPOTENCY_KEY_REUSED: (
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "The idempotency key belongs to another request. Use a new key for a new request.",
    ),
    ApiErrorCode.IDEMPOTENCY_KEY_IN_USE: (
        HTTPStatus.CONFLICT,
        "A request with this idempotency key is still running. Send the request again later.",
    ),
    ApiErrorCode.TOO_MANY_REQUESTS: (
        HTTPStatus.TOO_MANY_REQUESTS,
        "The client sends too many requests. Wait as long as the header Retry-After says.",
    ),
    ApiErrorCode.TOO_MANY_UPLOADS: (
        HTTPStatus.TOO_MANY_REQUESTS,
        "The client sends too many files at once. Wait as long as the header Retry-After says.",
    ),
    ApiErrorCode.SERVER_BUSY: (
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The server did not answer in time. Send the request again later.",
    ),
}
"""The one table behind the answers and docs/errors.md: status and advice."""

Code = ErrorCode | UserErrorCode | ApiErrorCode | str

STATUSES: Mapping[Code, HTTPStatus] = {
    **{code: status for code, (status, _) in API_ERRORS.items()},
    UserErrorCode.NOT_FOUND: HTTPStatus.NOT_FOUND,
    UserErrorCode.STATE_CONFLICT: HTTPStatus.CONFLICT,
    UserErrorCode.RECORD_INCOMPLETE: HTTPStatus.CONFLICT,
    ErrorCode.INPUT_TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ErrorCode.STORAGE_FULL: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.STORAGE_REFUSED: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.DB_ERROR: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.INTERNAL_ERROR: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""Code → status; every other code is a request that cannot be carried out: 422."""

_BY_STATUS: Mapping[int, Code] = {
    HTTPStatus.BAD_REQUEST: ApiErrorCode.REQUEST_MALFORMED,
    HTTPStatus.UNAUTHORIZED: ApiErrorCode.TOKEN_INVALID,
    HTTPStatus.FORBIDDEN: ApiErrorCode.SCOPE_MISSING,
    HTTPStatus.NOT_FOUND: UserErrorCode.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED: ApiErrorCode.METHOD_NOT_ALLOWED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ErrorCode.INPUT_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: ApiErrorCode.MEDIA_TYPE_UNSUPPORTED,
    HTTPStatus.TOO_MANY_REQUESTS: ApiErrorCode.TOO_MANY_REQUESTS,
    HTTPStatus.SERVICE_UNAVAILABLE: ApiErrorCode.SERVER_BUSY,
}
_KEPT_HEADERS = ("Allow", "Retry-After", "WWW-Authenticate")
_NOT_FOUND = "There is nothing at this address that this client may see."


class ApiError(MedprocError):
    """A request that the API refuses with one of its own codes."""

    def __init__(
        self,
        code: ApiErrorCode,
        message: str = "",
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code = code
        self.headers = dict(headers or {})
        super().__init__(message or API_ERRORS[code][1])


def problem(
    code: Code,
    detail: str,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    errors: Iterable[Mapping[str, str]] = (),
) -> HttpResponse:
    """Return an error answer; without a status, the code decides."""
    status = status or STATUSES.get(code, HTTPStatus.UNPROCESSABLE_ENTITY)
    body: dict[str, Any] = {
        "type": f"urn:medproc:error:{code}",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": detail,
        "code": str(code),
    }
    if found := list(errors):
        body["errors"] = found
    response = HttpResponse(json.dumps(body, ensure_ascii=False), MEDIA_TYPE, status)
    for name, value in (headers or {}).items():
        response[name] = value
    if status == HTTPStatus.SERVICE_UNAVAILABLE and "Retry-After" not in response:
        response["Retry-After"] = str(RETRY_AFTER_S)
    response["Cache-Control"] = "no-store"
    return response


def problem_of(request: HttpRequest, error: BaseException) -> HttpResponse:
    """Return the answer to any error; an error of medproc's own is logged by its place."""
    if isinstance(error, ApiError):
        return problem(error.code, error.message, headers=error.headers)
    if isinstance(error, UserError | PipelineError):
        return problem(error.code, error.message)
    if (answer := _of_the_framework(error)) is not None:
        return answer
    route = request.resolver_match.route if request.resolver_match else "?"
    if (fault := fault_to_tell(route, error)) is not None:
        text = text_of(fault, names_address=False)
        return problem(
            fault, f"{text.message}. {text.advice}", status=HTTPStatus.SERVICE_UNAVAILABLE
        )
    if isinstance(error, OperationalError) and isinstance(error.__cause__, QueryCanceled):
        return problem(ApiErrorCode.SERVER_BUSY, API_ERRORS[ApiErrorCode.SERVER_BUSY][1])
    logger.error(
        "%s failed: %s", route, places(error), extra={"action": "api_failed", "route": route}
    )
    errors.report(error)
    return problem(
        ErrorCode.INTERNAL_ERROR, "This is an error in medproc. Report the time of the request."
    )


def as_problem(response: HttpResponseBase) -> HttpResponse:
    """Return an error answer of another part of the server in the form of the API."""
    status = response.status_code
    code = _BY_STATUS.get(
        status,
        ErrorCode.INTERNAL_ERROR
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR
        else ApiErrorCode.REQUEST_MALFORMED,
    )
    detail = API_ERRORS[code][1] if isinstance(code, ApiErrorCode) else ""
    if status == HTTPStatus.NOT_FOUND:
        detail = _NOT_FOUND
    headers = {name: response[name] for name in _KEPT_HEADERS if name in response}
    return problem(code, detail or HTTPStatus(status).phrase, status=status, headers=headers)


def _of_the_framework(error: BaseException) -> HttpResponse | None:
    match error:
        case ValidationError():
            return problem(
                UserErrorCode.VALUE_INVALID,
                "The request has values that cannot be used.",
                errors=[_wrong_value(each) for each in error.errors],
            )
        case Http404():
            return problem(UserErrorCode.NOT_FOUND, _NOT_FOUND)
        case PermissionDenied():
            return problem(ApiErrorCode.SCOPE_MISSING, API_ERRORS[ApiErrorCode.SCOPE_MISSING][1])
        case RequestDataTooBig():
            return problem(ErrorCode.INPUT_TOO_LARGE, "The body of the request is too long.")
        case HttpError() | SuspiciousOperation() | MultiPartParserError() | UnreadablePostError():
            return problem(
                ApiErrorCode.REQUEST_MALFORMED, API_ERRORS[ApiErrorCode.REQUEST_MALFORMED][1]
            )
    return None


def _wrong_value(error: Mapping[str, Any]) -> dict[str, str]:
    # Pydantic's own entry repeats the value. The parameter that holds a JSON body is named body
    # too, and its name is no place of the request.
    names = [str(each) for each in error.get("loc", ())]
    place = ".".join(names[1:] if names[:2] == ["body", "body"] else names)
    return {"place": place, "message": str(error.get("msg", ""))}
