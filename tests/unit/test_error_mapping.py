"""Each error of the SDK and its transport becomes the code of a named table."""

from __future__ import annotations

import json
import time
import traceback
from email.utils import formatdate
from typing import Any, NamedTuple

import httpx2
import pytest
from google.genai import errors as sdk

from gemini_emulator import api_bodies
from pipeline.core.errors import CallError, ErrorCode
from pipeline.providers import error_mapping as subject
from pipeline.providers.error_mapping import ErrorBoundary, classify

HELP = {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"url": "https://x.test"}]}
PHI = "Mrs Eleanor Rigby, MRN 123456"
RPC = "type.googleapis.com/google.rpc."
MINUTE = "GenerateRequestsPerMinutePerProjectPerModel"
TOKENS = "GenerateContentPaidTierInputTokensPerModelPerMinute"
DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
SPEND = "SpendLimitPerProjectPer10Minutes"
DATE = "Fri, 31 Dec 2027 23:59:59 GMT"


def info(reason: str, **metadata: str) -> dict[str, Any]:
    return {"@type": RPC + "ErrorInfo", "reason": reason, "metadata": metadata}


def html_error(status: int, title: str) -> sdk.APIError:
    """Return the SDK's exception for the HTML page of a gateway."""
    page = f"<html><head><title>{title}</title></head><body>{title}</body></html>"
    response = httpx2.Response(status, html=page, request=httpx2.Request("POST", "http://x"))
    with pytest.raises(sdk.APIError) as raised:
        sdk.APIError.raise_for_response(response)
    return raised.value


def violated(**violation: str) -> dict[str, Any]:
    return {"@type": RPC + "QuotaFailure", "violations": [violation]}


def violations(*quota_ids: str) -> dict[str, Any]:
    return {"@type": RPC + "QuotaFailure", "violations": [{"quotaId": q} for q in quota_ids]}


def retry_info(delay: object) -> dict[str, Any]:
    return {"@type": RPC + "RetryInfo", "retryDelay": delay}


def api_error(
    status: int,
    message: str = "",
    *details: object,
    name: str = "SOME_STATUS",
    headers: dict[str, str] | None = None,
) -> sdk.APIError:
    """Return the SDK's exception for a response with this body."""
    body = api_bodies.error(status, name, message, details)
    response = httpx2.Response(
        status, content=body, headers=headers, request=httpx2.Request("POST", "http://x")
    )
    with pytest.raises(sdk.APIError) as raised:
        sdk.APIError.raise_for_response(response)
    return raised.value


class Case(NamedTuple):
    name: str
    error: Exception
    code: ErrorCode


SERVICE = [
    Case("minute quota", api_error(429, "", violations(MINUTE)), ErrorCode.RATE_LIMIT),
    Case("token quota", api_error(429, "", violations(TOKENS)), ErrorCode.RATE_LIMIT),
    Case("bare 429 is not a day", api_error(429, "exhausted"), ErrorCode.RATE_LIMIT),
    Case("reason alone", api_error(429, "", info("RATE_LIMIT_EXCEEDED")), ErrorCode.RATE_LIMIT),
    Case("day quota", api_error(429, "", violations(DAY)), ErrorCode.QUOTA_EXHAUSTED),
    Case(
        "minute, then day", api_error(429, "", violations(MINUTE, DAY)), ErrorCode.QUOTA_EXHAUSTED
    ),
    Case(
        "day, then minute", api_error(429, "", violations(DAY, MINUTE)), ErrorCode.QUOTA_EXHAUSTED
    ),
    Case(
        "day with a hint of 5 s",
        api_error(429, "", violations(DAY), retry_info("5s")),
        ErrorCode.QUOTA_EXHAUSTED,
    ),
    Case(
        "rate limit reason with a day violation",
        api_error(429, "", info("RATE_LIMIT_EXCEEDED"), violations(DAY)),
        ErrorCode.QUOTA_EXHAUSTED,
    ),
    Case(
        "day quota named by ErrorInfo",
        api_error(429, "", info("RATE_LIMIT_EXCEEDED", quota_limit="RequestsPerDayPerProject")),
        ErrorCode.QUOTA_EXHAUSTED,
    ),
    Case(
        "day behind a help link and a minute",
        api_error(429, "", HELP, retry_info("5s"), violations(MINUTE), violations(DAY)),
        ErrorCode.QUOTA_EXHAUSTED,
    ),
    Case(
        "day named by the metric alone",
        api_error(429, "", violated(quotaMetric="service/generate_requests_per_model_per_day")),
        ErrorCode.QUOTA_EXHAUSTED,
    ),
    Case(
        "metric of a minute's quota",
        api_error(429, "", violated(quotaMetric="service/free_tier_requests", quotaId=MINUTE)),
        ErrorCode.RATE_LIMIT,
    ),
    Case(
        "a minute's quota whose words speak of billing",
        api_error(429, "You exceeded your quota, check your plan and billing.", violations(MINUTE)),
        ErrorCode.RATE_LIMIT,
    ),
    Case(
        "a day that only the words name is no evidence",
        api_error(429, "Resource has been exhausted (e.g. check your daily quota)."),
        ErrorCode.RATE_LIMIT,
    ),
    Case("429 of a gateway", html_error(429, "Too Many Requests"), ErrorCode.RATE_LIMIT),
    Case("spend quota", api_error(429, "", violations(SPEND)), ErrorCode.QUOTA_EXHAUSTED),
    Case(
        "spend quota with a hint",
        api_error(429, "", violations(SPEND), retry_info("600s")),
        ErrorCode.QUOTA_EXHAUSTED,
    ),
    Case("credits", api_error(429, "Your credits are depleted."), ErrorCode.QUOTA_EXHAUSTED),
    Case("spend cap in words", api_error(429, "spending cap reached"), ErrorCode.QUOTA_EXHAUSTED),
    Case("bad key is a 400", api_error(400, "", info("API_KEY_INVALID")), ErrorCode.API_AUTH),
    Case(
        "bad key behind another reason",
        api_error(400, "", info("SOME_OTHER_REASON"), info("API_KEY_INVALID")),
        ErrorCode.API_AUTH,
    ),
    Case(
        "bad key goes before a day",
        api_error(429, "", violations(DAY), info("API_KEY_INVALID")),
        ErrorCode.API_AUTH,
    ),
    Case("billing is off", api_error(403, "", info("BILLING_DISABLED")), ErrorCode.API_BILLING),
    Case("no billing", api_error(400, "Please enable billing."), ErrorCode.API_BILLING),
    Case(
        "billing in the words of a 403",
        api_error(403, "This method requires billing to be enabled."),
        ErrorCode.API_BILLING,
    ),
    Case("402", api_error(402, "Insufficient balance."), ErrorCode.API_BILLING),
    Case("402 as a page", html_error(402, "Payment Required"), ErrorCode.API_BILLING),
    Case("407", api_error(407), ErrorCode.API_PROXY),
    Case("407 as a page", html_error(407, "Log in"), ErrorCode.API_PROXY),
    Case("login of a network", html_error(511, "Log in"), ErrorCode.API_PROXY),
    Case("redirect to a page", html_error(307, "Log in"), ErrorCode.API_PROXY),
    Case("site blocked by a proxy", html_error(403, "Blocked"), ErrorCode.API_PROXY),
    Case("page of another server", html_error(404, "Not Found"), ErrorCode.API_PROXY),
    Case("page of a bad request", html_error(400, "Bad Request"), ErrorCode.API_4XX),
    Case("words like a page in JSON", api_error(403, "<b>no</b>"), ErrorCode.API_AUTH),
    Case("bad key in words", api_error(400, "API key not valid."), ErrorCode.API_AUTH),
    Case("expired key in words", api_error(400, "API key expired."), ErrorCode.API_AUTH),
    Case("service disabled", api_error(403, "", info("SERVICE_DISABLED")), ErrorCode.API_AUTH),
    Case("bare 403", api_error(403), ErrorCode.API_AUTH),
    Case("401", api_error(401), ErrorCode.API_AUTH),
    Case(
        "token count",
        api_error(
            400, "The input token count (9) exceeds the maximum number of tokens allowed (8)."
        ),
        ErrorCode.CONTEXT_TOO_LARGE,
    ),
    Case("payload too large", api_error(413), ErrorCode.CONTEXT_TOO_LARGE),
    Case(
        "payload too large in words",
        api_error(400, "Request payload size exceeds the limit: 52428800 bytes."),
        ErrorCode.CONTEXT_TOO_LARGE,
    ),
    Case(
        "payload too large for a gateway",
        html_error(413, "Request Entity Too Large"),
        ErrorCode.CONTEXT_TOO_LARGE,
    ),
    Case("bad image", api_error(400, "Unable to process input image."), ErrorCode.INPUT_INVALID),
    Case("no pages", api_error(400, "The document has no pages."), ErrorCode.INPUT_INVALID),
    Case("too many states", api_error(400, "too many states for serving"), ErrorCode.API_4XX),
    Case("bare 400", api_error(400), ErrorCode.API_4XX),
    Case("deadline below 10 s", api_error(400, "deadline 1s is too short"), ErrorCode.API_4XX),
    Case("404", api_error(404), ErrorCode.API_4XX),
    Case("408", api_error(408), ErrorCode.API_TIMEOUT),
    Case("499", api_error(499), ErrorCode.API_TIMEOUT),
    Case("500", api_error(500), ErrorCode.API_5XX),
    Case("503 overloaded", api_error(503, "The model is overloaded."), ErrorCode.API_5XX),
    Case("503 deadline", api_error(503, "Deadline expired before …"), ErrorCode.API_TIMEOUT),
    Case("504", api_error(504), ErrorCode.API_TIMEOUT),
    Case("502 of a gateway", html_error(502, "Bad Gateway"), ErrorCode.API_5XX),
    Case("504 of a gateway", html_error(504, "Gateway Time-out"), ErrorCode.API_TIMEOUT),
    Case("500 deadline", api_error(500, "Deadline exceeded."), ErrorCode.API_TIMEOUT),
    Case("redirect", sdk.APIError(302, {}), ErrorCode.API_PROXY),
    Case(
        "HTML body", sdk.ServerError(502, {"message": "<html>", "status": "Bad"}), ErrorCode.API_5XX
    ),
    Case("list body", sdk.ClientError(429, [{"error": {}}]), ErrorCode.RATE_LIMIT),
    Case("odd details", api_error(429, "", "text", 7, {"violations": "x"}), ErrorCode.RATE_LIMIT),
]

TRANSPORT = [
    Case("connect timeout", httpx2.ConnectTimeout("x"), ErrorCode.API_TIMEOUT),
    Case("read timeout", httpx2.ReadTimeout("x"), ErrorCode.API_TIMEOUT),
    Case("write timeout", httpx2.WriteTimeout("x"), ErrorCode.API_TIMEOUT),
    Case("pool timeout", httpx2.PoolTimeout("x"), ErrorCode.API_TIMEOUT),
    Case("refused", httpx2.ConnectError("x"), ErrorCode.API_5XX),
    Case("reset", httpx2.ReadError("x"), ErrorCode.API_5XX),
    Case("cut", httpx2.RemoteProtocolError("x"), ErrorCode.API_5XX),
    Case("proxy", httpx2.ProxyError("x"), ErrorCode.API_5XX),
    Case("proxy asks for a login", httpx2.ProxyError("407 Log in"), ErrorCode.API_PROXY),
    Case("proxy forbids the site", httpx2.ProxyError("403 Forbidden"), ErrorCode.API_PROXY),
    Case(
        "proxy refuses a password",
        httpx2.ProxyError("Invalid username/password"),
        ErrorCode.API_PROXY,
    ),
    Case("proxy has no way", httpx2.ProxyError("503 Unavailable"), ErrorCode.API_5XX),
    Case("proxy is busy", httpx2.ProxyError("429 Too Many"), ErrorCode.API_5XX),
    Case("bad gzip", httpx2.DecodingError("x"), ErrorCode.API_5XX),
    Case("bad URL", httpx2.UnsupportedProtocol("x"), ErrorCode.API_4XX),
    Case("not JSON", json.JSONDecodeError("x", PHI, 0), ErrorCode.PARSE_JSON),
    Case("not UTF-8", UnicodeDecodeError("utf-8", b"x", 0, 1, PHI), ErrorCode.PARSE_JSON),
    Case("socket timeout", TimeoutError(PHI), ErrorCode.API_TIMEOUT),
    Case("socket error", ConnectionResetError(PHI), ErrorCode.API_5XX),
    Case("anything else", KeyError(PHI), ErrorCode.INTERNAL_ERROR),
]


@pytest.mark.parametrize("case", [*SERVICE, *TRANSPORT], ids=lambda case: case.name)
def test_each_error_becomes_its_code(case: Case) -> None:
    assert classify(case.error).code is case.code


@pytest.mark.parametrize(
    ("details", "message", "headers", "seconds"),
    [
        ([retry_info("45.837906927s")], "", {}, 45.837906927),
        ([retry_info("53s")], "", {}, 53.0),
        ([retry_info({"seconds": "7", "nanos": 500_000_000})], "", {}, 7.5),
        ([], "Please retry in 12.25s.", {}, 12.25),
        ([], "", {"retry-after": "30"}, 30.0),
        ([retry_info("2s")], "Please retry in 9s.", {"retry-after": "30"}, 2.0),
        ([retry_info("soon")], "", {}, None),
        ([], "", {"retry-after": DATE, "date": "Fri, 31 Dec 2027 23:59:34 GMT"}, 25.0),
        ([], "", {"retry-after": DATE, "date": "Fri, 31 Dec 2027 23:59:59 GMT"}, 0.0),
        ([], "", {"retry-after": DATE, "date": "Sat, 01 Jan 2028 00:10:00 GMT"}, 0.0),
        (
            [],
            "",
            {
                "retry-after": "Friday, 31-Dec-27 23:59:59 GMT",
                "date": "Fri Dec 31 23:59:34 2027",
            },
            25.0,
        ),
        ([retry_info("2s")], "", {"retry-after": DATE, "date": DATE}, 2.0),
        ([], "", {"retry-after": "Fri, 99 Dec 2027 23:59:59 GMT"}, None),
        ([], "", {"retry-after": "later"}, None),
        ([], "", {}, None),
    ],
)
def test_the_hint_is_read_from_the_body_then_a_header_then_the_words(
    details: list[object], message: str, headers: dict[str, str], seconds: float | None
) -> None:
    error = api_error(429, message, *details, headers=headers)

    assert classify(error).details.retry_after_s == seconds


@pytest.mark.parametrize(
    ("quota_ids", "kept"),
    [((MINUTE,), MINUTE), ((MINUTE, DAY), DAY), ((TOKENS, MINUTE), TOKENS), ((), "")],
)
def test_the_quota_that_decided_is_kept(quota_ids: tuple[str, ...], kept: str) -> None:
    error = api_error(429, "", violations(*quota_ids))

    assert classify(error).details.quota_id == kept


@pytest.mark.parametrize("kind", [httpx2.RemoteProtocolError, httpx2.ReadError])
def test_a_connection_lost_after_a_minute_is_a_timeout(kind: type[httpx2.TransportError]) -> None:
    assert classify(kind("x"), elapsed_s=60.0).code is ErrorCode.API_TIMEOUT
    assert classify(kind("x"), elapsed_s=5.0).code is ErrorCode.API_5XX


def test_the_message_names_status_reason_quota_and_hint() -> None:
    error = api_error(429, PHI, violations(MINUTE), retry_info("45.8s"), name="RESOURCE_EXHAUSTED")

    assert str(classify(error)) == f"HTTP 429 RESOURCE_EXHAUSTED {MINUTE} retry in 45.8 s"


@pytest.mark.parametrize(
    "error",
    [
        api_error(400, PHI, info(PHI), name=PHI),
        api_error(429, PHI, violations(PHI)),
        sdk.ServerError(502, {"message": PHI, "status": PHI}),
        httpx2.ReadError(PHI),
        json.JSONDecodeError(PHI, PHI, 0),
        ValueError(PHI),
    ],
)
def test_nothing_that_a_library_or_the_service_says_passes_the_border(error: Exception) -> None:
    boundary = ErrorBoundary()

    with boundary:
        raise error
    with pytest.raises(CallError) as raised:
        raise boundary.error

    seen = traceback.format_exception(raised.value)
    assert "Rigby" not in "".join(seen) + repr(raised.value.details)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


@pytest.mark.parametrize(
    ("headers", "hint_s"),
    [
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": DATE, "date": "Fri, 31 Dec 2027 23:59:34 GMT"}, 25.0),
        ({}, None),
    ],
)
def test_a_status_whose_body_cannot_be_read_still_says_what_it_says(
    headers: dict[str, str], hint_s: float | None
) -> None:
    error = subject.error_of_unreadable_body(503, headers)

    assert (error.code, error.details.http_status) == (ErrorCode.API_5XX, 503)
    assert error.details.retry_after_s == hint_s


def test_a_page_in_an_unknown_encoding_is_a_page() -> None:
    error = subject.error_of_unreadable_body(403, {"content-type": "text/html; charset=x"})

    assert error.code is ErrorCode.API_PROXY


def test_a_date_without_the_senders_own_counts_from_this_clock() -> None:
    until = formatdate(time.time() + 40, usegmt=True)

    hint_s = subject.retry_after_s({"retry-after": until})

    assert hint_s is not None
    assert 35 < hint_s <= 40


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (html_error(302, "Log in"), "HTTP 302 (a proxy or a wrong address answered)"),
        (api_error(407, name=""), "HTTP 407 (a proxy or a wrong address answered)"),
        (api_error(402, name=""), "HTTP 402 (the provider asks for a payment)"),
        (httpx2.ProxyError("407 Log in"), "HTTP 407 from the proxy of the network"),
    ],
)
def test_the_message_names_the_proxy_or_the_billing(error: Exception, message: str) -> None:
    assert str(classify(error)).replace(" Found", "") == message


@pytest.mark.parametrize(
    ("body", "code", "hint_s"),
    [
        ({"error": {"code": 503, "status": "UNAVAILABLE"}}, ErrorCode.API_5XX, None),
        ([{"error": {"code": 503, "status": "UNAVAILABLE"}}], ErrorCode.API_5XX, None),
        ({"error": {"code": "429", "message": "retry in 3s"}}, ErrorCode.RATE_LIMIT, None),
        ({"error": {"code": 429, "details": [retry_info("3s")]}}, ErrorCode.RATE_LIMIT, 3.0),
        ({"error": {"code": 429, "details": [violations(DAY)]}}, ErrorCode.QUOTA_EXHAUSTED, None),
        ({"error": {"code": 14, "status": "UNAVAILABLE"}}, ErrorCode.API_5XX, None),
        ({"error": {"status": "PERMISSION_DENIED"}}, ErrorCode.API_AUTH, None),
        ({"error": {"code": 400, "details": [info("API_KEY_INVALID")]}}, ErrorCode.API_AUTH, None),
        ({"error": {"code": 402}}, ErrorCode.API_BILLING, None),
        ({"error": {"code": 407}}, ErrorCode.API_PROXY, None),
        ({"error": {"code": "insufficient", "message": PHI}}, ErrorCode.API_5XX, None),
        ({"error": PHI}, ErrorCode.API_5XX, None),
    ],
)
def test_an_error_inside_a_200_has_the_code_of_the_error(
    body: object, code: ErrorCode, hint_s: float | None
) -> None:
    error = subject.error_inside_200(body)

    assert error is not None
    assert (error.code, error.details.http_status) == (code, 200)
    assert error.details.retry_after_s == hint_s
    assert error.message.startswith("a proxy answered 200 with an error inside: HTTP ")
    assert "Rigby" not in error.message


@pytest.mark.parametrize(
    "body", [{}, [], None, "error", {"error": None}, {"candidates": [], "error": {"code": 503}}]
)
def test_a_reply_without_an_error_is_left_to_the_parser(body: object) -> None:
    assert subject.error_inside_200(body) is None


def test_the_border_lets_pass_what_is_not_an_error_of_the_call() -> None:
    with pytest.raises(KeyboardInterrupt), ErrorBoundary():
        raise KeyboardInterrupt


def test_an_error_that_has_a_code_already_keeps_it() -> None:
    error = CallError("x", code=ErrorCode.REPLY_MISMATCH)

    assert classify(error) is error


def test_every_reason_and_status_of_the_tables_has_a_code() -> None:
    codes = {
        *subject.ERROR_INFO_CODES.values(),
        *subject.STATUSES.values(),
        *subject.TRANSPORT.values(),
    }

    assert codes <= set(ErrorCode)
