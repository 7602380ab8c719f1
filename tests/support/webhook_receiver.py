"""A receiver of webhooks on this machine: answers as told, and keeps what it got."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.test import override_settings

HOST = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class ToldAnswer:
    """One answer of the receiver."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False
    """Send the head of the answer byte by byte, and never its end."""


@dataclass(frozen=True, kw_only=True)
class ReceivedHook:
    """One request to the receiver."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        """The body as JSON."""
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class WebhookReceiver:
    """The address, the requests so far, and the answers to come; after them, each answer is 200."""

    port: int = 0
    got: list[ReceivedHook] = field(default_factory=list)
    answers: list[ToldAnswer] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """The address of the receiver."""
        return f"http://{HOST}:{self.port}/hook?key=k"

    @property
    def events(self) -> list[dict[str, Any]]:
        """The bodies so far."""
        return [each.event for each in self.got]


@contextmanager
def receiving(*answers: ToldAnswer) -> Iterator[WebhookReceiver]:
    """Run a receiver whose host the settings allow."""
    receiver = WebhookReceiver(answers=list(answers))

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append(
                ReceivedHook(path=self.path, headers=dict(self.headers.items()), body=body)
            )
            told = receiver.answers.pop(0) if receiver.answers else ToldAnswer()
            if told.hangs:
                while not receiver.over.wait(0.05):
                    self.wfile.write(b"H")
            self.send_response(told.status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Print nothing."""

    with ThreadingHTTPServer((HOST, 0), Hook) as server:
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            with override_settings(WEBHOOK_ALLOWED_HOSTS=[HOST]):
                yield receiver
        finally:
            receiver.over.set()
            server.shutdown()
            thread.join()
