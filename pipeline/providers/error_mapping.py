"""Map each exception of the SDK or its transport to one code of the taxonomy (requirement 19).

The order is fixed: ErrorInfo reason, then a day or spend violation, then the words of the message,
then a web page, then the status. Exceptions are recognized by module and name, so that this module
loads no SDK. No error message quotes input. `reply_parsing` checks the body of a 200.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self

from pipeline.core.errors import CallDetails, CallError, ErrorCode
from pipeline.providers.wire_text import (
    MAX_HINT_S,
    UNREADABLE,
    WireText,
    allowed,
    hint_seconds,
    is_lasting,
)

DISCONNECT_IS_TIMEOUT_S = 55.0
"""The service drops a call at 60 s. A connection that breaks after 55 s is therefore a timeout, not
an outage."""

ERROR_INFO_CODES: dict[str, ErrorCode] = {
    "API_KEY_INVALID": ErrorCode.API_AUTH,
    "API_KEY_EXPIRED": ErrorCode.API_AUTH,
    "API_KEY_SERVICE_BLOCKED": ErrorCode.API_AUTH,
    "API_KEY_HTTP_REFERRER_BLOCKED": ErrorCode.API_AUTH,
    "API_KEY_IP_ADDRESS_BLOCKED": ErrorCode.API_AUTH,
    "API_KEY_ANDROID_APP_BLOCKED": ErrorCode.API_AUTH,
    "API_KEY_IOS_APP_BLOCKED": ErrorCode.API_AUTH,
    "ACCESS_TOKEN_EXPIRED": ErrorCode.API_AUTH,
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": ErrorCode.API_AUTH,
    "ACCESS_TOKEN_TYPE_UNSUPPORTED": ErrorCode.API_AUTH,
    "ACCOUNT_STATE_INVALID": ErrorCode.API_AUTH,
    "BILLING_DISABLED": ErrorCode.API_BILLING,
    "CONSUMER_INVALID": ErrorCode.API_AUTH,
    "CONSUMER_SUSPENDED": ErrorCode.API_AUTH,
    "CREDENTIALS_MISSING": ErrorCode.API_AUTH,
    "IAM_PERMISSION_DENIED": ErrorCode.API_AUTH,
    "SERVICE_DISABLED": ErrorCode.API_AUTH,
    "USER_PROJECT_DENIED": ErrorCode.API_AUTH,
    "RESOURCE_QUOTA_EXCEEDED": ErrorCode.QUOTA_EXHAUSTED,
}
"""ErrorInfo reasons that decide alone. RATE_LIMIT_EXCEEDED is missing here on purpose: the service
sends it with per-day violations too, and then the violation decides. Without a violation the reply
is an ordinary 429."""

STATUSES: dict[int, ErrorCode] = {
    401: ErrorCode.API_AUTH,
    402: ErrorCode.API_BILLING,
    403: ErrorCode.API_AUTH,
    407: ErrorCode.API_PROXY,
    408: ErrorCode.API_TIMEOUT,
    413: ErrorCode.CONTEXT_TOO_LARGE,
    429: ErrorCode.RATE_LIMIT,
    499: ErrorCode.API_TIMEOUT,
    504: ErrorCode.API_TIMEOUT,
    511: ErrorCode.API_PROXY,
}
"""HTTP statuses with a code of their own. A redirect is API_PROXY, every other status ≥ 500 (500,
502, 503) is API_5XX, and every other status is API_4XX."""

PAGE_STATUSES = frozenset({200, 401, 403, 404, 405})
"""Statuses that the service sends with JSON. A web page with one of these statuses comes from a
proxy or from another server. The gateway of the service itself sends pages with other statuses."""

STATUS_OF_NAME: dict[str, int] = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""The HTTP status of a status name, for an error without a status of its own."""

MESSAGES: tuple[tuple[range, re.Pattern[str], ErrorCode], ...] = tuple(
    (statuses, re.compile(pattern, re.IGNORECASE), code)
    for statuses, pattern, code in (
        (range(400, 401), r"api[ _]key (not valid|expired|not found)", ErrorCode.API_AUTH),
        (range(400, 404), r"enable billing|billing to be enabled", ErrorCode.API_BILLING),
        (range(400, 401), r"input token count.*exceeds", ErrorCode.CONTEXT_TOO_LARGE),
        (range(400, 401), r"request payload size exceeds", ErrorCode.CONTEXT_TOO_LARGE),
        (range(400, 401), r"document has no pages", ErrorCode.INPUT_INVALID),
        (range(400, 401), r"unable to process input", ErrorCode.INPUT_INVALID),
        (range(429, 430), r"spend(ing)? (limit|cap)", ErrorCode.QUOTA_EXHAUSTED),
        (range(429, 430), r"credits are depleted", ErrorCode.QUOTA_EXHAUSTED),
        (range(500, 600), r"deadline expired|deadline exceeded", ErrorCode.API_TIMEOUT),
    )
)
"""Messages of the service that refine a status."""

TRANSPORT: dict[str, ErrorCode] = {
    "TimeoutException": ErrorCode.API_TIMEOUT,
    "UnsupportedProtocol": ErrorCode.API_4XX,
    "LocalProtocolError": ErrorCode.API_4XX,
    "InvalidURL": ErrorCode.API_4XX,
    "TransportError": ErrorCode.API_5XX,
    "DecodingError": ErrorCode.API_5XX,
    "HTTPError": ErrorCode.API_5XX,
}
"""Exceptions of httpx by name, including base classes. The most derived name in this table
decides."""

_MEANINGS = {
    ErrorCode.API_BILLING: "(the provider asks for a payment)",
    ErrorCode.API_PROXY: "(a proxy or a wrong address answered)",
}
_CUT_OFF = frozenset({"RemoteProtocolError", "ReadError"})
_TRANSPORT_MODULES = ("httpx2", "httpx", "httpcore2", "httpcore")
_PROXY_STATUS = re.compile(r"(\d{3})\b")
_SECONDS = re.compile(r"^(\d+(?:\.\d+)?)s?$")
_PLEASE_RETRY = re.compile(r"please retry in (\d+(?:\.\d+)?)s", re.IGNORECASE)
_MESSAGE_READ = 10_000
"""Characters of a message that are matched. A longer message would cost too much time."""


@dataclass(frozen=True, kw_only=True)
class ServiceError:
    """The fields of a service error that this project uses."""

    status: int
    name: str = ""
    """`RESOURCE_EXHAUSTED`, `UNAVAILABLE` …"""
    message: str = ""
    """The words of the service. They are matched against `MESSAGES` and never passed on."""
    reason: str = ""
    """The reason of ErrorInfo."""
    quota_ids: tuple[str, ...] = ()
    retry_after_s: float | None = None
    is_page: bool = False
    """The body was a web page."""
    is_inside_200: bool = False
    """The reply had the status 200; `status` is the status that the body names."""

    @property
    def lasting_quota(self) -> str:
        """The first quota longer than a minute (a day, a month, a spend limit), or ""."""
        return next(filter(is_lasting, self.quota_ids), "")

    @property
    def code(self) -> ErrorCode:
        """The code of the taxonomy, chosen in the fixed order."""
        if self.reason in ERROR_INFO_CODES:
            return ERROR_INFO_CODES[self.reason]
        if self.lasting_quota:
            return ErrorCode.QUOTA_EXHAUSTED
        for statuses, pattern, code in MESSAGES:
            if self.status in statuses and pattern.search(self.message):
                return code
        if self.is_page and self.status in PAGE_STATUSES:
            return ErrorCode.API_PROXY
        if self.status in STATUSES:
            return STATUSES[self.status]
        if 300 <= self.status < 400:
            return ErrorCode.API_PROXY
        return ErrorCode.API_5XX if self.status >= 500 else ErrorCode.API_4XX


class ErrorBoundary:
    """Turn an exception raised inside into `error`, and keep nothing of the original.

    The caller raises `error` after the block, so that not even `__context__` leads to a library's
    text: `with boundary: return work()`, then `raise boundary.error`.
    """

    def __init__(self, elapsed_s: Callable[[], float] = lambda: 0.0) -> None:
        self._elapsed_s = elapsed_s
        self.error = CallError(code=ErrorCode.INTERNAL_ERROR)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> bool:
        if not isinstance(exc, Exception):
            return False
        self.error = classify(exc, elapsed_s=self._elapsed_s())
        return True


def classify(exc: Exception, *, elapsed_s: float = 0.0) -> CallError:
    """Return the `CallError` for `exc`; `elapsed_s` is the age of the call."""
    if isinstance(exc, CallError):
        return exc
    failure = read_failure(exc)
    if failure is not None:
        return _call_error(failure)
    kind = type(exc).__name__
    if kind == "ProxyError" and (refused := _refusal_of_proxy(exc)) is not None:
        return refused
    if (code := _transport_code(exc, elapsed_s)) is not None:
        return CallError(f"the connection failed: {kind}", code=code)
    if isinstance(exc, (json.JSONDecodeError, UnicodeDecodeError)):
        return CallError("the service's reply was not JSON", code=ErrorCode.PARSE_JSON)
    if isinstance(exc, TimeoutError):
        return CallError("the call timed out", code=ErrorCode.API_TIMEOUT)
    if isinstance(exc, OSError):
        return CallError(f"the connection failed: {kind}", code=ErrorCode.API_5XX)
    return CallError(f"the provider's client raised {kind}", code=ErrorCode.INTERNAL_ERROR)


def error_of_unreadable_body(status: int, headers: Mapping[str, str]) -> CallError:
    """Return the error for a reply with an unreadable body, from its status and headers."""
    failure = read_error_body(status, None, retry_after_s(headers))
    return _call_error(replace(failure, is_page="html" in headers.get("content-type", "")))


def error_inside_200(body: object) -> CallError | None:
    """Return the error that a proxy passed on with status 200; None if `body` holds no error."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    error = body.get("error") if isinstance(body, dict) and "candidates" not in body else None
    if not error:
        return None
    fields: dict[str, object] = error if isinstance(error, dict) else {"message": error}
    code = str(fields.get("code"))
    status = int(code) if len(code) == 3 and code.isascii() and code.isdecimal() else 0
    if not 300 <= status < 600:
        status = STATUS_OF_NAME.get(allowed(WireText.STATUS, fields.get("status")), 500)
    return _call_error(replace(read_error_body(status, {"error": fields}), is_inside_200=True))


def error_of_page() -> CallError:
    """Return the error for a web page with status 200."""
    return _call_error(ServiceError(status=200, is_page=True))


def read_failure(exc: Exception) -> ServiceError | None:
    """Read an `APIError` of the SDK (or a similar class); return None for any other exception."""
    status, body = getattr(exc, "code", None), getattr(exc, "details", None)
    if not isinstance(status, int) or not type(exc).__module__.startswith("google.genai"):
        return None
    return read_error_body(status, body, _hint_of_headers(exc))


def read_error_body(status: int, body: object, header_hint_s: float | None = None) -> ServiceError:
    """Read an error body: `{"error": {…}}`, a flat object from an HTML page, or any other value."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    outer: dict[str, object] = body if isinstance(body, dict) else {}
    inner = outer.get("error")
    error: dict[str, object] = inner if isinstance(inner, dict) else outer
    message = _message(error.get("message"))
    details = [d for d in _list(error.get("details")) if isinstance(d, dict)]
    reasons = [r for d in details if (r := allowed(WireText.REASON, d.get("reason")))]
    return ServiceError(
        status=status,
        # A flat object is made by the SDK of a web page, and its status is the reason phrase.
        name=allowed(WireText.STATUS, error.get("status")) if inner is error else "",
        message=message,
        reason=next((r for r in reasons if r in ERROR_INFO_CODES), next(iter(reasons), "")),
        quota_ids=tuple(dict.fromkeys(_quota_ids(details))),
        retry_after_s=_hint(details, message, header_hint_s),
        is_page=inner is None and is_page(message),
    )


def is_page(text: str) -> bool:
    """Return whether a body is markup, as a web page is, in place of JSON."""
    return text.lstrip("\ufeff \t\r\n").startswith("<")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, which names seconds or a date; None without a hint.

    A date counts from the sender's own Date, because the clocks can differ.
    """
    value = headers.get("retry-after", "").strip()
    if found := _SECONDS.match(value):
        return hint_seconds(found[1])
    until = _moment(value)
    if until is None:
        return None
    sent_at = _moment(headers.get("date", ""))
    wait_s = until - (time.time() if sent_at is None else sent_at)
    return min(max(0.0, wait_s), MAX_HINT_S)


def _moment(value: str) -> float | None:
    """Return an HTTP date as Unix time."""
    try:
        found = parsedate_to_datetime(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _quota_ids(details: list[dict[str, object]]) -> Iterator[str]:
    for detail in details:
        for violation in _list(detail.get("violations")):
            if isinstance(violation, dict):
                yield from _quota_of(violation)
        metadata = detail.get("metadata")
        if isinstance(metadata, dict):
            for key in ("quota_id", "quota_limit"):
                if found := allowed(WireText.QUOTA, metadata.get(key)):
                    yield found


def _quota_of(violation: dict[str, object]) -> Iterator[str]:
    """Yield the name of a violated quota: the first readable name, or else the first name."""
    keys = ("quotaId", "quotaMetric", "subject")
    names = [found for key in keys if (found := allowed(WireText.QUOTA, violation.get(key)))]
    readable = (name for name in names if not name.startswith(UNREADABLE))
    yield from itertools.islice((*readable, *names), 1)


def _hint(
    details: list[dict[str, object]], message: str, header_hint_s: float | None
) -> float | None:
    """Return the seconds to wait, from RetryInfo, a proxy's Retry-After or the message."""
    for detail in details:
        match detail.get("retryDelay"):
            case str(text) if found := _SECONDS.match(text.strip()):
                return hint_seconds(found[1])
            case {"seconds": seconds, **rest}:
                found = _SECONDS.match(str(seconds))
                nanos = rest.get("nanos", 0)
                if found:
                    part = nanos if isinstance(nanos, int) and 0 <= nanos < 10**9 else 0
                    return hint_seconds(found[1]) + part / 1e9
    if header_hint_s is not None:
        return header_hint_s
    found = _PLEASE_RETRY.search(message)
    return hint_seconds(found[1]) if found else None


def _hint_of_headers(exc: Exception) -> float | None:
    headers = getattr(getattr(exc, "response", None), "headers", None)
    return None if headers is None else retry_after_s(headers)


def _refusal_of_proxy(exc: Exception) -> CallError | None:
    """Return the error if the network's proxy refuses every call; None if it may recover."""
    if exc.__class__.__module__.partition(".")[0] not in _TRANSPORT_MODULES:
        return None
    if "username/password" in str(exc):
        return CallError("the proxy of the network refused the login", code=ErrorCode.API_PROXY)
    # The client gives the status of the proxy only as the first word of its message.
    found = _PROXY_STATUS.match(str(exc))
    status = int(found[1]) if found else 0
    if not (300 <= status < 500 or status == 511) or status in {408, 429}:
        return None
    return CallError(
        f"HTTP {status} from the proxy of the network",
        code=ErrorCode.API_PROXY,
        details=CallDetails(http_status=status),
    )


def _transport_code(exc: Exception, elapsed_s: float) -> ErrorCode | None:
    for base in type(exc).__mro__:
        if base.__module__.partition(".")[0] not in _TRANSPORT_MODULES:
            continue
        if base.__name__ in _CUT_OFF and elapsed_s >= DISCONNECT_IS_TIMEOUT_S:
            return ErrorCode.API_TIMEOUT
        if base.__name__ in TRANSPORT:
            return TRANSPORT[base.__name__]
    return None


def _call_error(failure: ServiceError) -> CallError:
    return CallError(
        _describe(failure),
        code=failure.code,
        details=CallDetails(
            http_status=200 if failure.is_inside_200 else failure.status,
            quota_id=failure.lasting_quota or next(iter(failure.quota_ids), ""),
            retry_after_s=failure.retry_after_s,
        ),
    )


def _describe(failure: ServiceError) -> str:
    """Describe the failure in our own words and in enum names of the service."""
    words = [f"HTTP {failure.status}", failure.name, failure.reason, *failure.quota_ids[:2]]
    if failure.is_inside_200:
        words.insert(0, "a proxy answered 200 with an error inside:")
    elif failure.code in _MEANINGS:
        words.append(_MEANINGS[failure.code])
    if failure.retry_after_s is not None:
        words.append(f"retry in {failure.retry_after_s:.1f} s")
    return " ".join(word for word in words if word)


def _message(value: object) -> str:
    return value[:_MESSAGE_READ] if isinstance(value, str) else ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
