"""The Gemini provider; the only module that imports google.genai.

Each process makes its own client at its first call, because a client must not survive a fork. The
SDK retries nothing, continues nothing and parses nothing. One `generate` is one billed request, and
`reply_parsing` reads the body.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import math
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

import httpx2
from google import genai
from google.genai import types as wire
from pydantic import ValidationError

from pipeline.core.errors import CallDetails, CallError, ErrorCode, ReplyError
from pipeline.providers.base import EmbeddingReply, EmbeddingRequest, Reply, Request
from pipeline.providers.embedding_reply import checked
from pipeline.providers.error_mapping import (
    ErrorBoundary,
    error_of_page,
    error_of_unreadable_body,
    is_page,
)
from pipeline.providers.json_schema import wire_schema
from pipeline.providers.prompts import estimate_tokens
from pipeline.providers.reply_parsing import read_reply
from pipeline.providers.tasks import TASKS

API_VERSION = "v1beta"
"""Version `v1beta` has the `-latest` aliases and the newest fields, which `v1` lacks."""
SHORTEST_TIMEOUT_S = 10.0
"""The service answers 400 to a shorter X-Server-Timeout."""
MAX_CONNECTIONS = 128
"""More than the call threads of a step plus as many abandoned calls. The SDK's default of 100 was
too small for 300 threads."""
KEEPALIVE_S = 30.0
MAX_INLINE_BYTES = 50 * 1024 * 1024
"""Limit for the documents and images that one request carries inline (documentation of the API)."""

EMBEDDING_TASKS = {"gemini-embedding-001": "SEMANTIC_SIMILARITY"}
"""The task type of each model that has task types (documentation of the API)."""
MAX_EMBEDDING_TOKENS = 1_000_000
"""A larger count of one embedding call is absurd, and is not believed."""

THINKING: tuple[tuple[str, wire.ThinkingConfig], ...] = (
    ("gemini-2.5-pro", wire.ThinkingConfig(thinking_budget=128)),
    ("gemini-2.5", wire.ThinkingConfig(thinking_budget=0)),
    ("gemini-3-pro", wire.ThinkingConfig(thinking_level=wire.ThinkingLevel.LOW)),
    ("gemini-3.1-pro", wire.ThinkingConfig(thinking_level=wire.ThinkingLevel.LOW)),
    ("", wire.ThinkingConfig(thinking_level=wire.ThinkingLevel.MINIMAL)),
)
"""The least thinking that a family of models accepts. The first prefix that matches applies."""


class _InThread(threading.local):
    """The callbacks of this thread's request: the SDK passes no argument on to the HTTP hooks."""

    on_send: Callable[[], object] = staticmethod(lambda: None)
    on_sent: Callable[[], object] = staticmethod(lambda: None)


_in_thread = _InThread()


class GeminiProvider:
    """Answers requests with Gemini. Safe for many threads and for processes that fork later."""

    name = "gemini"
    max_calls: int | None = None

    def __init__(
        self,
        *,
        api_key: str,
        model: str,
        base_url: str = "",
        api_version: str = API_VERSION,
        max_connections: int = MAX_CONNECTIONS,
        least_wait_s: float = SHORTEST_TIMEOUT_S,
        max_inline_bytes: int = MAX_INLINE_BYTES,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.model = model
        self._api_key = api_key
        self._base_url = base_url
        self._api_version = api_version
        self._max_connections = max_connections
        self._least_wait_s = least_wait_s
        self._max_inline_bytes = max_inline_bytes
        self._transport = transport
        self._thinking = next(t for prefix, t in THINKING if model.startswith(prefix))
        self._client: genai.Client | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._inherited: list[genai.Client] = []

    def __repr__(self) -> str:
        return f"GeminiProvider(model={self.model!r}, base_url={self._base_url!r})"

    def generate(self, request: Request) -> Reply:
        """Send one request and read its reply.

        Raises `CallError`. The timeout is max(10 s, `deadline_s`) for each read and for the whole
        body. The service works for at least 10 s. A reply that arrives after its caller has
        abandoned the call still reports its cost.
        """
        began = time.monotonic()
        boundary = ErrorBoundary(lambda: time.monotonic() - began)
        _in_thread.on_send, _in_thread.on_sent = request.on_send, request.on_sent
        try:
            with boundary:
                return read_reply(self._ask(request), request, model=self.model)
        finally:
            for attachment in request.attachments:
                attachment.release()
        raise boundary.error

    def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        """Send the texts of one request and return their vectors.

        Raises `CallError`, also for a reply with a missing or unusable vector. The timeout is that
        of `generate`. Without token counts in the reply the input tokens are estimated.
        """
        began = time.monotonic()
        boundary = ErrorBoundary(lambda: time.monotonic() - began)
        _in_thread.on_send, _in_thread.on_sent = request.on_send, request.on_sent
        with boundary:
            return self._embedded(request)
        raise boundary.error

    def close(self) -> None:
        """Close the client of this process."""
        with self._own_lock():
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _embedded(self, request: EmbeddingRequest) -> EmbeddingReply:
        sent = self._ask_for_vectors(request)
        tokens = (sent.usage_metadata and sent.usage_metadata.prompt_token_count) or 0
        details = CallDetails(
            http_status=200,
            input_tokens=tokens
            if 0 < tokens <= MAX_EMBEDDING_TOKENS
            else sum(map(estimate_tokens, request.texts)),
        )
        vectors = checked(sent.embeddings, len(request.texts), request.dimensions, details)
        return EmbeddingReply(vectors=vectors, details=details)

    def _ask_for_vectors(self, request: EmbeddingRequest) -> wire.EmbedContentResponse:
        client = self._own_client()
        config = wire.EmbedContentConfig(
            task_type=EMBEDDING_TASKS.get(self.model),
            output_dimensionality=request.dimensions,
            http_options=self._http_options(request.deadline_s),
        )
        # One content per text: newer models return one vector for all parts of a content.
        texts = [wire.Content(parts=[wire.Part(text=text)]) for text in request.texts]
        refused: CallError = ReplyError(
            "the reply has another shape than a reply with vectors",
            code=ErrorCode.PARSE_SCHEMA,
            details=CallDetails(http_status=200),
        )
        try:
            return client.models.embed_content(model=self.model, contents=texts, config=config)
        except json.JSONDecodeError as error:
            if not is_page(error.doc):
                raise
            refused = error_of_page()
        except (ValidationError, AttributeError, TypeError):
            # The SDK parses this reply itself, and takes the shape for granted.
            pass
        raise refused

    def _http_options(self, deadline_s: float) -> wire.HttpOptions:
        wait_s = max(self._least_wait_s, deadline_s)
        server_s = math.ceil(max(SHORTEST_TIMEOUT_S, wait_s))
        return wire.HttpOptions(
            timeout=math.ceil(wait_s * 1000), headers={"X-Server-Timeout": str(server_s)}
        )

    def _ask(self, request: Request) -> str:
        reply = self._own_client().models.generate_content(
            model=self.model,
            contents=self._contents(request),
            config=wire.GenerateContentConfig(
                response_mime_type="application/json",
                response_json_schema=wire_schema(request.schema),
                max_output_tokens=request.max_output_tokens,
                thinking_config=self._thinking,
                automatic_continuation=False,
                automatic_function_calling=wire.AutomaticFunctionCallingConfig(disable=True),
                # Ask for the raw body: the SDK reads blocked, truncated and fenced replies as None.
                should_return_http_response=True,
                http_options=self._http_options(request.deadline_s),
            ),
        )
        if reply.sdk_http_response is None:
            raise CallError(code=ErrorCode.EMPTY_RESPONSE, details=CallDetails(http_status=200))
        return reply.sdk_http_response.body or ""

    def _contents(self, request: Request) -> wire.Content:
        size = sum(len(attachment.content) for attachment in request.attachments)
        if size > self._max_inline_bytes:
            raise CallError(
                f"the attached pages have {size:,} bytes; the limit is {self._max_inline_bytes:,}",
                code=ErrorCode.CONTEXT_TOO_LARGE,
            )
        attached = [
            wire.Part.from_bytes(data=attachment.content, mime_type=attachment.media_type)
            for attachment in request.attachments
        ]
        return wire.Content(role="user", parts=[*attached, wire.Part(text=request.prompt)])

    def _own_client(self) -> genai.Client:
        """Return the client of this process.

        A client made before a fork would swap replies between processes (measured).
        """
        with self._own_lock():
            if self._client is None:
                self._client = self._new_client()
            return self._client

    def _own_lock(self) -> threading.Lock:
        pid = os.getpid()
        if self._pid != pid:
            # A thread that did not survive the fork may have held the lock. Right after a fork only
            # one thread lives. A second thread here would at worst make a spare client.
            self._lock = threading.Lock()
            if self._client is not None:
                # Keep the inherited client: closing it would end TLS sessions that belong to the
                # parent.
                self._inherited.append(self._client)
            self._client, self._pid = None, pid
        return self._lock

    def _new_client(self) -> genai.Client:
        return genai.Client(
            api_key=self._api_key,
            vertexai=False,
            http_options=wire.HttpOptions(
                base_url=self._base_url or None,
                api_version=self._api_version,
                client_args={
                    "limits": httpx2.Limits(
                        max_connections=self._max_connections,
                        max_keepalive_connections=self._max_connections,
                        keepalive_expiry=KEEPALIVE_S,
                    ),
                    "event_hooks": {
                        "request": [_note_start],
                        "response": [_bound_body, _keep_status],
                    },
                    # A redirect leads to a login page or to a stranger, never to the service. The
                    # SDK would follow it, and a 307 would carry the pages along.
                    "follow_redirects": False,
                    "trust_env": not _is_loopback(self._base_url),
                    "transport": self._transport,
                    "verify": _tls(),
                },
                # The SDK also makes its asynchronous clients; it passes `ssl` on to aiohttp.
                async_client_args={"verify": _tls(), "ssl": _tls()},
            ),
        )


def warm_up() -> None:
    """Do all one-time work of a first call in memory; leave no client behind.

    A first call costs 0.2 s of CPU (measured): the SDK builds its models when they are first used,
    and TLS loads its certificates. A process that forks workers pays this once, before the fork.
    """
    provider = GeminiProvider(
        api_key="none",
        model="none",
        base_url="http://127.0.0.1:1",
        transport=httpx2.MockTransport(lambda request: httpx2.Response(200, json={})),
    )
    for task in TASKS.values():
        with contextlib.suppress(CallError):
            provider.generate(
                Request(
                    item_token="",
                    prompt="",
                    schema=task.reply,
                    max_output_tokens=1,
                    deadline_s=SHORTEST_TIMEOUT_S,
                    prompt_version="",
                    estimated_input_tokens=0,
                )
            )
    provider.close()


@cache
def _tls() -> ssl.SSLContext:
    # The same context that the SDK would make for each client, made once. A context holds
    # certificates, not connections, so a fork may inherit it.
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or folder:
        return ssl.create_default_context(cafile=file, capath=folder)
    return httpx2.create_ssl_context()


class _BoundedBody(httpx2.SyncByteStream):
    """A body that must end by `due`: the client's own timeout bounds each read only."""

    def __init__(self, inner: httpx2.SyncByteStream, due: float) -> None:
        self._inner = inner
        self._due = due

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._inner:
            if time.monotonic() > self._due:
                raise httpx2.ReadTimeout("the body took longer than the call's timeout")
            yield chunk

    def close(self) -> None:
        self._inner.close()


def _note_start(request: httpx2.Request) -> None:
    request.extensions["medproc_start"] = time.monotonic()
    request.extensions["trace"] = partial(_note_written, _in_thread.on_sent)
    _in_thread.on_send()


def _note_written(on_sent: Callable[[], object], event: str, info: Mapping[str, Any]) -> None:
    """Call `on_sent` when the client begins to wait for the reply.

    Between the request hook and this moment are the connection and the body: up to 0.22 s where 30
    calls start together on 2 cores (measured with `bench/quota_start.py`).
    """
    if not event.endswith(".receive_response_headers.started"):
        return
    # A proxy is first asked for a tunnel, with a request of its own.
    if info["request"].method != b"CONNECT":
        on_sent()


def _bound_body(response: httpx2.Response) -> None:
    extensions = response.request.extensions
    limit: Any = extensions.get("timeout", {}).get("read")
    if limit is not None and isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _BoundedBody(response.stream, extensions["medproc_start"] + limit)


def _keep_status(response: httpx2.Response) -> None:
    """Raise the HTTP status here: the SDK loses it when an error page breaks its decoder."""
    if response.status_code == httpx2.codes.OK:
        return
    try:
        response.read()
        response.json()
    except json.JSONDecodeError:
        # The SDK expects this of a gateway, and keeps the text and the status.
        return
    except (ValueError, RecursionError, httpx2.DecodingError):
        error = error_of_unreadable_body(response.status_code, response.headers)
    else:
        return
    raise error


def _is_loopback(url: str) -> bool:
    """Return whether `url` is a loopback address, like the emulator's, which no proxy can reach."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
