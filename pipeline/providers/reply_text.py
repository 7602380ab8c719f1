"""Find the JSON of a reply: plain, inside a code fence, or between sentences.

Between sentences, only an object with an item token counts, so that a part of a broken reply is
never read as the whole reply. Two different objects are no reply, because neither is certain.
"""

from __future__ import annotations

import json
import re
from typing import Any

_FENCE = re.compile(r"```[a-z]*[ \t]*\r?\n(.*?)\s*```", re.DOTALL | re.IGNORECASE)
_START = re.compile(r'\{\s*"')
_DECODER = json.JSONDecoder()
MAX_FALSE_STARTS = 20
"""Braces that may begin no object. The limit bounds the time that a broken long reply costs."""


class NotJsonError(ValueError):
    """The text contains no JSON that can be the reply. The message never holds the text."""


def content_of(text: str) -> object:
    """Return the content of a reply. Raises NotJsonError."""
    fenced = _FENCE.fullmatch(text.strip())
    whole = _loaded(fenced[1] if fenced else text)
    if whole is not _NOTHING:
        return whole
    found = _objects(text)
    if found and all(each == found[0] for each in found):
        return found[0]
    raise NotJsonError


_NOTHING = object()


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOTHING


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the outermost objects with an item token that a text contains."""
    found, at, false_starts = [], 0, 0
    while (start := _START.search(text, at)) and false_starts < MAX_FALSE_STARTS:
        try:
            content, at = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            at, false_starts = start.end(), false_starts + 1
            continue
        if isinstance(content.get("item_token"), str):
            found.append(content)
    return found
