"""The tokens of a sentence or of a printed attribute, in one spelling."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_SPELLINGS = str.maketrans(
    {
        "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-", "−": "-",
        "’": "'", "‘": "'", "“": '"', "”": '"',
        "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\t": " ", "\n": " ", "\r": " ",
        "µ": "u", "μ": "u", "×": "x",
        "≤": "<=", "≥": ">=",
        **{raised: f"^{number}" for number, raised in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    }
)  # fmt: skip
_TOKEN = re.compile(
    r"(?P<number>[0-9]+(?:[.,][0-9]+)*|(?<![0-9])\.[0-9]+)"
    r"|(?P<word>[^\W\d_]+(?:'[^\W\d_]+)*)"
    r"|(?P<mark><=|>=|[^\s])"
)
_FAMILIAR_MARKS = frozenset(".,;:()-/%'\"<>=+°&[]^*")
_UNWANTED = {"Cc", "Cf", "Co", "Cn", "Cs"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SentenceToken:
    """One number, word or mark, in lower case."""

    text: str
    is_number: bool = False
    is_word: bool = False
    spaced: bool = True
    """Whether the token begins the text or follows a space."""


def one_spelling(text: str) -> str:
    """Return the text with one spelling of dashes, quotes, signs and spaces."""
    return unicodedata.normalize("NFC", text).translate(_SPELLINGS)


# The names, units and values of a record are few; each is asked for many times.
@lru_cache(maxsize=8_192)
def tokens_of(text: str) -> tuple[SentenceToken, ...]:
    """Return the tokens of a text."""
    spelled = one_spelling(text)
    return tuple(
        SentenceToken(
            text=m[0].casefold(),
            is_number=m.lastgroup == "number",
            is_word=m.lastgroup == "word",
            spaced=m.start() == 0 or spelled[m.start() - 1] == " ",
        )
        for m in _TOKEN.finditer(spelled)
    )


def words_of(text: str) -> tuple[str, ...]:
    """Return the words and numbers of a text, without marks."""
    return tuple(t.text for t in tokens_of(text) if t.is_word or t.is_number)


def starts_of(phrases: Iterable[tuple[str, ...]]) -> frozenset[str]:
    """Return the first words of the phrases."""
    return frozenset(phrase[0] for phrase in phrases if phrase)


def has_control_characters(text: str) -> bool:
    """Return whether the text contains invisible characters."""
    return any(unicodedata.category(c) in _UNWANTED and c not in "\n\t\r" for c in text)


def is_familiar(token: SentenceToken) -> bool:
    """Return whether a token has only the letters, digits and marks of English prose."""
    if token.is_word or token.is_number:
        return token.text.isascii()
    return token.text in ("<=", ">=") or token.text in _FAMILIAR_MARKS
