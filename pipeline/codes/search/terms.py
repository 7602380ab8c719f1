"""The source's own term of a code that fits a text best. This module is pure.

A term of a heading fits a code below the heading if the words that the code adds are known: the
term is then written with these words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from pipeline.codes.search.words import words
from pipeline.providers.local.enrichment.mention_to_code import expanded
from pipeline.providers.local.text.tokens import normal

MAX_ADDED = 4
"""Words that a code may add to its heading; a longer addition is a concept of its own."""
_OPEN = frozenset({"unspecified", "nos", "unsp"})
"""Words with which a code leaves a detail open; a text does not print these words."""
_NOS = re.compile(r"\bNOS$")
_SIDES = frozenset({"left", "right", "bilateral"})


def best_term(text: str, display: str, own: Sequence[str], above: Sequence[str]) -> str:
    """Return the term that fits a text best; empty if no term fits better than the display.

    `own` are the terms of the code, `above` the terms of its heading with the code's addition.
    `Migraine NOS` is better than a display that fits as well and adds `not intractable`: NOS says
    that the code is the one for a text without such a detail (ICD-10-CM Official Guidelines,
    sections I.A.6.b and I.A.12).
    """
    if not own and not above:
        return ""
    wordings = _wordings(text)
    best, found = _fit(wordings, display), ""
    for term in (*own, *above):
        value = _fit(wordings, term)
        is_default = (
            not found
            and value == best
            and _NOS.search(term) is not None
            and _leaves_out_an_absence(display)
        )
        if value > best or is_default:
            best, found = value, term
    return found


def of_heading(display: str, heading: str, terms: Sequence[str]) -> list[str]:
    """Return the terms of a heading as terms of a code below the heading.

    The code's addition is the end of its display, or a side in place of "unspecified".
    """
    if not terms:
        return []
    if display.lower().startswith(heading.lower()):
        added = display[len(heading) :]
    else:
        known = {word.text for word in words(heading)}
        more = [word.text for word in words(display) if word.text not in known]
        if not set(more) <= _SIDES or len(more) > 1:
            return []
        added = "".join(f", {word}" for word in more) or ", unspecified"
    if len(added.split()) > MAX_ADDED:
        return []
    return [f"{term}{added}" for term in terms]


@lru_cache(maxsize=4_096)
def _leaves_out_an_absence(display: str) -> bool:
    """Return whether a display names a detail that is absent, and leaves another detail open."""
    found = words(display)
    return any(word.is_negated for word in found) and not _OPEN.isdisjoint(
        word.text for word in found
    )


@lru_cache(maxsize=4_096)
def _wordings(text: str) -> tuple[frozenset[str], ...]:
    """Return the words of a text, and the words for which its abbreviations stand."""
    return tuple(each for t in (text, expanded(text)) if (each := _words_of(t)[1]))


def _fit(wordings: Sequence[frozenset[str]], text: str) -> float:
    """Return how much a wording and a text share, 0 to 1; optional words cost nothing."""
    needed, known = _words_of(text)
    return max(
        (len(each & known) / (len(each) + 0.5 * len(needed - each)) for each in wordings),
        default=0.0,
    )


@lru_cache(maxsize=50_000)
def _words_of(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words that a text needs, and all words of the text."""
    found = [word for word in words(text) if not word.is_joined and not word.is_negated]
    needed = (w for w in found if not w.is_optional and w.text not in _OPEN)
    return (
        frozenset(normal(word.text) for word in needed),
        frozenset(normal(word.text) for word in found),
    )
