"""A patient's identifiers as printed, and their parsed form for comparisons.

Both are PHI. An identity never prints itself, and its parsed form lives no longer than the
identity.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

_TITLES = frozenset(
    ["mr", "mrs", "ms", "miss", "mx", "dr", "prof", "sir", "md", "phd", "rn", "np", "patient", "pt"]
)

_SUFFIXES = {"jr": "jr", "junior": "jr", "sr": "sr", "senior": "sr", "ii": "2", "iii": "3"}
_SUFFIXES |= {"iv": "4", "2nd": "2", "3rd": "3"}

_NOT_A_PERSON = frozenset(["unknown", "unidentified", "anonymous", "redacted", "none", "withheld"])

_CONFUSABLE = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "5": "s", "8": "b"})

_DIGITS = str.maketrans({"O": "0", "Q": "0", "I": "1", "L": "1", "|": "1"})


@dataclass(frozen=True, repr=False)
class ParsedName:
    """The words of a name; PHI, so the class has no repr of its content."""

    given: tuple[str, ...]
    family: tuple[str, ...]
    suffix: str
    ordered: bool
    """A comma showed which part is the family name."""


Reading = tuple[ParsedName | None, date | None, str | None]
"""Name, birth date and number, parsed for comparison."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A patient's identifiers as printed in one place; PHI, so its repr is empty."""

    name: str | None = field(default=None, repr=False)
    birth_date: str | None = field(default=None, repr=False)
    """ISO 8601; any other text counts as not stated."""
    identifier: str | None = field(default=None, repr=False)
    """Medical record number. Each hospital has its own numbers."""

    @property
    def stated(self) -> int:
        """The number of comparable parts (0–3)."""
        return sum(part is not None for part in self.reading)

    @cached_property
    def reading(self) -> Reading:
        """The parsed parts.

        Identities with equal readings compare alike. PHI, kept only with the identity.
        """
        return parse_name(self.name), parse_date(self.birth_date), parse_number(self.identifier)


def parse_name(name: str | None) -> ParsedName | None:
    """Parse a name; return None if the text names no person."""
    if not name:
        return None
    plain = re.sub(r"(?<=[^\W\d_]{2})[._|](?=[^\W\d_])", "", name)
    plain = unicodedata.normalize("NFKD", plain)
    plain = "".join(c for c in plain if not unicodedata.combining(c)).casefold()
    plain = re.sub(r"[’'`.]", lambda m: " " if m[0] == "." else "", plain)
    head, comma, tail = plain.partition(",")
    suffix = ""

    def tokens(text: str) -> list[str]:
        nonlocal suffix
        kept = []
        for token in re.findall(r"[^\W_]+", text):
            if token in _SUFFIXES:
                suffix = _SUFFIXES[token]
            elif token not in _TITLES:
                kept.append(token)
        return kept

    first, second = tokens(head), tokens(tail)
    if any(token in _NOT_A_PERSON for token in first + second) or not any(
        len(token) > 1 for token in first + second
    ):
        return None
    if comma and second:
        return ParsedName(tuple(second), tuple(first), suffix, ordered=True)
    if not first:
        return None
    if len(first) == 1:
        return ParsedName((), (first[0],), suffix, ordered=False)
    return ParsedName(tuple(first[:-1]), (first[-1],), suffix, ordered=False)


def parse_date(text: str | None) -> date | None:
    """Parse an ISO 8601 date; return None for any other text."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


def parse_number(text: str | None) -> str | None:
    """Parse a record number of three or more characters; return None for any other text."""
    if not text:
        return None
    bare = re.sub(r"(?i)^\s*(mrn|mr|id|no|pid)\b[\s.:#]*", "", text)
    bare = re.sub(r"[^0-9A-Za-z|]", "", bare).upper()
    if not any(c.isdigit() for c in bare):
        return None
    bare = bare.translate(_DIGITS).lstrip("0")
    return bare if len(bare) >= 3 else None


def fold(word: str) -> str:
    """Replace letters that a scanner confuses by a common form."""
    return word.casefold().translate(_CONFUSABLE).replace("rn", "m").replace("vv", "w")
