"""Parse a request to the API, and refuse a request that the service would refuse.

Field names may be `camelCase`, `snake_case` or a mixture, as in the service.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gemini_emulator import api_bodies
from gemini_emulator.attachments import Inline, UnreadableError, inline
from gemini_emulator.http import HttpRequest
from pipeline.providers.prompts import estimate_tokens

SHORTEST_DEADLINE_S = 10
INPUT_TOKEN_LIMIT = 1_048_576
LARGEST_INLINE_BYTES = 50 * 1024 * 1024
"""Limit for the decoded documents and images of a request."""


class Refused(Exception):  # noqa: N818 - a reply of the service, not a fault of this program
    """The request is refused before a model sees it."""

    def __init__(self, status: int, name: str, message: str, *details: object) -> None:
        super().__init__(message)
        self.status = status
        self.body = api_bodies.error(status, name, message, details)


@dataclass(frozen=True, kw_only=True)
class Input:
    """The content that a request shows to the model."""

    text: str = field(default="", repr=False)
    inlines: tuple[Inline, ...] = ()
    problem: str = ""
    """Why the service would refuse the content, in the service's own words."""

    def modalities(self, model: str) -> dict[str, int]:
        """Return the input tokens by modality."""
        counts = {"TEXT": estimate_tokens(self.text)}
        for part in self.inlines:
            counts[part.modality] = counts.get(part.modality, 0) + part.tokens(model)
        return counts

    @property
    def pages(self) -> int:
        """The number of pages inside the request."""
        return sum(part.pages for part in self.inlines)


def check_key(request: HttpRequest) -> None:
    """Refuse a caller without a key, or with a key that begins with `invalid`."""
    key = request.headers.get("x-goog-api-key", "")
    if not key:
        raise Refused(
            403,
            "PERMISSION_DENIED",
            "Method doesn't allow unregistered callers (callers without established identity).",
        )
    if key.startswith("invalid"):
        raise Refused(
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            api_bodies.error_info("API_KEY_INVALID"),
        )


def check_deadline(request: HttpRequest) -> None:
    """Refuse a deadline below ten seconds."""
    asked = request.headers.get("x-server-timeout", "")
    if asked.isdigit() and int(asked) < SHORTEST_DEADLINE_S:
        raise Refused(
            400,
            "INVALID_ARGUMENT",
            f"Manually set deadline {asked}s is too short. "
            f"Minimum allowed deadline is {SHORTEST_DEADLINE_S}s.",
        )


def read_json(body: bytes) -> dict[str, Any]:
    """Parse a body that must be an object, and normalize its field names."""
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise Refused(400, "INVALID_ARGUMENT", "Invalid JSON payload received.")
    return plain(content)


def plain(fields: object) -> dict[str, Any]:
    """Return an object's fields with normalized names such as `maxoutputtokens`."""
    if not isinstance(fields, dict):
        return {}
    return {name.replace("_", "").lower(): value for name, value in fields.items()}


def config_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the generation config with normalized names."""
    return plain(content.get("generationconfig"))


def thinks(thinking: object) -> bool:
    """Return whether the request asks for more than the least thinking."""
    asked = plain(thinking)
    level = str(asked.get("thinkinglevel", "")).upper()
    return level not in {"", "MINIMAL"} or bool(asked.get("thinkingbudget"))


def input_of(content: Mapping[str, Any]) -> Input:
    """Return the text and the inline parts of a request, in order."""
    content = plain(content.get("generatecontentrequest")) or content
    texts, inlines, problem = [], [], ""
    for part in _parts(content):
        if isinstance(part.get("text"), str):
            texts.append(part["text"])
        if "inlinedata" in part:
            try:
                inlines.append(_inline(plain(part["inlinedata"])))
            except UnreadableError as exc:
                problem = str(exc)
    if sum(len(part.content) for part in inlines) > LARGEST_INLINE_BYTES:
        problem = f"Request payload size exceeds the limit: {LARGEST_INLINE_BYTES} bytes."
    return Input(text="\n".join(texts), inlines=tuple(inlines), problem=problem)


def check_input(shown: Input, tokens: int) -> None:
    """Refuse unreadable input, and input with too many tokens."""
    if shown.problem:
        raise Refused(400, "INVALID_ARGUMENT", shown.problem)
    if tokens > INPUT_TOKEN_LIMIT:
        raise Refused(
            400,
            "INVALID_ARGUMENT",
            f"The input token count ({tokens}) exceeds the maximum number of tokens allowed "
            f"({INPUT_TOKEN_LIMIT}).",
        )


def _parts(content: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    contents = content.get("contents", content.get("content")) or []
    for one in [content.get("systeminstruction"), *_listed(contents)]:
        for part in _listed(plain(one).get("parts")):
            yield plain(part)


def _listed(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _inline(part: Mapping[str, Any]) -> Inline:
    written = str(part.get("data", "")).replace("-", "+").replace("_", "/")
    try:
        # The client writes URL-safe base64, the documentation shows standard base64; both are
        # accepted.
        content = base64.b64decode(written + "=" * (-len(written) % 4), validate=True)
    except binascii.Error:
        raise UnreadableError("Base64 decoding failed.") from None
    return inline(str(part.get("mimetype", "")), content)
