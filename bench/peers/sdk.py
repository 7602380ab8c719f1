"""The parts of google-genai that every peer uses in the same way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import httpx2
from google import genai
from google.genai import errors, types
from tenacity import RetryCallState, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from bench.peers.work import PeerWork

TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})


def client_of(work: PeerWork) -> genai.Client:
    """Return a client of the SDK with its default connections; no proxy reaches the emulator."""
    return genai.Client(
        api_key="bench",
        vertexai=False,
        http_options=types.HttpOptions(base_url=work.url, client_args={"trust_env": False}),
    )


def ask(client: genai.Client, work: PeerWork, prompt: str) -> str:
    """Make one call and return the text of the reply."""
    config: Any = work.config
    reply = client.models.generate_content(model=work.model, contents=prompt, config=config)
    return reply.text or ""


async def ask_async(client: genai.Client, work: PeerWork, prompt: str) -> str:
    """Make one call on the event loop and return the text of the reply."""
    config: Any = work.config
    reply = await client.aio.models.generate_content(
        model=work.model, contents=prompt, config=config
    )
    return reply.text or ""


def is_transient(error: BaseException) -> bool:
    """Return whether the same call can succeed later."""
    if isinstance(error, errors.APIError):
        return error.code in TRANSIENT
    return isinstance(error, httpx2.TransportError)


def hint_of(error: BaseException | None) -> float:
    """Return the seconds that the provider asks to wait; 0 without such a hint."""
    if not isinstance(error, errors.APIError) or not isinstance(error.details, dict):
        return 0.0
    inner = error.details.get("error", error.details)
    for detail in inner.get("details", []):
        if str(detail.get("@type", "")).endswith("RetryInfo"):
            return float(detail["retryDelay"].removesuffix("s"))
    return 0.0


def retries(work: PeerWork) -> dict[str, Any]:
    """Return tenacity's arguments: exponential backoff with jitter, and at least the hint."""
    backoff = wait_exponential_jitter(
        initial=work.backoff_s, max=work.most_backoff_s, jitter=work.backoff_s
    )
    return {
        "retry": retry_if_exception(is_transient),
        "stop": stop_after_attempt(work.attempts),
        "wait": partial(_wait, backoff),
        "reraise": True,
    }


def _wait(backoff: Callable[[RetryCallState], float], state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return max(backoff(state), hint_of(error))
