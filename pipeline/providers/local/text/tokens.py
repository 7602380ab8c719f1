"""Words of a text with their offsets, and the normal form in which words are compared.

The lexicon and the page use the same `normal`. So the form must be consistent, not linguistically
right (`diabetes` becomes `diabete` on both sides).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+(?:['’](?:s|S))?|[^\w\s]|_")


class Token(NamedTuple):
    """A run of letters and digits, or a single sign, at `text[start:end]`."""

    start: int
    end: int
    text: str
    norm: str


@lru_cache(maxsize=50_000)
def normal(word: str) -> str:
    """Return the normal form of `word`: lower case, no possessive, no plural, no accents."""
    low = word.lower()
    if not low.isascii():
        low = "".join(c for c in unicodedata.normalize("NFD", low) if not unicodedata.combining(c))
    if low.endswith(("'s", "’s")):
        low = low[:-2]
    if len(low) < 4 or not low.endswith("s") or low.endswith(("ss", "us", "is")):
        return low
    if low.endswith("ies") and len(low) > 4:
        return low[:-3] + "y"
    if low.endswith(("sses", "xes", "ches", "shes")):
        return low[:-2]
    return low[:-1]


def tokenize(text: str) -> list[Token]:
    """Split `text` into tokens, in order; white space is dropped."""
    return [
        Token(m.start(), m.end(), word := m.group(), normal(word)) for m in _WORD.finditer(text)
    ]


def first_norm(text: str) -> str | None:
    """Return the normal form of the first token of `text`; None without tokens."""
    m = _WORD.search(text)
    return normal(m.group()) if m else None


def is_word(token: Token) -> bool:
    """Return whether a token is a word or number, not a sign."""
    return token.text[0].isalnum()
