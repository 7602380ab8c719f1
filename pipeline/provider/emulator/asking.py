"""What a request to the API asks for, and whether the service would take it at all.

May import `bodies` and `http`. Field names are taken as `camelCase`, `snake_case` or a mixture, as
the service takes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipeline.provider.emulator import bodies
from pipeline.provider.emulator.http import HttpRequest

SHORTEST_DEADLINE_S = 10


class Refused(Exception):  # noqa: N818 - it is an answer, not a fault of ours
    """The request is refused before a model sees it."""

    def __init__(self, status: int, name: str, message: str, *details: object) -> None:
        super().__init__(message)
        self.status = status
        self.body = bodies.error(status, name, message, details)


def check_key(request: HttpRequest) -> None:
    """Refuse a caller without a key, or with one that begins with `invalid`."""
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
            bodies.error_info("API_KEY_INVALID"),
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


def read_json(body: bytes) -> Mapping[str, Any]:
    """Read a body that must be an object."""
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise Refused(400, "INVALID_ARGUMENT", "Invalid JSON payload received.")
    return content


def _plain(name: str) -> str:
    """The API takes `maxOutputTokens`, `max_output_tokens` and mixtures."""
    return name.replace("_", "").lower()


def config_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the generation config with plain names."""
    for name, value in content.items():
        if _plain(name) == "generationconfig" and isinstance(value, dict):
            return {_plain(k): v for k, v in value.items()}
    return {}


def thinks(thinking: Mapping[str, Any]) -> bool:
    """Tell whether more than the least thinking is asked for."""
    plain = {_plain(k): v for k, v in thinking.items()}
    level = str(plain.get("thinkinglevel", "")).upper()
    return level not in {"", "MINIMAL"} or bool(plain.get("thinkingbudget"))


def text_of(content: Mapping[str, Any]) -> str:
    """Return the text of all parts, in order."""
    inner = content.get("generateContentRequest", content)
    contents = inner.get("contents") or []
    parts = [p for c in contents if isinstance(c, dict) for p in c.get("parts") or []]
    return "\n".join(p["text"] for p in parts if isinstance(p, dict) and "text" in p)
