"""Requests and providers for tests that call the emulator through the real client."""

from __future__ import annotations

import secrets

import pytest
from pydantic import BaseModel

from pipeline.core.errors import CallError
from pipeline.core.types import PageSlice
from pipeline.providers.base import Provider, Request
from pipeline.providers.gemini import GeminiProvider
from pipeline.providers.prompts import (
    PROMPT_VERSION,
    estimate_tokens,
    render_discovery,
    render_entities,
)
from pipeline.providers.schemas import DiscoveryReply, EntityReply

MODEL = "gemini-3.5-flash-lite"
TEXT = "Medications: lisinopril 20 mg by mouth daily.\nAllergies: NKDA."


def entities_request(
    *,
    token: str = "",
    page: int = 1,
    text: str = TEXT,
    deadline_s: float = 30.0,
    max_output_tokens: int = 8_192,
    schema: type[BaseModel] = EntityReply,
) -> Request:
    """Make a request for the entities of one page."""
    token = token or secrets.token_hex(16)
    prompt = render_entities(token, [PageSlice(page=page, start=0, text=text)], include_zones=False)
    return _request(token, prompt, schema, deadline_s, max_output_tokens)


def discovery_request(*, token: str = "", page: int = 1, text: str = TEXT) -> Request:
    """Make a request for the encounters of one page."""
    token = token or secrets.token_hex(16)
    prompt = render_discovery(token, [PageSlice(page=page, start=0, text=text)])
    return _request(token, prompt, DiscoveryReply, 30.0, 8_192)


def _request(
    token: str, prompt: str, schema: type[BaseModel], deadline_s: float, max_output_tokens: int
) -> Request:
    return Request(
        item_token=token,
        prompt=prompt,
        schema=schema,
        max_output_tokens=max_output_tokens,
        deadline_s=deadline_s,
        prompt_version=PROMPT_VERSION,
        estimated_input_tokens=estimate_tokens(prompt),
    )


def gemini(url: str, *, api_key: str = "test-key", least_wait_s: float = 10.0) -> GeminiProvider:
    """Make a provider whose service is the emulator at `url`."""
    return GeminiProvider(api_key=api_key, model=MODEL, base_url=url, least_wait_s=least_wait_s)


def failure(provider: Provider, request: Request) -> CallError:
    """Return the error of a call that must fail."""
    with pytest.raises(CallError) as raised:
        provider.generate(request)
    return raised.value
