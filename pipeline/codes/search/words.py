"""Words of a term or a query: folded, negated where the text says so, without function words.

An indexed word has a prefix: `-` is negated ("without ascites"), `?` is optional (in brackets), `=`
joins the two words before it (`gastro`, `esophageal`, `=gastroesophageal`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_WORDS = 40
"""Words of a query that the search reads; longer texts name no single concept."""

NEGATED, OPTIONAL, JOINED = "-", "?", "="

RESIDUAL = frozenset(
    {"unspecified", "nos", "unsp", "other", "specified", "nec", "elsewhere", "classified"}
)
"""Words with which a system marks its codes for everything else."""

_FUNCTION_WORDS = """
a an and are as at be but by d/t due during for from has have her his in into is it its of on or
patient per pt than that the their then to was with w without w/o no not using via
mention current currently known s/p
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words without a meaning of their own."""

_NEGATORS = frozenset({"no", "not", "without", "w/o", "wo", "neither", "nor"})
_ENDS_NEGATION = frozenset({",", ";", "with", "w", "due", "in", "of", "but", "from"})
_ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5"}
_COUNTED = frozenset({"type", "types", "stage", "class", "grade", "phase", "bipolar", "factor"})
_ORDINALS = {"1st": "first", "2nd": "second", "3rd": "third", "4th": "fourth"}
_MARKS = frozenset("(),;")
_OPENS, _CLOSES = "()"
_TOKEN = re.compile(r"w/o\b|s/p\b|d/t\b|[^\W_]+(?:-[^\W_]+)*|[(),;]")
_SPACE = re.compile(r"[^\S ]+")
_PLURAL = re.compile(r"\(e?s\)")
_WITH_NUMBER = re.compile(r"([^\W\d_]{4,})(\d{1,2})")
_PHRASES = (("not elsewhere classified", "nec"), ("not otherwise specified", "nos"))


@dataclass(frozen=True, slots=True)
class SearchWord:
    """One word of a text."""

    text: str
    is_negated: bool = False
    is_optional: bool = False
    is_joined: bool = False

    @property
    def prefix(self) -> str:
        if self.is_joined:
            return JOINED
        return NEGATED if self.is_negated else OPTIONAL if self.is_optional else ""


def plain(text: str) -> str:
    """Return a text in lower case, without accents, possessives and characters of control."""
    text = text.replace("\x00", " ")
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in text if not unicodedata.combining(c))
    text = _PLURAL.sub("", text.lower())
    text = text.replace("’", "'").replace("'s ", " ").removesuffix("'s")
    return _SPACE.sub(" ", text.replace("µ", "u").replace("'", ""))


def tokens(text: str) -> list[str]:
    """Return the tokens of a plain text: words, words with hyphens, and the marks `(),;`."""
    for phrase, short in _PHRASES:
        text = text.replace(phrase, short)
    return _TOKEN.findall(text)


def words(text: str) -> list[SearchWord]:
    """Return the words of a text that carry meaning."""
    return list(words_of_tokens(tokens(plain(text))))


def words_of_tokens(found: list[str]) -> Iterator[SearchWord]:
    """Yield the words of tokens that carry meaning."""
    depth = negated_at = 0
    negates = False
    before = ""
    for token in found:
        if token in _NEGATORS:
            negates, negated_at = True, depth
        elif token in _ENDS_NEGATION:
            negates = False
        elif token == _OPENS:
            depth += 1
        elif token == _CLOSES and depth:
            negates = negates and negated_at < depth
            depth -= 1
        if token in FUNCTION_WORDS or token in _NEGATORS or token in _MARKS:
            before = token
            continue
        if token.isalpha() and token not in _ROMAN:
            yield _word(token, negates, depth > 0)
            before = token
            continue
        parts = [_one(part, before) for whole in token.split("-") for part in _split_number(whole)]
        for part in parts:
            if part and part not in FUNCTION_WORDS:
                yield _word(part, negates, depth > 0)
        if len(parts) == 2:
            yield _word("".join(parts), negates, depth > 0, True)
        before = token


@lru_cache(maxsize=200_000)
def _word(text: str, is_negated: bool, is_optional: bool, is_joined: bool = False) -> SearchWord:
    """Return the one object of a word: a large system repeats each word many times."""
    return SearchWord(text, is_negated, is_optional, is_joined)


def _split_number(token: str) -> tuple[str, ...]:
    match = _WITH_NUMBER.fullmatch(token)
    return match.groups() if match else (token,)


def _one(token: str, before: str) -> str:
    if before in _COUNTED and token in _ROMAN:
        return _ROMAN[token]
    return _ORDINALS.get(token, token)
