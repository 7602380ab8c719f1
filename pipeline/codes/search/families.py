"""Terms of a code system as entries: one entry per text without facets, with all its codes.

This module is pure. A term of a heading counts for the billable codes below the heading.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pipeline.codes.search import facets as facet
from pipeline.codes.search.facets import Facets, Side
from pipeline.codes.search.words import Word, words

MAX_CODES_BELOW = 200
"""A heading with more codes below names a chapter rather than a finding."""
_NOT_CODES = frozenset({"chapter", "section"})


@dataclass(frozen=True, slots=True)
class CodeRow:
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


@dataclass(slots=True)
class Entry:
    """One text without facets, with the codes that share it."""

    words: tuple[Word, ...]
    codes: list[int] = field(default_factory=list)
    facets: list[Facets] = field(default_factory=list)


def entries(codes: Sequence[CodeRow]) -> list[Entry]:
    """Return the entries of a system."""
    found: dict[tuple[Word, ...], Entry] = {}
    seen: set[tuple[tuple[Word, ...], int]] = set()
    keys: dict[str, tuple[Word, ...]] = {}
    for text, code, facets in _texts(codes):
        key = keys.get(text)
        if key is None:
            key = keys[text] = tuple(words(text))
        if not key or (key, code) in seen:
            continue
        seen.add((key, code))
        entry = found.setdefault(key, Entry(key))
        entry.codes.append(code)
        entry.facets.append(facets)
    return list(found.values())


def _texts(codes: Sequence[CodeRow]) -> Iterator[tuple[str, int, Facets]]:
    """Yield each text without facets, with the code to which it leads."""
    parsed = _parsed(codes)
    by_code = {row.code: row for row in codes}
    children: defaultdict[str, list[CodeRow]] = defaultdict(list)
    for row in codes:
        if row.parent:
            children[row.parent].append(row)
    for row in codes:
        text, facets = parsed[row.code]
        if _is_offered(row):
            yield text, row.id, facets
        if row.kind in _NOT_CODES or not row.terms:
            continue
        targets = [row] if _is_offered(row) else list(_below(row, children))
        if len(targets) > MAX_CODES_BELOW:
            continue
        for term in row.terms:
            plain_term, stated = facet.of_display(term)
            for target in targets:
                rest, of_target = parsed[target.code]
                more = _residue(by_code[row.code].display, rest) if target is not row else ""
                if of_target.side is Side.NONE:
                    of_target = replace(of_target, side=stated.side)
                yield f"{plain_term}; {more}", target.id, of_target


def _is_offered(row: CodeRow) -> bool:
    return row.billable is not False and row.kind not in _NOT_CODES


def _below(row: CodeRow, children: dict[str, list[CodeRow]]) -> Iterator[CodeRow]:
    for child in children.get(row.code, ()):
        if _is_offered(child):
            yield child
        yield from _below(child, children)


def _residue(heading: str, text: str) -> str:
    """Return the words of a code's text that its heading lacks."""
    known = {word.text for word in words(heading)}
    return " ".join(
        ("no " if word.is_negated else "") + word.text + ("," if word.is_negated else "")
        for word in words(text)
        if word.text not in known and not word.is_joined
    )


def _parsed(codes: Sequence[CodeRow]) -> dict[str, tuple[str, Facets]]:
    """Return the text without facets and the facets of each code."""
    parsed = {row.code: facet.of_display(row.display) for row in codes}
    for row in codes:
        specimens = {facet.SPECIMENS.get(each, "") for each in row.specimens}
        if len(specimens) == 1:
            text, facets = parsed[row.code]
            parsed[row.code] = text, replace(facets, specimen=specimens.pop())
    sided = {_squeezed(text) for text, facets in parsed.values() if facets.side is not Side.NONE}
    for code, (text, facets) in parsed.items():
        if facets.side is not Side.NONE or "unspecified" not in text.lower():
            continue
        for shorter in facet.without_open_side(text):
            if _squeezed(shorter) in sided:
                parsed[code] = (shorter.strip(" ,"), replace(facets, side=Side.OPEN))
                break
    return parsed


def _squeezed(text: str) -> str:
    return " ".join(text.lower().replace(",", " ").split())
