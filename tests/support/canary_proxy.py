"""A proxy before the emulator that writes canaries into every text field of replies and errors.

The proxy plays its plan: pairs of a variant and a style of canary. A canary names its field, so
that a search in a sink tells which field got through.
"""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock, Thread
from typing import Any, get_args, get_origin
from urllib.parse import urlsplit

from google.genai import types as wire
from pydantic import BaseModel

STYLES: tuple[Callable[[str], str], ...] = (
    lambda name: f"Zyxquill {name}",
    lambda name: f"ZYXQUILL_{name.upper()}",
    lambda name: f"zyxquill-{name}",
    lambda name: f"zyxquill.{name}/per_day",
    lambda name: f"\x1b[31mzyxquill\u202e{name}\x07\x00",
    lambda name: f"zyxquill {name} " * 2_000,
)
"""The canary of a field: a sentence, an enum name, an id, a quota, control characters, a page."""
CANARY = re.compile("zyxquill", re.IGNORECASE)
_DEPTH = 3


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to answer: an upstream reply that is changed, or an error of the proxy's own."""

    name: str
    status: int = 200
    change: Callable[[dict[str, Any], Callable[[str], str]], None] | None = None
    """Changes the envelope of the upstream reply in place; None: the proxy answers by itself."""
    body: Callable[[Callable[[str], str]], object] | None = None
    """Returns the body; text is sent as it is."""

    @property
    def names_quota(self) -> bool:
        """Whether the error names a quota."""
        return self.body is not None and "quotaId" in json.dumps(self.body(str))


def filled(model: type[BaseModel], canary: Callable[[str], str], depth: int = 0) -> dict[str, Any]:
    """Return an object of the wire format with a canary in each text field of an SDK model."""
    made: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        alias = info.alias or name
        value = _value(info.annotation, alias, canary, depth)
        if value is not None:
            made[alias] = value
    return {**made, "unknownField": canary("unknownField"), canary("key"): {"a": canary("nested")}}


def _value(annotation: Any, name: str, canary: Callable[[str], str], depth: int) -> object:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        kinds = [each for each in arguments if each is not type(None)]
        return _value(kinds[0], name, canary, depth)
    if origin is list:
        item = _value(arguments[0], name, canary, depth)
        return None if item is None else [item]
    if origin is dict:
        return {canary(f"{name}-key"): canary(name)}
    if not isinstance(annotation, type):
        return canary(name)
    if issubclass(annotation, BaseModel):
        return filled(annotation, canary, depth + 1) if depth < _DEPTH else None
    if issubclass(annotation, bool):
        return False
    if issubclass(annotation, (int, float)) and not issubclass(annotation, Enum):
        return None
    return canary(name)


def odd_reply(envelope: dict[str, Any], canary: Callable[[str], str]) -> None:
    """Add canaries to every field beside the answer, and to fields of the answer."""
    usage, candidate = envelope["usageMetadata"], envelope["candidates"][0]
    answer = json.loads(candidate["content"]["parts"][0]["text"])
    for item in (*answer.get("entities", ()), *answer.get("encounters", ())):
        item |= {"rule": canary("rule"), "start": canary("start"), "extra": canary("extra")}
    answer |= {"language": canary("language"), "items_rejected": canary("rejected")}
    if answer.get("entities"):
        first = answer["entities"][0]
        texts = dict.fromkeys(
            ("value", "unit", "reference_range", "dose", "strength", "route", "frequency", "name",
             "abnormal_flag", "reaction", "previous_dose", "date", "quote"), canary("entity")[:400],
        )  # fmt: skip
        answer["entities"] += [first | texts]
        answer["entities"] += [first | {"category": canary("category"), "zone": canary("zone")}][
            : len(answer["entities"]) // 6
        ]
    made = filled(wire.GenerateContentResponse, canary)
    thought = {"text": canary("thought"), "thought": True}
    made["candidates"] = [
        {
            **made["candidates"][0],
            "finishReason": "STOP",
            "content": {"role": canary("role"), "parts": [thought, {"text": json.dumps(answer)}]},
        }
    ]
    made.pop("promptFeedback")
    made["usageMetadata"] = {**made["usageMetadata"], **usage}
    envelope.clear()
    envelope.update(made)


def odd_finish(envelope: dict[str, Any], canary: Callable[[str], str]) -> None:
    """End a reply with an unknown reason."""
    odd_reply(envelope, canary)
    envelope["candidates"][0] |= {"finishReason": canary("finishReason")}


def odd_block(envelope: dict[str, Any], canary: Callable[[str], str]) -> None:
    """Block the prompt for an unknown reason."""
    feedback = filled(wire.GenerateContentResponse, canary)["promptFeedback"]
    envelope.clear()
    envelope["promptFeedback"] = feedback


def _answering(text: Callable[[Callable[[str], str]], object]) -> Any:
    def change(envelope: dict[str, Any], canary: Callable[[str], str]) -> None:
        said = text(canary)
        parts = [{"text": said if isinstance(said, str) else json.dumps(said)}]
        envelope["candidates"][0]["content"]["parts"] = parts

    return change


def error_body(canary: Callable[[str], str]) -> dict[str, Any]:
    """Return an error with a canary in every text field of every detail."""
    rpc = "type.googleapis.com/google.rpc."
    violation = {
        name: canary(name) for name in ("quotaMetric", "quotaId", "subject", "description")
    }
    links = [{"description": canary("link"), "url": canary("url")}]
    details = [
        {
            "@type": rpc + "ErrorInfo",
            "reason": canary("reason"),
            "domain": canary("domain"),
            "metadata": {
                canary("metadataKey"): canary("metadata"),
                "quota_id": canary("quota_id"),
                "quota_limit": canary("quota_limit"),
            },
        },
        {
            "@type": rpc + "QuotaFailure",
            "violations": [
                {**violation, "quotaDimensions": {canary("dimension"): canary("value")}},
                canary("violation"),
            ],
        },
        {"@type": rpc + "Help", "links": links},
        {"@type": rpc + "RetryInfo", "retryDelay": canary("retryDelay")},
        {"@type": rpc + "LocalizedMessage", "locale": canary("locale"), "message": canary("local")},
        {"@type": rpc + "BadRequest", "fieldViolations": [violation]},
        {"@type": rpc + "DebugInfo", "stackEntries": [canary("stack")], "detail": canary("debug")},
        {"@type": canary("type"), "unknown": [[[{"deep": canary("deep")}]]]},
        canary("detail"),
    ]
    error = {"code": 0, "message": canary("message"), "status": canary("status")}
    return {"error": {**error, "details": details, "errors": [violation]}, canary("top"): 1}


def _html(canary: Callable[[str], str]) -> str:
    return f"<html><title>{canary('title')}</title>{canary('page')}</html>"


RETRIED = (
    *(
        Variant(name=f"error {status}", status=status, body=error_body)
        for status in (429, 500, 503)
    ),
    Variant(name="error in a 200", body=error_body),
    Variant(name="a page", status=502, body=_html),
    Variant(name="an odd finish", change=odd_finish),
    Variant(name="no JSON", change=_answering(lambda canary: canary("answer"))),
    Variant(
        name="another shape",
        change=_answering(lambda c: {"item_token": c("t"), "entities": c("e"), c("k"): 1}),
    ),
    Variant(
        name="bad items",
        change=_answering(
            lambda c: {"entities": [{c("k"): c("v"), "category": c("category"), "page": c("p")}]}
        ),
    ),
    Variant(name="not even HTTP JSON", body=lambda canary: canary("body")),
    Variant(name="flat", status=500, body=lambda c: {"message": c("m"), "status": c("s")}),
    Variant(name="a list", status=500, body=lambda c: [error_body(c)]),
)
"""Answers after which the call is repeated."""
FATAL = (
    Variant(name="error 400", status=400, body=error_body),
    Variant(name="error 404", status=404, body=error_body),
    Variant(name="blocked", change=odd_block),
)
"""Answers that end their batch."""
PARKS = (
    Variant(name="error 403", status=403, body=error_body),
    Variant(name="error 402", status=402, body=error_body),
)
"""Answers that park their job and open an incident."""


@dataclass(kw_only=True)
class CanaryProxy:
    """The running proxy. `plan` is what the next calls meet, in turn; then replies are odd."""

    url: str = ""
    plan: list[tuple[Variant, int]] = field(default_factory=list)
    met: set[tuple[str, int]] = field(default_factory=set)
    """The variants that were sent, with the number of the canary's style."""
    _numbers: Iterator[int] = field(default_factory=count, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def next(self) -> tuple[Variant, Callable[[str], str]]:
        """Return what the next call meets, and the style of its canaries."""
        with self._lock:
            odd = (_ODD, next(self._numbers) % len(STYLES))
            variant, style = self.plan.pop(0) if self.plan else odd
            self.met.add((variant.name, style))
            return variant, STYLES[style]


_ODD = Variant(name="an odd reply", change=odd_reply)


@contextmanager
def canary_proxy(upstream: str) -> Iterator[CanaryProxy]:
    """Run the proxy before an emulator."""
    made = CanaryProxy()
    handler = type("Handler", (_CanaryHandler,), {"upstream": upstream, "made": made})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


class _CanaryHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: str
    made: CanaryProxy

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        variant, canary = self.made.next()
        said: object
        if variant.change is not None:
            said = self._asked(body)
            if "candidates" in said:
                variant.change(said, canary)
        else:
            said = variant.body(canary) if variant.body else ""
        if isinstance(said, dict) and isinstance(said.get("error"), dict):
            said["error"]["code"] = variant.status if variant.status != 200 else 503
        self._send(variant, canary, said if isinstance(said, str) else json.dumps(said))

    def _asked(self, body: bytes) -> dict[str, Any]:
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in ("host", "content-length", "connection", "accept-encoding")
        }
        upstream = HTTPConnection(urlsplit(self.upstream).netloc, timeout=120)
        upstream.request("POST", self.path, body, headers)
        said: dict[str, Any] = json.loads(upstream.getresponse().read())
        upstream.close()
        return said

    def _send(self, variant: Variant, canary: Callable[[str], str], text: str) -> None:
        def plain(name: str) -> str:
            # A header holds one line of Latin-1 without control characters.
            return "".join(c for c in canary(name)[:900] if c.isprintable() and c.isascii())

        sent = text.encode("utf-8", "replace")
        self.send_response(variant.status, plain("phrase"))
        is_page = text.startswith("<")
        self.send_header("content-type", "text/html" if is_page else "application/json")
        self.send_header("content-length", str(len(sent)))
        for name in ("retry-after", "x-request-id", "server-timing", "www-authenticate", "warning"):
            self.send_header(name, plain(name))
        self.send_header("set-cookie", f"c={plain('cookie').replace(' ', '_')}")
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        return
