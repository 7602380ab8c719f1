"""Misread words: how like two words are, and the clinicians' forms that a word may mean.

This module is pure. OCR confuses characters that look alike, so `tcver` is nearer to `fever` than
other words with two different characters.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache, lru_cache

from pipeline.codes.search.facets import SPECIMENS
from pipeline.codes.search.phrases import phrases
from pipeline.codes.search.words import FUNCTION_WORDS

_TABLE = """
0o 0d 0q 0c 1i 1l 1t 17 2z 38 3b 3e 4a 56 5s 6b 6g 7t 7z 8b 8s 8g 9g 9q ao ae ac bh bd bp ce cg co
cq do dc ec ef eo fp ft gq gc gy hb hn hk hm ij il it jl kx kr lt mn mw mh nu nr np nh ox pn pr pf
qo qg rn rk rp ry s5 tf ti uv un vy vu vw xk xy yv zs
"""
_PAIRS = _TABLE.split()
ALIKE = frozenset(_PAIRS) | frozenset(pair[::-1] for pair in _PAIRS)
"""Pairs of characters that look alike in print."""
_MERGED = (("rn", "m"), ("cl", "d"), ("vv", "w"), ("lc", "k"), ("ii", "u"))

ALIKE_COST = 0.4
"""The cost of a character that looks like the right character; another character costs 1."""
MIN_LIKENESS = 0.58
SHORT = 4
"""Characters of an abbreviation that is compared place by place."""
_FACET_WORDS = """
left right bilateral bilat no not without initial subsequent encounter visit sequela trimester
first second third fetus routine delayed healing nonunion malunion open closed compound
"""
_MARKERS = frozenset(_FACET_WORDS.split()) | frozenset(SPECIMENS)
"""Words that state a facet or a negation; the index leaves them out."""


def likeness(word: str, other: str) -> float:
    """Return 1 for equal words, less for each character that differs, at least 0."""
    costs = [_cost(word, other)]
    if (merged := _merge(word)) != word:
        costs.append(ALIKE_COST + _cost(merged, other))
    return max(0.0, 1 - min(costs) / max(2.0, min(len(word), len(other))))


def _merge(word: str) -> str:
    for two, one in _MERGED:
        word = word.replace(two, one)
    return word


def _cost(one: str, two: str) -> float:
    """Return the cost of the edits, with a swap of neighbours as one edit."""
    before: list[float] = []
    row = [float(j) for j in range(len(two) + 1)]
    for i, a in enumerate(one, 1):
        last, row, older = row, [float(i)], before
        for j, b in enumerate(two, 1):
            cost = last[j - 1] + _substitution(a, b)
            if older and j > 1 and a == two[j - 2] and one[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(min(cost, last[j] + 1, row[j - 1] + 1))
        before = last
    return row[-1]


def _substitution(a: str, b: str) -> float:
    return 0.0 if a == b else ALIKE_COST if a + b in ALIKE else 1.0


@cache
def form_words(category: str) -> frozenset[str]:
    """Return every word of the forms of a category, with markers of side and negation."""
    return frozenset(word for form in phrases(category) for word in form) | _MARKERS


@cache
def _by_length(category: str) -> dict[int, list[str]]:
    found: defaultdict[int, list[str]] = defaultdict(list)
    for word in sorted(form_words(category)):
        if len(word) > 1 and word not in FUNCTION_WORDS - _MARKERS:
            found[len(word)].append(word)
    return found


@lru_cache(maxsize=4096)
def near_forms(word: str, category: str, most: int = 8) -> tuple[tuple[float, str], ...]:
    """Return the words of forms that the word may be a misreading of, with likeness, best first."""
    found: dict[str, float] = {}
    variants = {_merge(word): ALIKE_COST, word: 0.0}
    for variant, extra in variants.items():
        allowed = 0.45 * max(2, len(variant))
        for other in _by_length(category).get(len(variant), ()):
            cost = extra
            for a, b in zip(variant, other, strict=True):
                cost += _substitution(a, b)
                if cost >= allowed:
                    break
            else:
                found[other] = max(found.get(other, 0.0), 1 - cost / max(2, len(variant)))
        if len(variant) > SHORT:
            for length in (len(variant) - 1, len(variant) + 1):
                for other in _by_length(category).get(length, ()):
                    if variant[:2] == other[:2] or variant[-2:] == other[-2:]:
                        found[other] = max(found.get(other, 0.0), likeness(variant, other))
    ordered = sorted(((value, other) for other, value in found.items()), reverse=True)
    return tuple(each for each in ordered if each[0] >= MIN_LIKENESS)[:most]
