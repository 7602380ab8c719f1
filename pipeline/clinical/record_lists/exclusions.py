"""Codes that an Excludes1 note forbids in one encounter.

A note names codes, prefixes (`J44`) or ranges (`E08-E13`); the notes of the parents apply too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

Notes = Mapping[str, Sequence[str]]
"""Code of ICD-10-CM → the prefixes and ranges of its Excludes1 notes, those of parents included."""


def excluded_pairs(codes: Sequence[str], notes: Notes) -> Iterator[tuple[str, str]]:
    """Yield each pair of `codes` that a note excludes, once, in the order of the alphabet."""
    ordered = sorted(set(codes))
    found = {
        (min(code, other), max(code, other))
        for code in ordered
        for pattern in notes.get(code, ())
        for other in _matches(ordered, pattern)
        if other != code
    }
    yield from sorted(found)


def _matches(ordered: Sequence[str], pattern: str) -> Iterator[str]:
    first, _, last = pattern.partition("-")
    low = bisect_left(ordered, first)
    # A code of the last category of a range sorts before the category with a high character.
    high = bisect_left(ordered, f"{last or first}\uffff")
    for code in ordered[low:high]:
        if last or code == first or code.startswith(first):
            yield code
