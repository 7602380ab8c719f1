"""The tokens of RTF: groups, control words, and text. No recursion, so nesting costs no stack.

striprtf 0.0.35 was not used: `rtf_to_text` gives hidden, deleted and struck text like other text
(tried), so a deleted drug would be read as taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    rb"(?P<open>\{)|(?P<close>\})"
    rb"|\\(?P<word>[a-zA-Z]{1,40})(?P<number>-?\d{1,10})? ?"
    rb"|\\'(?P<hex>[0-9a-fA-F]{2})"
    rb"|\\(?P<symbol>[^a-zA-Z])"
    rb"|(?P<text>[^\\{}\r\n]+)|(?P<skip>[\r\n]+)"
    rb"|(?P<broken>\\)",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RtfToken:
    """One token; `kind` is open, close, word, symbol, hex or text."""

    kind: str
    raw: bytes
    number: int | None = None


def tokens_of(raw: bytes) -> Iterator[RtfToken]:
    """Yield the tokens. The bytes of `\\binN` are skipped."""
    at, end = 0, len(raw)
    while at < end:
        match = _TOKEN.match(raw, at)
        if match is None:
            return
        at = match.end()
        kind = match.lastgroup
        if kind == "number":
            kind = "word"
        if kind in {None, "skip", "broken"}:
            continue
        if kind == "word":
            number = match["number"]
            value = int(number) if number else None
            if match["word"] == b"bin":
                at += max(0, value or 0)
                continue
            yield RtfToken(kind="word", raw=match["word"], number=value)
        elif kind is not None:
            yield RtfToken(kind=kind, raw=match[kind])
