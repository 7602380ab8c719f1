"""Each kind of body of a 200 becomes the code or the reply of a named table."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import CallError, ErrorCode, ReplyError
from pipeline.providers.reply_parsing import FINISHES, read_reply
from pipeline.providers.schemas import EntityReply
from tests.support.emulator import entities_request

TOKEN = "ab" * 16
REQUEST = entities_request(token=TOKEN)
GOOD = json.dumps({"item_token": TOKEN, "entities": []})
USAGE = {
    "promptTokenCount": 700,
    "toolUsePromptTokenCount": 11,
    "candidatesTokenCount": 80,
    "thoughtsTokenCount": 5,
    "cachedContentTokenCount": 200,
}


RESPONSE_ID = "1f" * 11


def envelope(text: str | None = GOOD, finish: str | None = "STOP", **more: Any) -> str:
    candidate: dict[str, Any] = {"content": {"role": "model"}}
    if text is not None:
        candidate["content"]["parts"] = [{"text": text}]
    if finish is not None:
        candidate["finishReason"] = finish
    body = {
        "candidates": [candidate],
        "usageMetadata": USAGE,
        "modelVersion": "gemini-3.5-flash-lite-001",
        "responseId": RESPONSE_ID,
    }
    return json.dumps({**body, **more})


BAD = {
    "empty body": ("", ErrorCode.EMPTY_RESPONSE),
    "empty object": ("{}", ErrorCode.EMPTY_RESPONSE),
    "empty list": ("[]", ErrorCode.EMPTY_RESPONSE),
    "list": ("[1]", ErrorCode.PARSE_JSON),
    "deep nesting": ("[" * 100_000, ErrorCode.PARSE_JSON),
    "no candidates": (envelope(candidates=[]), ErrorCode.EMPTY_RESPONSE),
    "odd candidates": (envelope(candidates="x"), ErrorCode.EMPTY_RESPONSE),
    "no parts": (envelope(None), ErrorCode.EMPTY_RESPONSE),
    "blank text": (envelope(" \n"), ErrorCode.EMPTY_RESPONSE),
    "blocked prompt": (
        envelope(candidates=[], promptFeedback={"blockReason": "PROHIBITED_CONTENT"}),
        ErrorCode.CONTENT_BLOCKED,
    ),
    "blocked for an unknown reason": (
        envelope(promptFeedback={"blockReason": 7}),
        ErrorCode.CONTENT_BLOCKED,
    ),
    "cut off": (envelope(GOOD[:9], "MAX_TOKENS"), ErrorCode.OUTPUT_TRUNCATED),
    "cut off, yet whole JSON": (envelope(GOOD, "MAX_TOKENS"), ErrorCode.OUTPUT_TRUNCATED),
    "cut off in thought": (envelope(None, "MAX_TOKENS"), ErrorCode.OUTPUT_TRUNCATED),
    "recitation": (envelope(None, "RECITATION"), ErrorCode.CONTENT_BLOCKED),
    "malformed": (envelope(None, "MALFORMED_RESPONSE"), ErrorCode.PARSE_JSON),
    "other": (envelope(None, "OTHER"), ErrorCode.EMPTY_RESPONSE),
    "a reason of tomorrow": (envelope(GOOD, "SOLAR_FLARE"), ErrorCode.EMPTY_RESPONSE),
    "text without a finish reason": (envelope(GOOD, None), ErrorCode.PARSE_JSON),
    "broken JSON": (envelope(GOOD[:-3]), ErrorCode.PARSE_JSON),
    "prose": (envelope("I cannot help with that."), ErrorCode.PARSE_JSON),
    "prose around an object that is no reply": (
        envelope('I found {"name": "x"} and {"entities": []}.'),
        ErrorCode.PARSE_JSON,
    ),
    "two different replies": (
        envelope(f'First {GOOD}, or rather {GOOD[:-1]}, "zones": []}}.'),
        ErrorCode.PARSE_JSON,
    ),
    "broken JSON between sentences": (
        envelope(f"Here it is: {GOOD[:-1]} and more."),
        ErrorCode.PARSE_JSON,
    ),
    "another token between sentences": (
        envelope(f"Here: {json.dumps({'item_token': 'cd' * 16, 'entities': []})}!"),
        ErrorCode.REPLY_MISMATCH,
    ),
    "braces without end": (envelope('{"a": ' * 50_000), ErrorCode.PARSE_JSON),
    "bare list": (envelope("[]"), ErrorCode.PARSE_SCHEMA),
    "no token": (envelope('{"entities": []}'), ErrorCode.PARSE_SCHEMA),
    "wrong shape": (
        envelope(json.dumps({"item_token": TOKEN, "entities": "none"})),
        ErrorCode.PARSE_SCHEMA,
    ),
    "nothing said of entities": (
        envelope(json.dumps({"item_token": TOKEN})),
        ErrorCode.PARSE_SCHEMA,
    ),
    "another token": (envelope(json.dumps({"item_token": "cd" * 16})), ErrorCode.REPLY_MISMATCH),
    "token in another case": (
        envelope(json.dumps({"item_token": TOKEN.upper()})),
        ErrorCode.REPLY_MISMATCH,
    ),
}


@pytest.mark.parametrize(("body", "code"), BAD.values(), ids=BAD.keys())
def test_each_bad_reply_becomes_its_code(body: str, code: ErrorCode) -> None:
    with pytest.raises(ReplyError) as raised:
        read_reply(body, REQUEST)

    assert raised.value.code is code
    assert raised.value.details.http_status == 200
    assert raised.value.__context__ is None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("<html></html>", ErrorCode.API_PROXY),
        ("\ufeff\n <!DOCTYPE html>", ErrorCode.API_PROXY),
        ('{"error": {"code": 503, "status": "UNAVAILABLE"}}', ErrorCode.API_5XX),
        ('[{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}]', ErrorCode.RATE_LIMIT),
        ('{"error": {"code": 402, "message": "no credit"}}', ErrorCode.API_BILLING),
        ('{"error": "no credit"}', ErrorCode.API_5XX),
    ],
)
def test_a_200_that_is_no_reply_becomes_the_code_of_its_cause(body: str, code: ErrorCode) -> None:
    with pytest.raises(CallError) as raised:
        read_reply(body, REQUEST)

    assert (raised.value.code, raised.value.details.http_status) == (code, 200)
    assert "proxy" in raised.value.message
    assert raised.value.__context__ is None


def test_an_error_beside_an_answer_is_ignored() -> None:
    body = json.loads(envelope(GOOD)) | {"error": {"code": 503}}

    assert read_reply(json.dumps(body), REQUEST).output


GOOD_TEXTS = {
    "plain": GOOD,
    "fenced": f"```json\n{GOOD}\n```",
    "fenced without a language": f"```\n{GOOD}```\n",
    "spaced": f"\n  {GOOD}  \n",
    "between sentences": f"Here is the JSON requested: {GOOD} Let me know if you need more.",
    "fenced between sentences": f"Sure.\n```json\n{GOOD}\n```\nAnything else?",
    "said twice": f"Draft: {GOOD}\nFinal: {GOOD}",
    "behind braces in prose": f"The set {{a, b}} and the object {{}} gave {GOOD}",
    "with a field of its own": json.dumps({"item_token": TOKEN, "entities": [], "mood": "good"}),
}


@pytest.mark.parametrize("text", GOOD_TEXTS.values(), ids=GOOD_TEXTS.keys())
def test_each_good_reply_is_read(text: str) -> None:
    reply = read_reply(envelope(text), REQUEST)

    assert isinstance(reply.output, EntityReply)
    assert reply.output.item_token == TOKEN
    assert reply.details.raw_reply == text


def test_thoughts_are_not_part_of_the_text_and_parts_are_joined() -> None:
    parts = [{"text": "hm", "thought": True}, {"text": GOOD[:5]}, {"text": GOOD[5:]}]
    body = envelope(candidates=[{"content": {"parts": parts}, "finishReason": "STOP"}])

    assert read_reply(body, REQUEST).details.raw_reply == GOOD


@pytest.mark.parametrize("text", [GOOD, "{", None])
def test_tokens_model_and_id_are_recorded_whether_it_fails_or_not(text: str | None) -> None:
    try:
        facts = read_reply(envelope(text), REQUEST).details
    except CallError as error:
        facts = error.details

    assert facts.input_tokens == 711
    assert facts.output_tokens == 80
    assert facts.thinking_tokens == 5
    assert facts.cached_tokens == 200
    assert facts.model_version == "gemini-3.5-flash-lite-001"
    assert facts.response_id == RESPONSE_ID
    assert facts.finish_reason == "STOP"


def test_a_wrong_shape_is_reported_by_place_and_kind_never_by_value() -> None:
    secret = {"category": "Eleanor Rigby", "page": "Eleanor", "quote": "", "name": "Rigby"}
    text = json.dumps({"item_token": TOKEN, "entities": [secret]})

    with pytest.raises(ReplyError) as raised:
        read_reply(envelope(text), REQUEST)

    assert "entities.0.category: literal_error" in str(raised.value)
    assert "Rigby" not in str(raised.value) + repr(raised.value.details)
    assert "Rigby" in raised.value.details.raw_reply


def test_stop_is_the_only_finish_reason_without_a_code() -> None:
    assert "STOP" not in FINISHES


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "candidates",
                        "content",
                        "parts",
                        "text",
                        "finishReason",
                        "usageMetadata",
                        "promptFeedback",
                        "blockReason",
                        "promptTokenCount",
                    ]
                ),
                x,
            )
        ),
        max_leaves=20,
    )
)
def test_any_json_ends_as_a_reply_or_as_an_error_with_a_code(body: object) -> None:
    with contextlib.suppress(CallError):
        read_reply(json.dumps(body), REQUEST)
