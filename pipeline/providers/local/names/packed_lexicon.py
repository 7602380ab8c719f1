"""The lexicon file that `python -m lexicon_build` writes: names of diseases and drugs from sources.

The file is compressed text. Lines that begin with `#` name the sources, their licences and counts.
Each other line holds all terms with the same first word: the word, a TAB, then `;` between terms.
A term is one letter for its kind and the words behind the first word.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from pipeline.providers.schemas import Category

PACKED = Path(__file__).parents[1] / "lexicon" / "sources.txt.gz"
KINDS: dict[str, tuple[Category, str]] = {
    "c": ("condition", "icd"),
    "s": ("symptom", "icd"),
    "o": ("medication", "official"),
    "b": ("medication", "bare"),
    "n": ("medication", "brand"),
}
"""Letter of a term → its category and kind."""


def pack(header: Iterable[str], terms: Mapping[tuple[str, ...], str]) -> bytes:
    """Return the file for terms as `{words: letter}`; the same terms give the same bytes."""
    lines: dict[str, list[str]] = {}
    for (first, *rest), letter in sorted(terms.items()):
        lines.setdefault(first, []).append(" ".join((letter + "".join(rest[:1]), *rest[1:])))
    body = "".join(f"{first}\t{';'.join(found)}\n" for first, found in sorted(lines.items()))
    digest = hashlib.sha256(body.encode()).hexdigest()
    head = "".join(f"# {line}\n" for line in (*header, f"sha256 of the terms: {digest}"))
    return gzip.compress((head + body).encode(), mtime=0)


def read_header(packed: Path = PACKED) -> list[str]:
    """Return the lines about the sources, without `# `."""
    return [line[2:] for line in _text(packed).split("\n") if line.startswith("# ")]


def read_terms(packed: Path = PACKED) -> dict[str, str]:
    """Return first word → its terms, still packed."""
    found: dict[str, str] = {}
    for line in _text(packed).split("\n"):
        if line and not line.startswith("# "):
            first, _, terms = line.partition("\t")
            found[first] = terms
    return found


def unpack(terms: str) -> Iterable[tuple[str, list[str]]]:
    """Yield the letter and the words behind the first word of each packed term."""
    for term in terms.split(";"):
        yield term[0], term[1:].split()


def _text(packed: Path) -> str:
    return gzip.decompress(packed.read_bytes()).decode()
