"""Read the word lists of the engine into plain tuples.

Every list was written for this project from general medical knowledge. A line that begins with `#`
is a comment, `;` separates concepts, and `|` separates the variants of a concept. The first variant
is the concept's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "lexicon"


def rows(name: str) -> Iterator[str]:
    """Yield the lines of a list, without comments and surrounding blanks."""
    for row in raw_rows(name):
        yield row.strip()


def raw_rows(name: str) -> Iterator[str]:
    """Yield the lines of a list unchanged, without comments and blank lines."""
    for line in (_FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def concepts(name: str) -> Iterator[tuple[str, ...]]:
    """Yield each concept's variants."""
    for row in rows(name):
        for concept in row.split(";"):
            variants = tuple(part for word in concept.split("|") if (part := word.strip()))
            if variants:
                yield variants


def concepts_of_drugs() -> Iterator[str]:
    """Yield every drug name, without groups of drugs and bare substances."""
    section = ""
    for row in rows("drugs.txt"):
        if row.startswith("["):
            section = row
        elif section == "[word]":
            for concept in row.split(";"):
                yield from (word.strip() for word in concept.split("|"))


@cache
def words(name: str) -> frozenset[str]:
    """Return a list of single words separated by blanks, in lower case."""
    return frozenset(word.lower() for row in rows(name) for word in row.split())
