"""A collector of traces and an error tracker on this machine, in one HTTP server."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

HOST = "127.0.0.1"
TRACES = "/v1/traces"
ENVELOPE = "/api/7/envelope/"


@dataclass(frozen=True, kw_only=True)
class Posted:
    """One request; the body is unpacked."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def everything(self) -> bytes:
        """The request, for a search."""
        return f"{self.path} {self.headers} ".encode() + self.body


@dataclass(frozen=True, kw_only=True)
class ReceivedSpan:
    """A span as the collector got it."""

    trace: UUID
    id: bytes
    parent: bytes
    name: str
    began_ns: int
    ended_ns: int
    has_failed: bool
    attributes: dict[str, Any]


@dataclass
class TelemetryReceiver:
    """What arrived so far."""

    port: int = 0
    posted: list[Posted] = field(default_factory=list)
    status: int = 200
    hangs: bool = False
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """The endpoint of the collector."""
        return f"http://{HOST}:{self.port}"

    @property
    def dsn(self) -> str:
        """The address of the tracker's project."""
        return f"http://public@{HOST}:{self.port}/7"

    def posted_to(self, path: str) -> list[Posted]:
        """Return the requests to a path."""
        return [each for each in self.posted if each.path == path]

    def spans(self) -> list[ReceivedSpan]:
        """Return the spans, in the order of arrival."""
        found = []
        for each in self.posted_to(TRACES):
            message = ExportTraceServiceRequest.FromString(each.body)
            for resource in message.resource_spans:
                for scope in resource.scope_spans:
                    found += [_span(span) for span in scope.spans]
        return found

    def events(self) -> list[list[Any]]:
        """Return the envelopes: the header of each, then header and payload of each item."""
        return [
            [json.loads(line) for line in each.body.splitlines() if line]
            for each in self.posted_to(ENVELOPE)
        ]


def _span(span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        trace=UUID(bytes=span.trace_id),
        id=span.span_id,
        parent=span.parent_span_id,
        name=span.name,
        began_ns=span.start_time_unix_nano,
        ended_ns=span.end_time_unix_nano,
        has_failed=span.status.code == 2,
        attributes={
            each.key: getattr(each.value, each.value.WhichOneof("value"))
            for each in span.attributes
        },
    )


@contextmanager
def receiving_telemetry() -> Iterator[TelemetryReceiver]:
    """Run a receiver."""
    receiver = TelemetryReceiver()

    class Telemetry(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if receiver.hangs:
                receiver.over.wait()
                return
            packed = self.headers.get("Content-Encoding", "")
            if packed == "gzip":
                body = gzip.decompress(body)
            receiver.posted.append(
                Posted(path=self.path, headers=dict(self.headers.items()), body=body)
            )
            self.send_response(receiver.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Print nothing."""

    with ThreadingHTTPServer((HOST, 0), Telemetry) as server:
        server.daemon_threads = True
        receiver.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.over.set()
            server.shutdown()
            thread.join()
