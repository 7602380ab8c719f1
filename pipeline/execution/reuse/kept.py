"""The form in which replies are kept: the provider's own reply, before any rule has judged it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel


def compressed(reply: BaseModel) -> bytes:
    """Return a reply as compressed JSON."""
    text = json.dumps(reply.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
    return zlib.compress(text.encode("utf-8", "replace"))


def packed(parts: Mapping[str, bytes]) -> bytes:
    """Return the replies to the splits of one item as one compressed JSON object."""
    replies = {name: json.loads(zlib.decompress(kept)) for name, kept in parts.items()}
    return zlib.compress(json.dumps(replies, ensure_ascii=False).encode("utf-8", "replace"))


def unpacked(kept: bytes) -> dict[str, dict[str, Any]]:
    """Return the replies of `packed` by the name of their split."""
    replies: dict[str, dict[str, Any]] = json.loads(zlib.decompress(kept))
    return replies
