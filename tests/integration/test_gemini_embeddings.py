"""Vectors come with the real google-genai client from the emulator, and each is checked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from gemini_emulator import Emulator
from pipeline.core.errors import CallError, ErrorCode
from pipeline.providers.base import EmbeddingRequest
from pipeline.providers.gemini import GeminiProvider

MODEL = "gemini-embedding-001"
TEXTS = ("hypertension", "high blood pressure", "asthma")
FAULT_CODES = {
    "429": ErrorCode.RATE_LIMIT,
    "429-bare": ErrorCode.RATE_LIMIT,
    "429-day": ErrorCode.QUOTA_EXHAUSTED,
    "400-key": ErrorCode.API_AUTH,
    "400-bare": ErrorCode.API_4XX,
    "403": ErrorCode.API_AUTH,
    "404": ErrorCode.API_4XX,
    "402": ErrorCode.API_BILLING,
    "407": ErrorCode.API_PROXY,
    "302": ErrorCode.API_PROXY,
    "html": ErrorCode.API_PROXY,
    "500": ErrorCode.API_5XX,
    "502": ErrorCode.API_5XX,
    "503": ErrorCode.API_5XX,
    "504": ErrorCode.API_TIMEOUT,
    "reset": ErrorCode.API_5XX,
    "cut": ErrorCode.API_5XX,
    "hang": ErrorCode.API_TIMEOUT,
    "empty-body": ErrorCode.EMPTY_RESPONSE,
    "empty-object": ErrorCode.EMPTY_RESPONSE,
    "few-vectors": ErrorCode.PARSE_SCHEMA,
    "short-vector": ErrorCode.PARSE_SCHEMA,
    "nan-vector": ErrorCode.PARSE_SCHEMA,
    "zero-vector": ErrorCode.PARSE_SCHEMA,
}
SHAPES: tuple[Any, ...] = (
    [], ["x"], "x", 3, {"embeddings": "x"}, {"embeddings": {"a": 1}}, {"embeddings": [None] * 3},
    {"embeddings": [{"values": ["a"]}] * 3}, {"embeddings": [{"values": None}] * 3},
    {"embeddings": [{}] * 3}, {"embeddings": [[0.1]] * 3},
    {"embeddings": [{"values": [1.7e308, 1.7e308]}] * 3}, {"embeddings": [{"values": [[1]]}] * 3},
)  # fmt: skip


def asked(texts: tuple[str, ...] = TEXTS, dimensions: int = 768) -> EmbeddingRequest:
    return EmbeddingRequest(texts=texts, dimensions=dimensions, deadline_s=0.5)


def provider(url: str, **more: Any) -> GeminiProvider:
    return GeminiProvider(api_key="test-key", model=MODEL, base_url=url, **more)


def refusal(of: GeminiProvider, request: EmbeddingRequest) -> CallError:
    with pytest.raises(CallError) as raised:
        of.embed(request)
    return raised.value


def answering(respond: Callable[[httpx2.Request], httpx2.Response]) -> GeminiProvider:
    return provider("http://127.0.0.1:1", transport=httpx2.MockTransport(respond))


@pytest.fixture(scope="module")
def emulator() -> Any:
    with Emulator(answers="minimal") as running:
        yield running


def test_each_text_has_a_vector_of_length_1_and_tokens_are_counted(emulator: Emulator) -> None:
    sent: list[str] = []
    request = EmbeddingRequest(
        texts=TEXTS, dimensions=768, deadline_s=1.0, on_send=lambda: sent.append("sent")
    )

    reply = provider(emulator.url).embed(request)

    assert [len(vector) for vector in reply.vectors] == [768] * 3
    assert [math.hypot(*vector) for vector in reply.vectors] == pytest.approx([1.0] * 3, abs=1e-6)
    assert reply.details.input_tokens > 0
    assert (reply.details.output_tokens, reply.details.http_status) == (0, 200)
    assert sent == ["sent"]


def test_each_fault_has_the_code_of_a_generating_call() -> None:
    rules = [
        {"fault": fault, "kind": "embedding", "number": number}
        for number, fault in enumerate(FAULT_CODES, 1)
    ]
    with Emulator(answers="minimal", faults=rules) as running:
        asks = provider(running.url, least_wait_s=0.5)
        errors = {fault: refusal(asks, asked()) for fault in FAULT_CODES}
        outcomes = [line.outcome for line in running.log()]

    assert {fault: error.code for fault, error in errors.items()} == FAULT_CODES
    assert sorted(outcomes) == sorted(FAULT_CODES)
    for error in errors.values():
        assert not any(text in error.message for text in TEXTS)
        assert error.__context__ is None


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: json.dumps(shape)[:40])
def test_a_reply_of_another_shape_is_refused_with_a_code(shape: Any) -> None:
    error = refusal(answering(lambda _: httpx2.Response(200, json=shape)), asked(dimensions=2))

    assert error.code in {ErrorCode.PARSE_SCHEMA, ErrorCode.EMPTY_RESPONSE}
    assert error.__context__ is None


def test_a_reply_without_token_counts_has_estimated_tokens() -> None:
    body = {"embeddings": [{"values": [3.0, 4.0]}]}

    reply = answering(lambda _: httpx2.Response(200, json=body)).embed(asked(("asthma",), 2))

    assert list(reply.vectors[0]) == pytest.approx([0.6, 0.8])
    assert reply.details.input_tokens == 2


@pytest.mark.parametrize(
    ("model", "task"), [(MODEL, "SEMANTIC_SIMILARITY"), ("gemini-embedding-2", None)]
)
def test_every_text_is_a_content_of_its_own_with_the_task_of_its_model(
    model: str, task: str | None
) -> None:
    seen: list[Any] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        seen.append(json.loads(request.read()))
        return httpx2.Response(200, json={"embeddings": [{"values": [1.0]}] * 3})

    made = GeminiProvider(
        api_key="k",
        model=model,
        base_url="http://127.0.0.1:1",
        transport=httpx2.MockTransport(respond),
    )
    made.embed(asked(dimensions=1))

    requests = seen[0]["requests"]
    assert [one["content"]["parts"] for one in requests] == [[{"text": text}] for text in TEXTS]
    assert {one.get("taskType") for one in requests} == {task}
    assert {one["outputDimensionality"] for one in requests} == {1}


def test_the_service_refuses_more_than_a_hundred_texts(emulator: Emulator) -> None:
    assert len(provider(emulator.url).embed(asked(("a",) * 100)).vectors) == 100
    assert refusal(provider(emulator.url), asked(("a",) * 101)).code == ErrorCode.API_4XX
