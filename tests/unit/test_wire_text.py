"""Only known names and wordless shapes pass the border to the provider."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types as wire
from hypothesis import given
from hypothesis import strategies as st

from gemini_emulator import api_bodies
from pipeline.core.errors import CallError
from pipeline.providers.error_mapping import ERROR_INFO_CODES, STATUS_OF_NAME
from pipeline.providers.reply_parsing import COUNTS, FINISHES, read_reply
from pipeline.providers.wire_text import (
    KNOWN,
    MAX_HINT_S,
    MAX_TOKENS,
    UNREADABLE,
    WireText,
    allowed,
    hint_seconds,
    token_count,
)
from tests.support.emulator import entities_request

PHI = (
    "Eleanor Rigby",
    "Rigby",
    "RIGBY_ELEANOR",
    "gemini-rigby",
    "rigby-per_day-hypertension",
    "spend.rigby",
    "MRN-00482210",
    "19561203",
    "STOP\x1b[31m",
    "STOP\n",
    "\u202eSTOP",
    "STOP\x00",
    "ＳＴＯＰ",
    "\ud800",
    "e" * 5_000,
)
REQUEST = entities_request(token="ab" * 16)
ANSWER = json.dumps({"item_token": "ab" * 16, "entities": []})


@pytest.mark.parametrize("field", WireText)
@pytest.mark.parametrize("value", [*PHI, 7, True, ["STOP"], {"STOP": 1}, 1.5])
def test_no_text_of_a_document_passes(field: WireText, value: object) -> None:
    stored = allowed(field, value)

    fixed = {UNREADABLE, f"{UNREADABLE}-PerDay", f"{UNREADABLE}-Spend"}
    assert stored in fixed or (stored.startswith("sha256-") and len(stored) == 39)


@pytest.mark.parametrize("field", WireText)
@pytest.mark.parametrize("value", [None, ""])
def test_a_missing_field_stays_empty(field: WireText, value: object) -> None:
    assert allowed(field, value) == ""


@given(st.sampled_from(WireText), st.text(min_size=1))
def test_any_text_becomes_short_plain_ascii(field: WireText, value: str) -> None:
    stored = allowed(field, value)

    assert 0 < len(stored) <= 128
    assert stored.isascii()
    assert stored.isprintable()


@pytest.mark.parametrize(
    "value",
    [
        "gemini-3.5-flash-lite",
        "gemini-3.5-flash-lite-001",
        "models/gemini-2.5-pro-preview-05-06",
        "gemini-2.0-flash-exp-1206",
        "gemini-1.5-flash-8b",
        "gemma-3n-e4b-it",
    ],
)
def test_the_model_versions_of_the_service_are_stored(value: str) -> None:
    assert allowed(WireText.MODEL_VERSION, value) == value


def test_a_model_version_may_repeat_the_words_of_the_configured_model() -> None:
    version = "tuned-carlisle-002"

    assert allowed(WireText.MODEL_VERSION, version) == UNREADABLE
    assert allowed(WireText.MODEL_VERSION, version, model="tuned-carlisle") == version


@pytest.mark.parametrize(
    "quota",
    [
        api_bodies.minute_requests(1),
        api_bodies.minute_tokens(1),
        api_bodies.day_requests(1),
        api_bodies.spend(1),
    ],
)
def test_the_quotas_of_the_service_are_stored(quota: api_bodies.ServiceQuota) -> None:
    assert allowed(WireText.QUOTA, quota.quota_id) == quota.quota_id
    assert allowed(WireText.QUOTA, quota.metric) == quota.metric


def test_the_border_knows_every_name_that_the_code_or_the_sdk_knows() -> None:
    reasons = {reason.value for reason in wire.FinishReason}

    assert {*FINISHES, "STOP", *reasons} <= KNOWN[WireText.FINISH_REASON]
    assert {reason.value for reason in wire.BlockedReason} <= KNOWN[WireText.BLOCK_REASON]
    assert set(ERROR_INFO_CODES) <= KNOWN[WireText.REASON]
    assert set(STATUS_OF_NAME) <= KNOWN[WireText.STATUS]


def test_equal_response_ids_stay_equal() -> None:
    one, other = "k1xTaNz5M4nX7M8P8ei4yAk", "mAitaLmkHPPlz7IPvtfUqQ4"

    assert allowed(WireText.RESPONSE_ID, one) == allowed(WireText.RESPONSE_ID, one)
    assert allowed(WireText.RESPONSE_ID, one) != allowed(WireText.RESPONSE_ID, other)
    assert allowed(WireText.RESPONSE_ID, "1f" * 11) == "1f" * 11


def test_a_hint_is_at_most_a_day() -> None:
    assert hint_seconds("9" * 400) == MAX_HINT_S


@pytest.mark.parametrize(
    "absurd", ["1e30", str(10**30), "-1", "NaN", "Infinity", "true", "711.5", '"711"', "[7]", "{}"]
)
@pytest.mark.parametrize("name", COUNTS)
def test_one_absurd_count_makes_the_usage_unknown_and_the_reply_is_used(
    absurd: str, name: str
) -> None:
    counts = dict.fromkeys(COUNTS, "80") | {name: absurd}
    usage = ", ".join(f'"{each}": {count}' for each, count in counts.items())
    candidate = {"content": {"parts": [{"text": ANSWER}]}, "finishReason": "STOP"}
    body = f'{{"candidates": [{json.dumps(candidate)}], "usageMetadata": {{{usage}}}}}'

    found = read_reply(body, REQUEST).details

    assert found.is_usage_unknown
    stored = (found.input_tokens, found.output_tokens, found.thinking_tokens, found.cached_tokens)
    assert stored == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("value", "count"), [(0, 0), (711, 711), (MAX_TOKENS, MAX_TOKENS), (MAX_TOKENS + 1, None)]
)
def test_a_count_has_a_limit(value: int, count: int | None) -> None:
    assert token_count(value) == count


def test_a_model_cannot_write_the_rule_of_the_local_engine() -> None:
    entity: dict[str, Any] = {
        "quote": "asthma", "page": 1, "category": "condition", "name": "asthma", "start": 3,
        "rule": "Rigby",
    }  # fmt: skip
    text = json.dumps({"item_token": "ab" * 16, "entities": [entity], "items_rejected": 9})
    candidate = {"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}

    output = read_reply(json.dumps({"candidates": [candidate]}), REQUEST).output

    (found,) = output.model_dump()["entities"]
    assert (found["rule"], found["start"], found["quote"]) == ("", None, "asthma")
    assert output.model_dump()["items_rejected"] == 0


@pytest.mark.parametrize("code", ["9" * 5_000, 10**30, -1, True, "４２９", None, [1]])
def test_an_odd_code_of_an_error_inside_a_200_is_an_outage(code: object) -> None:
    with pytest.raises(CallError) as raised:
        read_reply(json.dumps({"error": {"code": code}}), REQUEST)

    assert raised.value.message == "a proxy answered 200 with an error inside: HTTP 500"
