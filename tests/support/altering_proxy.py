"""A proxy before the emulator that changes the entities of replies and remembers the changes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import urlsplit

from django.test import override_settings

from tests.support import records
from tests.support.altered_replies import Item, alter

MARK = 1e-5
"""Each entity gets a confidence of its own, so that its published row can be found."""


@dataclass(kw_only=True)
class Alteration:
    """A changed entity of a reply."""

    kind: str
    before: Item = field(repr=False)
    after: Item = field(repr=False)

    def __str__(self) -> str:
        fields = sorted(self.before.keys() | self.after.keys())
        changed = {
            name: (self.before.get(name), self.after.get(name))
            for name in fields
            if self.before.get(name) != self.after.get(name)
        }
        return f"{self.kind} of a {self.before['category']}: {changed}"


@dataclass(kw_only=True)
class Alterations:
    """What the proxy did, by the confidence that marks the entity."""

    share: float
    seed: int
    done: dict[float, Alteration] = field(default_factory=dict)
    count: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def changed(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Alter a share of a reply's entities. The same reply is always altered alike."""
        items = reply.get("entities")
        if items is None:
            return reply
        told = json.dumps([item["quote"] for item in items], ensure_ascii=False)
        chance = random.Random(f"{self.seed} {told}")
        new = []
        for item in items:
            found = alter(item, items, chance) if chance.random() < self.share else None
            with self._lock:
                self.count += 1
                mark = round(0.4 + self.count * MARK, 5)
                if found is not None:
                    self.done[mark] = Alteration(kind=found[0], before=item, after=found[1])
            new.append({**(found[1] if found else item), "engine_confidence": mark})
        return {**reply, "entities": new}


@contextmanager
def altering_proxy(share: float, seed: int) -> Iterator[Alterations]:
    """Let steps of this process call an emulator through a proxy that alters its replies."""
    with records.through_emulator() as emulator:
        made = Alterations(share=share, seed=seed)
        handler = type("Handler", (_Handler,), {"upstream": emulator.url, "made": made})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}"
            with override_settings(GEMINI_BASE_URL=url):
                yield made
        finally:
            server.shutdown()
            server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: str
    made: Alterations

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in ("host", "content-length", "connection", "accept-encoding")
        }
        upstream = HTTPConnection(urlsplit(self.upstream).netloc, timeout=120)
        upstream.request("POST", self.path, body, headers)
        envelope = json.loads(upstream.getresponse().read())
        upstream.close()
        for candidate in envelope.get("candidates", ()):
            for part in candidate["content"]["parts"]:
                part["text"] = json.dumps(self.made.changed(json.loads(part["text"])))
        sent = json.dumps(envelope).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        return
