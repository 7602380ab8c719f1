"""The compiled lexicon: the longest match of known terms over a page's tokens.

One trie of plain dicts per process; terms from sources join the trie when a page shows their first
word. Rejected: pyahocorasick and marisa-trie match characters, so plurals and hyphens would need
listing. flashtext2 has no longest match over tokens. medspaCy needs spaCy's 100 MB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from pipeline.providers.local.names.packed_lexicon import KINDS, read_terms, unpack
from pipeline.providers.local.names.word_lists import concepts, rows
from pipeline.providers.local.text.tokens import Token, is_word, tokenize
from pipeline.providers.schemas import Category

_SKIPPED = frozenset(("the", "left", "right", "bilateral"))
_PREPOSITIONS = frozenset(("of", "in", "to", "at", "on"))
"""A mention may have some of these words behind a preposition (`fracture of the left femur`)."""
_END = ""
"""The key of a trie node that ends a term; no token is empty."""


@dataclass(frozen=True, slots=True)
class Term:
    """The meaning of a run of words."""

    category: Category
    name: str
    """The name of the concept; for an abbreviation, its expansion."""
    kind: str
    """`word`, `abbreviation`, `class` (a group of drugs), `bare` (a drug only beside a dose).

    Terms from sources have the kinds `icd`, `official`, `bare` and `brand`.
    """
    exact: frozenset[str] | None = None
    """The only valid spellings, if case matters (`OS` is not `os`)."""


@dataclass(frozen=True, slots=True)
class TermMatch:
    """A term in a text."""

    first: int
    """Index of the first token."""
    last: int
    """Index after the last token."""
    start: int
    end: int
    terms: tuple[Term, ...]
    """All meanings of the same words."""

    def reading(self, *categories: Category) -> Term | None:
        """Return the first meaning in one of these categories."""
        return next((term for term in self.terms if term.category in categories), None)


_FILES: tuple[tuple[str, Category], ...] = (
    ("conditions.txt", "condition"),
    ("symptoms.txt", "symptom"),
    ("procedures.txt", "procedure"),
    ("vaccines.txt", "immunization"),
)


_CATEGORIES: dict[str, Category] = {
    "medication": "medication",
    "condition": "condition",
    "symptom": "symptom",
    "procedure": "procedure",
    "immunization": "immunization",
    "allergy": "allergy",
}


class Lexicon:
    """All terms in one trie. A term of our own lists hides the same words of a source."""

    def __init__(self, sources: Mapping[str, str] | None = None) -> None:
        """Read our own lists; `sources` replaces the terms of the built file."""
        self._cased = frozenset(word for row in rows("cased.txt") for word in row.split())
        self._trie: dict[str, Any] = {}
        """First word → its node, or a pair of its node and the terms still packed."""
        self.size = 0
        for name, category in _FILES:
            for variants in concepts(name):
                for variant in variants:
                    self._add(variant, Term(category, variants[0], "word"))
        self._read_drugs()
        for variants in concepts("allergens.txt"):
            for variant in variants:
                self._add(variant, Term("allergy", variants[0], "allergen"))
        self._read_abbreviations()
        for first, packed in (read_terms() if sources is None else sources).items():
            self._trie[first] = (self._trie.get(first, {}), packed)

    def find(self, tokens: Sequence[Token], text: str = "") -> Iterator[TermMatch]:
        """Yield the longest matches from left to right, without overlaps.

        A term never crosses a border in `text`: of a cell (a TAB) or a paragraph (an empty line).
        """
        at, last, known = 0, len(tokens), self._trie
        while at < last:
            match = self._longest(tokens, at, text) if tokens[at].norm in known else None
            if match is None:
                at += 1
            else:
                yield match
                at = match.last

    def lookup(self, words: str) -> tuple[Term, ...]:
        """Return the meanings of exactly these words."""
        first, *rest = keys_of(words)
        node: Any = self._root(first)
        for key in rest:
            if node is None:
                break
            node = node.get(key)
        if node is None:
            return ()
        found: tuple[Term, ...] = node.get(_END, ())
        return found

    def _longest(self, tokens: Sequence[Token], first: int, text: str) -> TermMatch | None:
        node: Any = self._root(tokens[first].norm)
        at, best = first + 1, None
        while node is not None:
            if _END in node:
                fitting = tuple(t for t in node[_END] if _fits(t, tokens[first:at]))
                if fitting:
                    best = TermMatch(first, at, tokens[first].start, tokens[at - 1].end, fitting)
            if at < len(tokens) and _is_hyphen(tokens, at):
                at += 1
            if at >= len(tokens):
                break
            if tokens[at - 1].norm in _PREPOSITIONS:
                while tokens[at].norm in _SKIPPED and at + 1 < len(tokens):
                    if tokens[at].norm in node:
                        break
                    at += 1
            node = node.get(tokens[at].norm)
            at += 1
            if node is not None and _has_border(text[tokens[at - 2].end : tokens[at - 1].start]):
                break
        return best

    def _root(self, first: str) -> dict[str, Any] | None:
        """Return the node of a first word, with the terms of the sources.

        Threads share the trie. So the node is complete before the trie shows the node, and two
        threads that unpack the same word store equal nodes.
        """
        node: Any = self._trie.get(first)
        if isinstance(node, tuple):
            own, packed = node
            node = self._trie[first] = _joined(own, packed, first)
        found: dict[str, Any] | None = node
        return found

    def _read_drugs(self) -> None:
        kind = "word"
        for row in rows("drugs.txt"):
            if row.startswith("["):
                kind = row.strip("[]")
                continue
            for concept in row.split(";"):
                variants = [word for part in concept.split("|") if (word := part.strip())]
                for variant in variants:
                    self._add(variant, Term("medication", variants[0], kind))

    def _read_abbreviations(self) -> None:
        for row in rows("abbreviations.txt"):
            forms, category, name, *flags = (cell.strip() for cell in row.split("|"))
            spellings = forms.split()
            if category not in _CATEGORIES:
                raise ValueError(f"abbreviations.txt: no category {category}")
            exact = frozenset(spellings) if "exact" in flags else None
            for spelling in spellings:
                term = Term(_CATEGORIES[category], name, "abbreviation", exact)
                self._add(spelling.replace("_", " "), term)

    def _add(self, words: str, term: Term) -> None:
        if words in self._cased:
            term = replace(term, exact=frozenset((words, f"{words}s")))
        node = self._trie
        for key in keys_of(words):
            node = node.setdefault(key, {})
        before: tuple[Term, ...] = node.get(_END, ())
        if not any(t.category == term.category for t in before):
            node[_END] = (*before, term)
            self.size += 1


def _joined(own: dict[str, Any], packed: str, first: str) -> dict[str, Any]:
    """Return a copy of a node with the terms of the sources below the node."""
    root = _copied(own)
    for letter, rest in unpack(packed):
        node = root
        for key in rest:
            node = node.setdefault(key, {})
        if _END not in node:
            category, kind = KINDS[letter]
            node[_END] = (Term(category, " ".join((first, *rest)), kind),)
    return root


def _copied(node: dict[str, Any]) -> dict[str, Any]:
    return {key: below if key == _END else _copied(below) for key, below in node.items()}


def keys_of(words: str) -> list[str]:
    """Return the tokens of a term in the normal form.

    Hyphens inside words and `the` inside terms are left out (`cancer of the breast`).
    """
    tokens = tokenize(words)
    return [
        t.norm
        for i, t in enumerate(tokens)
        if not (i and (t.norm == "the" or _is_hyphen(tokens, i)))
    ]


def _has_border(gap: str) -> bool:
    return gap != " " and ("\t" in gap or gap.count("\n") > 1)


def _is_hyphen(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a token is a hyphen inside a word (`x-ray`), not a dash between words."""
    return (
        tokens[at].text in ("-", "‐", "‑")
        and at + 1 < len(tokens)
        and tokens[at].start == tokens[at - 1].end
        and is_word(tokens[at - 1])
        and is_word(tokens[at + 1])
    )


def _fits(term: Term, tokens: Sequence[Token]) -> bool:
    if term.exact is None:
        return True
    return (
        " ".join(t.text for t in tokens) in term.exact
        or "".join(t.text for t in tokens) in term.exact
    )


@cache
def lexicon() -> Lexicon:
    """Return the lexicon of this process. The first call reads the lists (about 0.1 s).

    The worker calls this before the fork, so that its children share the memory.
    """
    return Lexicon()
