"""Find the drug that a long unknown word misspells by one letter (`sevofluorane`).

A short word differs by one letter from too many other words, so only long words are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

from pipeline.providers.local.names.lexicon import lexicon
from pipeline.providers.local.names.word_lists import concepts_of_drugs, words

SHORTEST = 10
"""Letters of a word that may be compared."""


@lru_cache(maxsize=20_000)
def misspelt_drug(word: str) -> str | None:
    """Return the drug from which `word` differs by one letter; None for any other word.

    Two words differ by one letter only if both give the same word after one letter is removed.
    """
    low = word.lower()
    if len(low) < SHORTEST or not low.isalpha() or low in words("common_words.txt"):
        return None
    if lexicon().lookup(low):
        return None
    near = {name for form in (low, *_shortened(low)) for name in _forms().get(form, ())}
    found = [name for name in near if name[0] == low[0] and _is_one_apart(low, name)]
    return found[0] if len(found) == 1 else None


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    """Return each drug, whole and with one letter removed, with the drugs that it may stand for."""
    forms: dict[str, tuple[str, ...]] = {}
    for name in sorted({name.lower() for name in concepts_of_drugs()}):
        if name.isalpha() and len(name) >= SHORTEST - 1:
            for form in (name, *_shortened(name)):
                forms[form] = (*forms.get(form, ()), name)
    return forms


def _shortened(word: str) -> Iterator[str]:
    return (word[:at] + word[at + 1 :] for at in range(1, len(word)))


def _is_one_apart(left: str, right: str) -> bool:
    if abs(len(left) - len(right)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
    if start is None:
        return True
    if len(left) == len(right):
        return left[start + 1 :] == right[start + 1 :]
    longer, shorter = (left, right) if len(left) > len(right) else (right, left)
    return longer[start + 1 :] == shorter[start:]
