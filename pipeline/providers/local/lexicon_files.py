"""The word lists beside the engine, read into plain tuples.

Imports nothing of the project. Every list was written for this project from general medical
knowledge. a line that begins with `#` is a comment, `;` parts concepts, `|` the
variants of one (the first is its name).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "lexicon"


def rows(name: str) -> Iterator[str]:
    """Yield the lines of one list, without comments and blanks."""
    for row in raw_rows(name):
        yield row.strip()


def raw_rows(name: str) -> Iterator[str]:
    """Yield the lines of one list as they stand, without comments and blanks."""
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
    """Yield every single name of a drug that is no group and no bare substance."""
    section = ""
    for row in rows("drugs.txt"):
        if row.startswith("["):
            section = row
        elif section == "[word]":
            for concept in row.split(";"):
                yield from (word.strip() for word in concept.split("|"))


@cache
def words(name: str) -> frozenset[str]:
    """Return a list of single words, lower case, written with blanks between them."""
    return frozenset(word.lower() for row in rows(name) for word in row.split())
