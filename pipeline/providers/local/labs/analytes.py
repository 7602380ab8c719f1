"""The laboratory's vocabulary: names of analytes, their usual units and plausible values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipeline.providers.local.names.word_lists import rows
from pipeline.providers.local.text.tokens import Token, first_norm, is_word, tokenize

_END = ""


@dataclass(frozen=True, slots=True)
class Analyte:
    """A substance that a laboratory measures."""

    name: str
    names: frozenset[str]
    units: tuple[str, ...]
    low: float
    high: float


@cache
def analytes() -> dict[str, Any]:
    """Return the trie of all names."""
    trie: dict[str, Any] = {}
    for row in rows("labs.txt"):
        names, units, low, high = (cell.strip() for cell in row.split(";"))
        variants = tuple(name for part in names.split("|") if (name := part.strip()))
        analyte = Analyte(
            name=variants[0],
            names=frozenset(variants),
            units=tuple(unit for part in units.split("|") if (unit := part.strip())),
            low=float(low),
            high=float(high),
        )
        for variant in variants:
            node = trie
            for token in tokenize(variant):
                if token.text != "-":
                    node = node.setdefault(token.norm, {})
            node.setdefault(_END, analyte)
    return trie


def find_analytes(tokens: Sequence[Token]) -> Iterator[tuple[int, int, Analyte]]:
    """Yield start, end and analyte of each longest match, from left to right."""
    at, known = 0, analytes()
    while at < len(tokens):
        found = _longest(tokens, at) if tokens[at].norm in known else None
        if found is None:
            at += 1
        else:
            last, analyte = found
            yield tokens[at].start, tokens[last - 1].end, analyte
            at = last


def known_name(text: str, begin: int) -> int | None:
    """Return the end of the analyte name that starts at `begin`; None if there is none."""
    near = text[begin : begin + 80]
    # Most words begin no name, so the words behind such a word are not read.
    if first_norm(near) not in analytes():
        return None
    tokens = tokenize(near)
    found = _longest(tokens, 0)
    return begin + tokens[found[0] - 1].end if found else None


def _longest(tokens: Sequence[Token], first: int) -> tuple[int, Analyte] | None:
    node: Any = analytes().get(tokens[first].norm)
    at, best = first + 1, None
    while node is not None:
        if _END in node:
            best = (at, node[_END])
        while at < len(tokens) and tokens[at].text == "-" and is_word(tokens[at - 1]):
            at += 1
        if at >= len(tokens):
            break
        node = node.get(tokens[at].norm)
        at += 1
    return best
