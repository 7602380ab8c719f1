"""The emulator serves routes, headers, quotas for all clients, and a log."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
from google import genai
from google.genai import types as wire

from gemini_emulator import Emulator, LogLine
from pipeline.core.errors import CallError, ErrorCode
from tests.support import hostile_files
from tests.support.emulator import MODEL, discovery_request, entities_request, gemini

GENERATE = f"/v1beta/models/{MODEL}:generateContent"


class Client:
    """A plain HTTP client on one connection."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def post(
        self, path: str, body: object, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        sent = body if isinstance(body, str) else json.dumps(body)
        sent_headers = {"x-goog-api-key": "k"} if headers is None else headers
        self.connection.request("POST", path, sent, sent_headers)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator(answers="minimal") as running:
        yield running


@pytest.fixture
def client(emulator: Emulator) -> Iterator[Client]:
    made = Client(emulator.url)
    yield made
    made.connection.close()


def contents(text: str) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}]}


def latencies(lines: list[LogLine]) -> dict[int, float]:
    return {line.pages[0]: line.drawn_s for line in lines}


def test_it_listens_on_loopback_only(emulator: Emulator) -> None:
    assert urlsplit(emulator.url).hostname == "127.0.0.1"


def test_a_connection_serves_many_calls(client: Client) -> None:
    client.post(GENERATE, contents("one"))
    socket = client.connection.sock

    statuses = [client.post(GENERATE, contents(str(n)))[0] for n in range(20)]

    assert statuses == [200] * 20
    assert client.connection.sock is socket


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_a_reply_has_usage_version_and_id(client: Client, version: str) -> None:
    status, body = client.post(f"/{version}/models/{MODEL}:generateContent", contents("x" * 400))

    assert status == 200
    assert body["candidates"][0]["finishReason"] == "STOP"
    assert body["usageMetadata"]["promptTokenCount"] == 101
    assert body["usageMetadata"]["totalTokenCount"] >= 102
    assert body["modelVersion"] == MODEL
    assert body["responseId"]


REFUSALS: dict[str, tuple[str, object, dict[str, str], int, str]] = {
    "no key": (GENERATE, contents("x"), {}, 403, "PERMISSION_DENIED"),
    "bad key": (GENERATE, contents("x"), {"x-goog-api-key": "invalid"}, 400, "INVALID_ARGUMENT"),
    "not JSON": (GENERATE, "{", {"x-goog-api-key": "k"}, 400, "INVALID_ARGUMENT"),
    "short deadline": (
        GENERATE,
        contents("x"),
        {"x-goog-api-key": "k", "X-Server-Timeout": "9"},
        400,
        "INVALID_ARGUMENT",
    ),
    "too many tokens": (
        GENERATE,
        contents("x" * 4_300_000),
        {"x-goog-api-key": "k"},
        400,
        "INVALID_ARGUMENT",
    ),
    "unknown model": (
        "/v1beta/models/other-model:generateContent",
        contents("x"),
        {"x-goog-api-key": "k"},
        404,
        "NOT_FOUND",
    ),
    "unknown verb": (
        f"/v1beta/models/{MODEL}:sing",
        contents("x"),
        {"x-goog-api-key": "k"},
        404,
        "NOT_FOUND",
    ),
}


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "name"), REFUSALS.values(), ids=REFUSALS.keys()
)
def test_the_emulator_refuses_the_same_requests_as_the_service(
    client: Client, path: str, body: object, headers: dict[str, str], status: int, name: str
) -> None:
    seen, error = client.post(path, body, headers)

    assert seen == status
    assert error["error"]["code"] == status
    assert error["error"]["status"] == name


@pytest.mark.parametrize(
    "config",
    [
        {"generationConfig": {"maxOutputTokens": 5}},
        {"generation_config": {"max_output_tokens": 5}},
        {"generationConfig": {"max_output_tokens": 5}},
    ],
)
def test_names_are_taken_in_either_case(client: Client, config: dict[str, Any]) -> None:
    prompt = entities_request().prompt

    _, body = client.post(GENERATE, {**contents(prompt), **config})

    assert body["candidates"][0]["finishReason"] == "MAX_TOKENS"


def test_tokens_are_counted_through_the_sdk(emulator: Emulator) -> None:
    client = genai.Client(api_key="k", http_options=wire.HttpOptions(base_url=emulator.url))

    counted = client.models.count_tokens(model=MODEL, contents="x" * 4_000)
    card = client.models.get(model=MODEL)
    client.close()

    assert counted.total_tokens == 1_001
    assert card.input_token_limit == 1_048_576


def inline(content: bytes, media_type: str = "application/pdf") -> dict[str, Any]:
    """Write a request in a mixture of styles: both cases, both kinds of base64."""
    written = base64.urlsafe_b64encode(content).decode().rstrip("=")
    part = {"inlineData": {"mime_type": media_type, "data": written}}
    return {
        "contents": [{"role": "user", "parts": [part, {"text": "x" * 399}]}],
        "generation_config": {"maxOutputTokens": 9, "thinkingConfig": {"thinking_budget": 0}},
    }


@pytest.mark.parametrize(
    ("model", "media_type", "content", "modality", "tokens"),
    [
        (MODEL, "application/pdf", hostile_files.note_pdf(3), "DOCUMENT", 3 * 560),
        ("gemini-2.5-flash", "application/pdf", hostile_files.note_pdf(3), "DOCUMENT", 3 * 258),
        (MODEL, "image/png", hostile_files.encoded(hostile_files.scan(), "PNG"), "IMAGE", 560),
    ],
    ids=["document", "document to an older model", "image"],
)
def test_attached_pages_count_as_the_model_counts_them(
    client: Client, model: str, media_type: str, content: bytes, modality: str, tokens: int
) -> None:
    path = f"/v1beta/models/{model}"

    _, counted = client.post(f"{path}:countTokens", inline(content, media_type))
    _, answered = client.post(f"{path}:generateContent", inline(content, media_type))

    assert counted["totalTokens"] == answered["usageMetadata"]["promptTokenCount"] == 100 + tokens
    assert counted["promptTokensDetails"] == [
        {"modality": "TEXT", "tokenCount": 100},
        {"modality": modality, "tokenCount": tokens},
    ]


def test_embeddings_come_through_the_sdk_and_are_the_same_each_time(emulator: Emulator) -> None:
    client = genai.Client(api_key="k", http_options=wire.HttpOptions(base_url=emulator.url))
    texts: list[Any] = ["asthma", "fracture of the wrist", "asthma"]

    replies = [
        client.models.embed_content(
            model="gemini-embedding-001",
            contents=texts,
            config=wire.EmbedContentConfig(output_dimensionality=256),
        )
        for _ in range(2)
    ]
    client.close()

    first, second = ([e.values for e in reply.embeddings or []] for reply in replies)
    assert first == second
    assert [len(values or []) for values in first] == [256] * 3
    assert first[0] == first[2] != first[1]


def test_a_single_embedding_has_all_dimensions(client: Client) -> None:
    path = "/v1beta/models/gemini-embedding-001:embedContent"

    status, body = client.post(path, {"content": {"parts": [{"text": "asthma"}]}})
    refused, _ = client.post(
        path, {"content": {"parts": [{"text": "asthma"}]}, "output_dimensionality": 9_999}
    )

    assert (status, refused) == (200, 400)
    assert len(body["embedding"]["values"]) == 3_072


def test_embeddings_meet_quotas_and_faults_too() -> None:
    path = "/v1beta/models/gemini-embedding-001:embedContent"
    rules = [{"fault": "503", "kind": "embedding", "number": 1}]
    with Emulator(answers="minimal", rpm=1, faults=rules) as emulator:
        client = Client(emulator.url)
        ends = [
            client.post(path, {"content": {"parts": [{"text": word}]}})[0]
            for word in ("one", "two", "three")
        ]
        client.connection.close()

        lines = emulator.log()

    assert ends == [503, 200, 429]
    assert [(line.route, line.outcome) for line in lines] == [
        ("embedContent", "503"),
        ("embedContent", "ok"),
        ("embedContent", "limit-rpm"),
    ]


def test_the_days_quota_is_free_again_at_midnight_pacific() -> None:
    with Emulator(answers="minimal", rpd=1, clock="08:00:00") as emulator:
        provider = gemini(emulator.url)
        provider.generate(entities_request())
        with pytest.raises(CallError) as raised:
            provider.generate(entities_request())

        emulator.advance_clock(16 * 3_600 - 60)
        with pytest.raises(CallError):
            provider.generate(entities_request())
        emulator.advance_clock(61)
        provider.generate(entities_request())
        state = emulator.state()

    assert raised.value.code is ErrorCode.QUOTA_EXHAUSTED
    assert raised.value.details.retry_after_s == 5.0
    assert "T00:0" in state["pacific_time"]
    assert state["used"][MODEL]["today"] == 1


def test_spend_is_a_limit_that_is_not_of_a_minute() -> None:
    with Emulator(answers="minimal", spend_usd=0.00001) as emulator:
        provider = gemini(emulator.url)
        provider.generate(entities_request())

        with pytest.raises(CallError) as raised:
            provider.generate(entities_request())

        outcomes = [line.outcome for line in emulator.log()]
    assert raised.value.code is ErrorCode.QUOTA_EXHAUSTED
    assert raised.value.details.retry_after_s is not None
    assert raised.value.details.retry_after_s > 500
    assert outcomes == ["ok", "limit-spend"]


def test_a_late_answer_comes_after_the_clients_timeout() -> None:
    rules = [{"fault": "late", "attempt": 1}]
    with Emulator(answers="minimal", faults=rules) as emulator:
        provider = gemini(emulator.url, least_wait_s=0.1)
        request = entities_request(deadline_s=0.1)
        with pytest.raises(CallError) as raised:
            provider.generate(request)
        gemini(emulator.url).generate(request)

        (second,) = emulator.log()

    assert raised.value.code is ErrorCode.API_TIMEOUT
    assert (second.attempt, second.outcome) == (2, "ok")


def test_every_request_is_logged_with_its_route(client: Client, emulator: Emulator) -> None:
    before = len(emulator.log())

    client.post(f"/v1beta/models/{MODEL}:countTokens", contents("x"))
    client.post(GENERATE, contents("x"), {"x-goog-api-key": "invalid"})
    client.post(GENERATE, contents("x"))

    lines = emulator.log()[before:]
    assert [(line.route, line.outcome, line.number > 0) for line in lines] == [
        ("countTokens", "ok", False),
        ("generateContent", "bad-request", False),
        ("generateContent", "ok", True),
    ]


def test_a_scenario_plays_its_timeline_at_the_requested_scale() -> None:
    scenario = {
        "title": "t",
        "expect": "e",
        "timeline": ["from 0 to 100m: down"],
    }
    with Emulator(scenario=scenario, scale=0.5, answers="minimal") as emulator:
        provider = gemini(emulator.url)
        with pytest.raises(CallError) as raised:
            provider.generate(entities_request())

        (line,) = emulator.log()

    assert raised.value.code is ErrorCode.API_5XX
    assert line.outcome == "503"


def test_the_minutes_quota_counts_over_all_clients() -> None:
    with Emulator(answers="minimal", rpm=5) as emulator:
        providers = [gemini(emulator.url) for _ in range(2)]
        for n in range(5):
            providers[n % 2].generate(entities_request())

        with pytest.raises(CallError) as raised:
            providers[1].generate(entities_request())

        outcomes = [line.outcome for line in emulator.log()]
    assert raised.value.code is ErrorCode.RATE_LIMIT
    assert raised.value.details.quota_id == "GenerateRequestsPerMinutePerProjectPerModel"
    assert raised.value.details.retry_after_s is not None
    assert 50 < raised.value.details.retry_after_s <= 60
    assert outcomes == ["ok"] * 5 + ["limit-rpm"]


def test_the_log_has_each_request_and_its_outcome() -> None:
    rules = [{"fault": "503", "attempt": 1, "kind": "entities"}]
    with Emulator(answers="minimal", faults=rules) as emulator:
        provider = gemini(emulator.url)
        entities, discovery = entities_request(page=7), discovery_request(page=2)
        with pytest.raises(CallError):
            provider.generate(entities)
        provider.generate(entities)
        provider.generate(discovery)

        lines = emulator.log()

    seen = [(x.number, x.item_token, x.kind, x.attempt, x.pages, x.outcome) for x in lines]
    assert seen == [
        (1, entities.item_token, "entities", 1, [7], "503"),
        (2, entities.item_token, "entities", 2, [7], "ok"),
        (3, discovery.item_token, "discovery", 1, [2], "ok"),
    ]
    assert [line.status for line in lines] == [503, 200, 200]
    assert all(line.delivered for line in lines)
    assert [line.input_tokens > 0 for line in lines] == [False, True, True]


def test_no_text_of_a_document_is_in_the_log() -> None:
    with Emulator() as emulator:
        gemini(emulator.url).generate(
            entities_request(text="Eleanor Rigby takes lisinopril 20 mg.")
        )

        logged = repr(emulator.log())

    assert "Rigby" not in logged
    assert "lisinopril" not in logged


def test_an_answer_to_a_client_that_left_is_logged_as_not_delivered() -> None:
    with Emulator(answers="minimal", latency="1.5/call") as emulator:
        provider = gemini(emulator.url, least_wait_s=0.1)
        with pytest.raises(CallError):
            provider.generate(entities_request(deadline_s=0.1))

        gemini(emulator.url).generate(entities_request())
        first = emulator.log()[0]

    assert first.outcome == "ok"
    assert not first.delivered


def test_two_runs_with_one_seed_meet_the_same_latencies_in_any_order() -> None:
    def run(pages: list[int], seed: int) -> dict[int, float]:
        with Emulator(answers="minimal", latency="lognormal:0.01,0.8", seed=seed) as emulator:
            provider = gemini(emulator.url)
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(provider.generate, [entities_request(page=p) for p in pages]))
            return latencies(emulator.log())

    first, second, other = run([1, 2, 3, 4], 1), run([4, 2, 1, 3], 1), run([1, 2, 3, 4], 2)

    assert second == first
    assert other != first
    assert len(set(first.values())) == 4


def test_a_place_can_have_a_latency_of_its_own() -> None:
    with Emulator(answers="minimal", latency_map={"entities 2": 0.3}) as emulator:
        provider = gemini(emulator.url)
        for request in (entities_request(page=1), entities_request(page=2)):
            provider.generate(request)

        lines = emulator.log()

    assert latencies(lines) == {1: 0.0, 2: 0.3}
    assert lines[1].latency_s >= 0.3


def test_a_hundred_connections_at_once_are_all_answered(emulator: Emulator) -> None:
    def ask(_: int) -> list[int]:
        client = Client(emulator.url)
        statuses = [client.post(GENERATE, contents("x"))[0] for _ in range(5)]
        client.connection.close()
        return statuses

    with ThreadPoolExecutor(100) as pool:
        statuses = [status for seen in pool.map(ask, range(100)) for status in seen]

    assert statuses == [200] * 500
