"""A small HTTP/1.1 server on one event loop, with keep-alive and one write per reply.

One loop keeps hundreds of waiting replies on exact timers; one thread per reply would blur the
timing. The server can also fail like a real service: hang, reset, cut off, trickle.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus

logger = logging.getLogger(__name__)

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 128 * 1024 * 1024


class Delivery(StrEnum):
    """How a reply is sent."""

    WHOLE = "whole"
    HANG = "hang"
    """Nothing is sent; the connection stays open until the client closes it."""
    RESET = "reset"
    """Nothing is sent; the connection is reset."""
    CUT = "cut"
    """Half of the body is sent, then the connection is closed."""
    TRICKLE = "trickle"
    """A few bytes at a time are sent, `pace_s` apart."""


@dataclass(frozen=True, kw_only=True)
class HttpRequest:
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class HttpAnswer:
    """A reply and its delivery. `sent` is told whether the client was still connected."""

    status: int
    body: bytes = field(default=b"", repr=False)
    content_type: str = "application/json; charset=UTF-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    delivery: Delivery = Delivery.WHOLE
    pace_s: float = 0.5
    sent: Callable[[bool], None] = lambda delivered: None


Handler = Callable[[HttpRequest], Awaitable[HttpAnswer]]


async def listen(handler: Handler, port: int) -> asyncio.Server:
    """Listen on the loopback interface only; port 0 picks a free port."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: _Connection(handler), "127.0.0.1", port, backlog=512)


class _Connection(asyncio.Protocol):
    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._buffer = bytearray()
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        self._gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - narrows for the type checker
        self._transport = transport
        raw: socket.socket = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next_request()

    def _next_request(self) -> None:
        if self._task is not None or self._gone:
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        try:
            method, path, headers = _read_head(bytes(self._buffer[:end]))
            length = int(headers.get("content-length", "0"))
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        if "transfer-encoding" in headers or not 0 <= length <= MAX_BODY_BYTES:
            self._refuse(HTTPStatus.LENGTH_REQUIRED)
            return
        start = end + 4
        if len(self._buffer) < start + length:
            return
        body = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        request = HttpRequest(method=method, path=path, headers=headers, body=body)
        self._task = asyncio.get_running_loop().create_task(self._serve(request))
        self._task.add_done_callback(self._ended)

    async def _serve(self, request: HttpRequest) -> None:
        answer = await self._handler(request)
        await self._deliver(answer)
        self._task = None
        if request.headers.get("connection", "").lower() == "close":
            self._transport.close()
        self._next_request()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Send 500 after an error of the emulator itself, so that no client waits for a reply."""
        if not task.cancelled() and (exc := task.exception()) is not None:
            logger.error("the emulator itself failed: %s", type(exc).__name__)
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR)

    async def _deliver(self, answer: HttpAnswer) -> None:
        """Send a reply.

        `sent` runs first, so that a client that has read the reply finds it in the log.
        """
        whole = _head(answer) + answer.body
        if self._gone or answer.delivery is Delivery.HANG:
            answer.sent(False)
            return
        match answer.delivery:
            case Delivery.TRICKLE:
                await self._trickle(whole, answer)
            case Delivery.RESET:
                answer.sent(False)
                raw: socket.socket = self._transport.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._transport.abort()
            case Delivery.CUT:
                answer.sent(False)
                self._transport.write(whole[: len(whole) - max(1, len(answer.body) // 2)])
                self._transport.close()
            case _:
                answer.sent(True)
                self._transport.write(whole)

    async def _trickle(self, whole: bytes, answer: HttpAnswer) -> None:
        step = len(whole) // 20 + 1
        for at in range(0, len(whole), step):
            if self._gone:
                answer.sent(False)
                return
            if at + step >= len(whole):
                answer.sent(True)
            self._transport.write(whole[at : at + step])
            await asyncio.sleep(answer.pace_s)

    def _refuse(self, status: HTTPStatus) -> None:
        self._transport.write(_head(HttpAnswer(status=status)))
        self._transport.close()


def _read_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _version = first.split(" ")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return method, path, headers


def _head(answer: HttpAnswer) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} {_phrase(answer.status)}",
        f"Content-Type: {answer.content_type}",
        "Vary: Origin, X-Origin, Referer",
        "Server: scaffolding on HTTPServer2",
        *(f"{name}: {value}" for name, value in answer.headers.items()),
        f"Content-Length: {len(answer.body)}",
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Client Closed Request" if status == 499 else "Unknown"
