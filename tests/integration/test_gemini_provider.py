"""The provider works over HTTP with the real google-genai client and the emulator."""

from __future__ import annotations

import socket
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from gemini_emulator import Emulator
from gemini_emulator.faults import BLOCK_REASONS, FINISH_REASONS
from pipeline.core.errors import ErrorCode
from pipeline.providers.base import Reply
from pipeline.providers.gemini import THINKING, GeminiProvider
from pipeline.providers.schemas import DiscoveryReply, EntityReply
from tests.support.emulator import (
    MODEL,
    TEXT,
    discovery_request,
    entities_request,
    failure,
    gemini,
)

FAULT_CODES = {
    "429": ErrorCode.RATE_LIMIT,
    "429-bare": ErrorCode.RATE_LIMIT,
    "429-tokens": ErrorCode.RATE_LIMIT,
    "429-reason": ErrorCode.RATE_LIMIT,
    "429-date": ErrorCode.RATE_LIMIT,
    "429-day": ErrorCode.QUOTA_EXHAUSTED,
    "429-mixed": ErrorCode.QUOTA_EXHAUSTED,
    "429-spend": ErrorCode.QUOTA_EXHAUSTED,
    "400-key": ErrorCode.API_AUTH,
    "400-tokens": ErrorCode.CONTEXT_TOO_LARGE,
    "400-bare": ErrorCode.API_4XX,
    "400-size": ErrorCode.CONTEXT_TOO_LARGE,
    "400-schema": ErrorCode.API_4XX,
    "400-pages": ErrorCode.INPUT_INVALID,
    "400-deadline": ErrorCode.API_4XX,
    "403": ErrorCode.API_AUTH,
    "404": ErrorCode.API_4XX,
    "499": ErrorCode.API_TIMEOUT,
    "500": ErrorCode.API_5XX,
    "502": ErrorCode.API_5XX,
    "503": ErrorCode.API_5XX,
    "503-deadline": ErrorCode.API_TIMEOUT,
    "504": ErrorCode.API_TIMEOUT,
    "reset": ErrorCode.API_5XX,
    "cut": ErrorCode.API_5XX,
    "bad-json": ErrorCode.PARSE_JSON,
    "html": ErrorCode.API_PROXY,
    "200-error": ErrorCode.API_5XX,
    "302": ErrorCode.API_PROXY,
    "402": ErrorCode.API_BILLING,
    "403-html": ErrorCode.API_PROXY,
    "407": ErrorCode.API_PROXY,
    "bare-list": ErrorCode.PARSE_SCHEMA,
    "wrong-shape": ErrorCode.PARSE_SCHEMA,
    "wrong-token": ErrorCode.REPLY_MISMATCH,
    "truncated": ErrorCode.OUTPUT_TRUNCATED,
    "truncated-empty": ErrorCode.OUTPUT_TRUNCATED,
    "loop-newlines": ErrorCode.OUTPUT_TRUNCATED,
    "loop": ErrorCode.OUTPUT_TRUNCATED,
    "empty": ErrorCode.EMPTY_RESPONSE,
    "empty-object": ErrorCode.EMPTY_RESPONSE,
    "empty-body": ErrorCode.EMPTY_RESPONSE,
    "blocked": ErrorCode.CONTENT_BLOCKED,
    "finish": ErrorCode.CONTENT_BLOCKED,
}
BILLED = {
    "bad-json", "bare-list", "wrong-shape", "wrong-token", "truncated", "truncated-empty", "loop",
    "loop-newlines", "empty", "blocked", "finish",
}  # fmt: skip


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    """Provide one emulator that chooses its fault by the requested page."""
    rules: list[dict[str, Any]] = [
        {"fault": name, "page": page} for page, name in enumerate(FAULT_CODES, start=100)
    ]
    rules += [
        {"fault": "fenced", "page": 90},
        {"fault": "trickle", "page": 91, "delay_s": 0.001},
        {"fault": "trickle", "page": 92, "delay_s": 0.1},
        {"fault": "hang", "page": 93},
    ]
    with Emulator(faults=rules) as running:
        yield running


@pytest.fixture
def provider(emulator: Emulator) -> Iterator[GeminiProvider]:
    made = gemini(emulator.url)
    yield made
    made.close()


def test_an_answer_has_steps_doses_status_and_assertions(provider: GeminiProvider) -> None:
    text = (
        "MEDICATIONS\n"
        "Prednisone 30 mg daily for 2 days, then 15 mg daily for 2 days.\n"
        "Cephalexin 250 mg capsule, two capsules twice daily - on hold.\n"
        "PLAN\n"
        "Losartan 25 mg increased to 50 mg daily. Scheduled for colonoscopy.\n"
        "FAMILY HISTORY\nHer husband has probable gout.\n"
    )

    reply = provider.generate(entities_request(text=text))

    assert isinstance(reply.output, EntityReply)
    found = [
        (e.name.lower(), e.strength, e.dose, e.previous_dose, e.status, e.step)
        for e in reply.output.entities
        if e.category == "medication"
    ]
    assert found == [
        ("prednisone", None, "30 mg", None, "active", 1),
        ("prednisone", None, "15 mg", None, "active", 2),
        ("cephalexin", "250 mg", "two capsules", None, "on_hold", None),
        ("losartan", None, "50 mg", "25 mg", "changed", None),
    ]
    others = {
        e.name.lower(): (e.temporality, e.certainty, e.experiencer)
        for e in reply.output.entities
        if e.category in ("condition", "procedure")
    }
    assert others == {
        "colonoscopy": ("planned", "hypothetical", None),
        "gout": (None, "possible", "other"),
    }


def test_a_page_is_answered_with_what_the_engine_finds(provider: GeminiProvider) -> None:
    request = entities_request()

    reply = provider.generate(request)

    assert isinstance(reply.output, EntityReply)
    assert reply.output.item_token == request.item_token
    assert "lisinopril" in {entity.name for entity in reply.output.entities}
    assert reply.details.http_status == 200
    assert reply.details.finish_reason == "STOP"
    assert reply.details.model_version == MODEL
    assert reply.details.response_id
    assert reply.details.input_tokens == request.estimated_input_tokens
    assert reply.details.output_tokens > 0


def test_discovery_is_answered_too(provider: GeminiProvider) -> None:
    reply = provider.generate(discovery_request())

    assert isinstance(reply.output, DiscoveryReply)


def test_fields_that_only_an_engine_of_ours_can_know_do_not_come_back(
    provider: GeminiProvider,
) -> None:
    reply = provider.generate(entities_request())

    assert isinstance(reply.output, EntityReply)
    assert reply.output.entities
    assert all(entity.start is None and entity.rule == "" for entity in reply.output.entities)


@pytest.mark.parametrize(("name", "code"), FAULT_CODES.items())
def test_each_fault_ends_in_its_code(provider: GeminiProvider, name: str, code: ErrorCode) -> None:
    page = 100 + list(FAULT_CODES).index(name)

    error = failure(provider, entities_request(page=page))

    assert error.code is code
    assert (error.details.input_tokens > 0) == (name in BILLED)
    assert error.__context__ is None
    assert error.__cause__ is None


REASON_CODES: dict[str, ErrorCode] = {
    **dict.fromkeys(FINISH_REASONS, ErrorCode.EMPTY_RESPONSE),
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
            "MODEL_ARMOR",
        ),
        ErrorCode.CONTENT_BLOCKED,
    ),
    **dict.fromkeys(("MAX_TOKENS", "CONTINUATION"), ErrorCode.OUTPUT_TRUNCATED),
    **dict.fromkeys(
        (
            "MALFORMED_FUNCTION_CALL",
            "MALFORMED_RESPONSE",
            "UNEXPECTED_TOOL_CALL",
            "TOO_MANY_TOOL_CALLS",
            "MISSING_THOUGHT_SIGNATURE",
        ),
        ErrorCode.PARSE_JSON,
    ),
}


def test_each_finish_and_block_reason_ends_in_its_code() -> None:
    expected = [*REASON_CODES.items(), *((r, ErrorCode.CONTENT_BLOCKED) for r in BLOCK_REASONS)]
    rules = [
        {"fault": "finish", "reason": reason, "page": page}
        for page, reason in enumerate(REASON_CODES, start=1)
    ] + [
        {"fault": "blocked", "reason": reason, "page": page}
        for page, reason in enumerate(BLOCK_REASONS, start=1 + len(REASON_CODES))
    ]
    with Emulator(answers="minimal", faults=rules) as emulator:
        provider = gemini(emulator.url)
        ends = [
            (reason, failure(provider, entities_request(page=page)).code)
            for page, (reason, _) in enumerate(expected, start=1)
        ]

    assert ends == expected


def test_a_fenced_reply_is_read(provider: GeminiProvider) -> None:
    reply = provider.generate(entities_request(page=90))

    assert reply.details.raw_reply.startswith("```json")


def test_a_body_in_small_pieces_is_read(provider: GeminiProvider) -> None:
    assert isinstance(provider.generate(entities_request(page=91)), Reply)


@pytest.mark.parametrize("page", [92, 93], ids=["trickle", "hang"])
def test_a_call_ends_at_its_deadline_whatever_still_comes(emulator: Emulator, page: int) -> None:
    provider = gemini(emulator.url, least_wait_s=0.3)

    error = failure(provider, entities_request(page=page, deadline_s=0.3))

    assert error.code is ErrorCode.API_TIMEOUT
    assert error.details.http_status is None


def test_a_hint_with_a_fraction_reaches_the_caller(provider: GeminiProvider) -> None:
    error = failure(provider, entities_request(page=100))

    assert error.details.retry_after_s == pytest.approx(1.837906927)
    assert error.details.quota_id == "GenerateRequestsPerMinutePerProjectPerModel"
    assert error.details.http_status == 429


def test_nothing_of_the_document_is_in_an_error(provider: GeminiProvider) -> None:
    pages = range(100, 100 + len(FAULT_CODES))
    requests = [entities_request(page=page, text=f"{TEXT}\nEleanor Rigby") for page in pages]

    errors = [failure(provider, request) for request in requests]

    told = ["".join(traceback.format_exception(e)) + repr(e.details) for e in errors]
    assert not [text for text in told if "Rigby" in text or "lisinopril" in text]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_never_followed(status: int) -> None:
    asked: list[str] = []

    def redirected(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        return httpx2.Response(status, headers={"Location": "http://login.invalid/"})

    provider = GeminiProvider(
        api_key="test",
        model=MODEL,
        base_url="http://127.0.0.1:1",
        transport=httpx2.MockTransport(redirected),
    )

    error = failure(provider, entities_request())

    assert (error.code, error.details.http_status) == (ErrorCode.API_PROXY, status)
    assert asked == ["127.0.0.1"]


def test_a_proxy_that_refuses_the_tunnel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
                )

        proxy = threading.Thread(target=refuse)
        proxy.start()
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.getsockname()[1]}")
        for name in ("NO_PROXY", "no_proxy", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(name, raising=False)

        error = failure(gemini("https://service.invalid"), entities_request())
        proxy.join()

    assert (error.code, error.details.http_status) == (ErrorCode.API_PROXY, 407)


def test_a_limit_until_a_date_is_a_hint_in_seconds(provider: GeminiProvider) -> None:
    page = 100 + list(FAULT_CODES).index("429-date")

    error = failure(provider, entities_request(page=page))

    assert error.details.retry_after_s is not None
    assert 2.0 <= error.details.retry_after_s <= 4.0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("302", "a proxy or a wrong address answered"),
        ("407", "a proxy or a wrong address answered"),
        ("html", "a proxy or a wrong address answered"),
        ("402", "the provider asks for a payment"),
        ("200-error", "a proxy answered 200 with an error inside: HTTP 503 UNAVAILABLE"),
    ],
)
def test_an_answer_of_a_proxy_or_about_the_billing_says_so(
    provider: GeminiProvider, name: str, words: str
) -> None:
    page = 100 + list(FAULT_CODES).index(name)

    assert words in failure(provider, entities_request(page=page)).message


def test_a_wrong_key_is_an_authentication_error(emulator: Emulator) -> None:
    provider = gemini(emulator.url, api_key="invalid-key")

    assert failure(provider, entities_request()).code is ErrorCode.API_AUTH


def test_no_server_at_all_is_an_outage() -> None:
    with Emulator(answers="minimal") as emulator:
        provider = gemini(emulator.url)

    assert failure(provider, entities_request()).code is ErrorCode.API_5XX


def test_one_failed_call_is_one_request(emulator: Emulator, provider: GeminiProvider) -> None:
    page = 100 + list(FAULT_CODES).index("503")
    request = entities_request(page=page)

    failure(provider, request)

    seen = [line for line in emulator.log() if line.item_token == request.item_token]
    assert len(seen) == 1


def test_a_call_says_when_it_goes_out_and_only_to_its_own_request() -> None:
    seen: list[str] = []

    def answered(request: httpx2.Request) -> httpx2.Response:
        seen.append("arrived")
        return httpx2.Response(503)

    provider = GeminiProvider(
        api_key="test",
        model=MODEL,
        base_url="http://127.0.0.1:1",
        transport=httpx2.MockTransport(answered),
    )
    failure(provider, replace(entities_request(), on_send=lambda: seen.append("sent")))
    failure(provider, entities_request())

    assert seen == ["sent", "arrived", "arrived"]


def test_a_call_has_gone_out_once_its_body_has_left_and_not_without_a_connection(
    emulator: Emulator,
) -> None:
    seen: list[str] = []
    asked = replace(
        entities_request(),
        on_send=lambda: seen.append("goes out"),
        on_sent=lambda: seen.append(f"has gone out, {len(emulator.log())} answered"),
    )
    before = len(emulator.log())

    failure(gemini("http://127.0.0.1:1"), asked)
    gemini(emulator.url).generate(asked)

    assert seen == ["goes out", "goes out", f"has gone out, {before} answered"]


def test_a_deadline_below_ten_seconds_is_never_sent(provider: GeminiProvider) -> None:
    reply = provider.generate(entities_request(deadline_s=0.3))

    assert isinstance(reply, Reply)


def test_output_is_capped(provider: GeminiProvider) -> None:
    error = failure(provider, entities_request(max_output_tokens=8))

    assert error.code is ErrorCode.OUTPUT_TRUNCATED
    assert error.details.output_tokens == 8


def test_ninety_threads_share_one_client_without_an_error(provider: GeminiProvider) -> None:
    requests = [entities_request(page=1 + n % 50, text="NKDA") for n in range(270)]

    with ThreadPoolExecutor(90) as pool:
        replies = list(pool.map(provider.generate, requests))

    tokens = [r.output.item_token for r in replies if isinstance(r.output, EntityReply)]
    assert tokens == [request.item_token for request in requests]


def test_a_closed_provider_has_no_client(emulator: Emulator) -> None:
    provider = gemini(emulator.url)
    provider.generate(entities_request())

    provider.close()

    assert provider._client is None


def test_a_key_is_not_shown(emulator: Emulator) -> None:
    provider = gemini(emulator.url, api_key="very-secret")

    assert "very-secret" not in repr(provider)


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("gemini-3.5-flash-lite", {"thinking_level": "MINIMAL"}),
        ("gemini-2.5-flash", {"thinking_budget": 0}),
        ("gemini-2.5-pro", {"thinking_budget": 128}),
        ("gemini-3-pro-preview", {"thinking_level": "LOW"}),
    ],
)
def test_a_model_thinks_as_little_as_it_can(model: str, thinking: dict[str, object]) -> None:
    provider = GeminiProvider(api_key="k", model=model)

    assert provider._thinking in [least for _, least in THINKING]
    assert provider._thinking.model_dump(exclude_none=True, mode="json") == thinking


@pytest.mark.live
def test_the_real_service_takes_the_schemas_and_echoes_the_token(live_key: str) -> None:
    provider = GeminiProvider(api_key=live_key, model=MODEL)

    replies = [provider.generate(request) for request in (entities_request(), discovery_request())]

    assert all(reply.details.input_tokens > 0 for reply in replies)
