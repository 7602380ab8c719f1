"""How clinicians write concepts: `phrases.txt`, and the abbreviations of the local engine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pipeline.codes.search.words import plain, tokens
from pipeline.providers.local.names.word_lists import rows

Form = tuple[str, ...]
Alternatives = tuple[Form, ...]

_FILE = Path(__file__).with_name("phrases.txt")
_GROUPS = ("condition", "symptom"), ("lab", "vital"), ("medication", "allergy")


@cache
def phrases(category: str) -> dict[Form, Alternatives]:
    """Return form → alternatives, as tokens, for one category of entities."""
    group = next((group for group in _GROUPS if category in group), (category,))
    found: dict[Form, Alternatives] = {}
    for row in rows("abbreviations.txt"):
        forms, of_category, meaning, *_ = (part.strip() for part in row.split("|"))
        if of_category in group:
            for form in forms.split():
                key = _tokens(form.replace("_", " "))
                found[key] = (*found.get(key, ()), _tokens(meaning))
    found.update(_own(category))
    return found


@cache
def longest(category: str) -> int:
    """Return the number of tokens of the longest form."""
    return max(map(len, phrases(category)), default=0)


def _own(category: str) -> Iterator[tuple[Form, Alternatives]]:
    is_wanted = False
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            is_wanted = category in line.strip("[]").split()
        elif is_wanted and line.strip() and not line.startswith("#"):
            forms, _, meanings = line.partition(" = ")
            alternatives = tuple(_tokens(meaning) for meaning in meanings.split("|"))
            for form in forms.split(","):
                yield _tokens(form), alternatives


def _tokens(text: str) -> Form:
    return tuple(tokens(plain(text.strip())))
