"""Words that are struck through: the page's text prints them between `~~` and `~~`."""

from __future__ import annotations

import re

_STRUCK = re.compile(r"~~[^~]*~~")


def without_struck(text: str) -> str:
    """Return `text` with blanks in place of struck-through words; the length stays."""
    if "~~" not in text:
        return text
    return _STRUCK.sub(lambda m: re.sub(r"[^\t\n]", " ", m.group()), text)
