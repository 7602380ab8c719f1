"""How clinicians write concepts: `phrases.txt`, and the abbreviations of the local engine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pipeline.codes.search.words import FUNCTION_WORDS, plain, tokens
from pipeline.providers.local.names.word_lists import rows

Form = tuple[str, ...]
Alternatives = tuple[Form, ...]

_FILE = Path(__file__).with_name("phrases.txt")
_ORDINARY = FUNCTION_WORDS | {"all", "add", "led", "mom", "us"}
"""Words that are abbreviations only in capitals, which a query no longer has."""
_GROUPS = ("condition", "symptom"), ("lab", "vital"), ("medication", "allergy")


@cache
def phrases(category: str) -> dict[Form, Alternatives]:
    """Return form → alternatives, as tokens, for one category of entities."""
    group = next((group for group in _GROUPS if category in group), (category,))
    own = dict(_own(category))
    found: dict[Form, Alternatives] = {}
    for row in rows("abbreviations.txt"):
        forms, of_category, meaning, *_ = (part.strip() for part in row.split("|"))
        if of_category not in group:
            continue
        for form in forms.split():
            key = _tokens(form.replace("_", " "))
            # A meaning there can be coarser than the form: "CKD stage 3" is a kidney disease. So a
            # form of several words is left to the own forms of its words.
            if key[0] not in _ORDINARY and not (len(key) > 1 and any((k,) in own for k in key)):
                found[key] = (*found.get(key, ()), _tokens(meaning))
    return found | own


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
