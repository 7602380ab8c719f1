"""The Gemini provider; the only importer of google.genai.

May import `base`, `classify`, `reading` and `wire_schema`. One client per process, made at its
first call and never carried across a fork. No retries, no continuation, nothing parsed by the SDK:
one `generate` is one billed request, and whatever comes back is read here.
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
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2
from google import genai
from google.genai import types as wire

from pipeline.core.errors import CallDetails, CallError, ErrorCode
from pipeline.providers.base import Reply, Request
from pipeline.providers.error_mapping import Border, unreadable
from pipeline.providers.json_schema import wire_schema
from pipeline.providers.reply_parsing import read_reply
from pipeline.providers.schemas import DiscoveryReply, EntityReply

API_VERSION = "v1beta"
"""Has the `-latest` aliases and the newest fields, which `v1` lacks."""
SHORTEST_TIMEOUT_S = 10.0
"""The service answers 400 to a shorter X-Server-Timeout."""
MAX_CONNECTIONS = 128
"""More than a step's call threads with as many written off; the SDK's own 100 ran out at 300."""
KEEPALIVE_S = 30.0
MAX_INLINE_BYTES = 50 * 1024 * 1024
"""Of the documents and images that one request may carry inline (the API's documentation)."""

THINKING: tuple[tuple[str, wire.ThinkingConfig], ...] = (
    ("gemini-2.5-pro", wire.ThinkingConfig(thinking_budget=128)),
    ("gemini-2.5", wire.ThinkingConfig(thinking_budget=0)),
    ("gemini-3-pro", wire.ThinkingConfig(thinking_level=wire.ThinkingLevel.LOW)),
    ("gemini-3.1-pro", wire.ThinkingConfig(thinking_level=wire.ThinkingLevel.LOW)),
    ("", wire.ThinkingConfig(thinking_level=wire.ThinkingLevel.MINIMAL)),
)
"""The least thinking that a family of models accepts; the first prefix that fits decides."""


class GeminiProvider:
    """Answers requests with Gemini; safe for many threads and for processes forked later."""

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
        """Make one request and read its answer.

        Raises `CallError`. Waits for max(10 s, `deadline_s`), which holds for each read and for the
        whole body: the service works on for 10 s at least, and a reply that comes too late for its
        caller, who has written it off, still says what it cost.
        """
        began = time.monotonic()
        border = Border(lambda: time.monotonic() - began)
        _in_thread.on_send = request.on_send
        try:
            with border:
                return read_reply(self._ask(request), request)
        finally:
            for attachment in request.attachments:
                attachment.release()
        raise border.error

    def close(self) -> None:
        """Close this process's client."""
        with self._own_lock():
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _ask(self, request: Request) -> str:
        wait_s = max(self._least_wait_s, request.deadline_s)
        server_s = math.ceil(max(SHORTEST_TIMEOUT_S, wait_s))
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
                # The body as it came: the SDK reads blocked, cut and fenced replies as None.
                should_return_http_response=True,
                http_options=wire.HttpOptions(
                    timeout=math.ceil(wait_s * 1000),
                    headers={"X-Server-Timeout": str(server_s)},
                ),
            ),
        )
        if reply.sdk_http_response is None:
            raise CallError(code=ErrorCode.EMPTY_RESPONSE, details=CallDetails(http_status=200))
        return reply.sdk_http_response.body or ""

    def _contents(self, request: Request) -> wire.Content:
        size = sum(len(attachment.content) for attachment in request.attachments)
        if size > self._max_inline_bytes:
            raise CallError(
                f"the attached pages have {size:,} bytes, {self._max_inline_bytes:,} are allowed",
                code=ErrorCode.CONTEXT_TOO_LARGE,
            )
        attached = [
            wire.Part.from_bytes(data=attachment.content, mime_type=attachment.media_type)
            for attachment in request.attachments
        ]
        return wire.Content(role="user", parts=[*attached, wire.Part(text=request.prompt)])

    def _own_client(self) -> genai.Client:
        """Return this process's client; one made before a fork would swap replies (measured)."""
        with self._own_lock():
            if self._client is None:
                self._client = self._new_client()
            return self._client

    def _own_lock(self) -> threading.Lock:
        pid = os.getpid()
        if self._pid != pid:
            # The lock may have been held by a thread that did not survive the fork. Right after
            # it only one thread lives, and a second one here would at worst make a spare client.
            self._lock = threading.Lock()
            if self._client is not None:
                # Kept, since closing it would end TLS sessions that are the parent's.
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
                    "trust_env": not _is_loopback(self._base_url),
                    "transport": self._transport,
                    "verify": _tls(),
                },
                # The SDK makes its asynchronous clients too; `ssl` is what it gives to aiohttp.
                async_client_args={"verify": _tls(), "ssl": _tls()},
            ),
        )


def warm_up() -> None:
    """Do everything once that a first call would do, in memory; leaves no client behind.

    A first call costs 0.2 s of CPU (measured): the SDK builds its models when they are first used,
    and TLS loads its certificates. A process that forks workers pays that once, before the fork.
    """
    provider = GeminiProvider(
        api_key="none",
        model="none",
        base_url="http://127.0.0.1:1",
        transport=httpx2.MockTransport(lambda request: httpx2.Response(200, json={})),
    )
    for schema in (DiscoveryReply, EntityReply):
        with contextlib.suppress(CallError):
            provider.generate(
                Request(
                    item_token="",
                    prompt="",
                    schema=schema,
                    max_output_tokens=1,
                    deadline_s=SHORTEST_TIMEOUT_S,
                    prompt_version="",
                    estimated_input_tokens=0,
                )
            )
    provider.close()


@cache
def _tls() -> ssl.SSLContext:
    # As the SDK would make it for each client, but once, and safe to carry over a fork: a context
    # holds certificates, not connections.
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or folder:
        return ssl.create_default_context(cafile=file, capath=folder)
    return httpx2.create_ssl_context()


class _InThread(threading.local):
    """What the request of this thread's call has asked for; the SDK takes nothing along."""

    on_send: Callable[[], object] = staticmethod(lambda: None)


_in_thread = _InThread()


class _BoundedBody(httpx2.SyncByteStream):
    """A body that must end by `due`: the client's own timeout is for each read, not for all."""

    def __init__(self, inner: httpx2.SyncByteStream, due: float) -> None:
        self._inner = inner
        self._due = due

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._inner:
            if time.monotonic() > self._due:
                raise httpx2.ReadTimeout("the body took longer than the call may")
            yield chunk

    def close(self) -> None:
        self._inner.close()


def _note_start(request: httpx2.Request) -> None:
    request.extensions["medproc_start"] = time.monotonic()
    _in_thread.on_send()


def _bound_body(response: httpx2.Response) -> None:
    extensions = response.request.extensions
    limit: Any = extensions.get("timeout", {}).get("read")
    if limit is not None and isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _BoundedBody(response.stream, extensions["medproc_start"] + limit)


def _keep_status(response: httpx2.Response) -> None:
    """Raise here what the SDK loses: an error page that breaks its decoder hides the status."""
    if response.status_code == httpx2.codes.OK:
        return
    try:
        response.read()
        response.json()
    except json.JSONDecodeError:
        # What the SDK expects of a gateway: it keeps text and status.
        return
    except (ValueError, RecursionError, httpx2.DecodingError):
        error = unreadable(response.status_code, response.headers.get("retry-after"))
    else:
        return
    raise error


def _is_loopback(url: str) -> bool:
    """Tell whether `url` is the emulator's, which no proxy can reach."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
