"""The word lists beside the engine, read into plain tuples.

Imports nothing of the project. Every list was written for this project from general medical
knowledge. `#` begins a comment, `|` parts the variants of one concept (the first is its name).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "lexicon"


def rows(name: str) -> Iterator[str]:
    """Yield the lines of one list, without comments and blanks."""
    for line in (_FOLDER / name).read_text(encoding="utf-8").splitlines():
        bare = line.partition("#")[0].strip()
        if bare:
            yield bare


def raw_rows(name: str) -> Iterator[str]:
    """Yield the lines of a list in which `#` may stand inside a line."""
    for line in (_FOLDER / name).read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def concepts(name: str) -> Iterator[tuple[str, ...]]:
    """Yield each concept's variants."""
    for row in rows(name):
        yield tuple(part for word in row.split("|") if (part := word.strip()))


@cache
def words(name: str) -> frozenset[str]:
    """Return a list of single words, lower case, written with blanks between them."""
    return frozenset(word.lower() for row in rows(name) for word in row.split())
