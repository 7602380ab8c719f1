"""Terms of a code system as texts without facets, each with the code to which the text leads.

This module is pure. A term of a heading counts for the billable codes below the heading. Codes pass
one by one; only the codes of a system with headings stay in memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from pipeline.codes.search import facets as facet
from pipeline.codes.search.facets import Facets, Side
from pipeline.codes.search.words import words

MAX_CODES_BELOW = 200
"""A heading with more codes below names a chapter rather than a finding."""
_NOT_CODES = frozenset({"chapter", "section"})


@dataclass(frozen=True, slots=True)
class FamilyCode:
    """One code of the system, with its terms."""

    id: int
    code: str
    display: str
    parent: str | None
    billable: bool | None
    kind: str
    terms: tuple[str, ...] = ()
    """Terms besides the display."""
    specimens: tuple[str, ...] = ()


def sided_texts(displays: Iterable[str]) -> set[str]:
    """Return the texts of those displays that state a side, without the side."""
    parsed = map(facet.of_display, displays)
    return {_squeezed(text) for text, facets in parsed if facets.side is not Side.NONE}


class Families:
    """Reads the texts of codes: what a code shares with its family, and its own facets."""

    def __init__(self, sided: set[str], tree: Iterable[FamilyCode] = ()) -> None:
        """Take `sided_texts` of the system, and its codes if some of them are headings."""
        self._sided = sided
        self._by_code = {row.code: row for row in tree}
        self._children: defaultdict[str, list[FamilyCode]] = defaultdict(list)
        for row in self._by_code.values():
            if row.parent:
                self._children[row.parent].append(row)

    def texts(self, row: FamilyCode) -> Iterator[tuple[str, int, Facets]]:
        """Yield each text of a code without facets, with the id of the code that it leads to."""
        text, facets = self._parsed(row)
        if _is_offered(row):
            yield text, row.id, facets
        if row.kind in _NOT_CODES or not row.terms:
            return
        targets = [("", row.id, facets)] if _is_offered(row) else self._targets(row)
        for term in row.terms if len(targets) <= MAX_CODES_BELOW else ():
            plain_term, stated = facet.of_display(term)
            for more, code_id, of_target in targets:
                if of_target.side is Side.NONE:
                    yield f"{plain_term}; {more}", code_id, replace(of_target, side=stated.side)
                else:
                    yield f"{plain_term}; {more}", code_id, of_target

    def _targets(self, heading: FamilyCode) -> list[tuple[str, int, Facets]]:
        """Return the codes below a heading, each with the words that the heading lacks."""
        below = list(islice(self._below(heading), MAX_CODES_BELOW + 1))
        if len(below) > MAX_CODES_BELOW:
            return [("", row.id, Facets()) for row in below]
        parsed = [(row.id, *self._parsed(row)) for row in below]
        return [(_residue(heading.display, text), id_, facets) for id_, text, facets in parsed]

    def _below(self, row: FamilyCode) -> Iterator[FamilyCode]:
        for child in self._children.get(row.code, ()):
            if _is_offered(child):
                yield child
            yield from self._below(child)

    def _parsed(self, row: FamilyCode) -> tuple[str, Facets]:
        """Return the text without facets and the facets of a code."""
        text, facets = facet.of_display(row.display)
        specimens = {facet.SPECIMENS.get(each, "") for each in row.specimens}
        if len(specimens) == 1:
            facets = replace(facets, specimen=specimens.pop())
        if facets.side is Side.NONE and "unspecified" in text.lower():
            for shorter in facet.without_open_side(text):
                if _squeezed(shorter) in self._sided:
                    return shorter.strip(" ,"), replace(facets, side=Side.OPEN)
        return text, facets


def _is_offered(row: FamilyCode) -> bool:
    return row.billable is not False and row.kind not in _NOT_CODES


def _residue(heading: str, text: str) -> str:
    """Return the words of a code's text that its heading lacks."""
    known = {word.text for word in words(heading)}
    return " ".join(
        ("no " if word.is_negated else "") + word.text + ("," if word.is_negated else "")
        for word in words(text)
        if word.text not in known and not word.is_joined
    )


def _squeezed(text: str) -> str:
    return " ".join(text.lower().replace(",", " ").split())
