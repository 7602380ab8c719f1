"""The evidence of an entity: the words of the page that can speak of this entity.

An attribute of Pass 2 must occur in this text. The text comes from the slices of a prompt, so the
local engine and the checks of a model's reply read the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.page_text.rows import QuotedText, quoted_text, sentences_between
from pipeline.core.types import PageSlice, PageText, Span


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The text around one entity."""

    quote: str = field(repr=False)
    row: str = field(default="", repr=False)
    """The printed lines that the quote touches."""
    passage: str = field(default="", repr=False)
    """The lines around the row, up to the next blank line above and below."""
    start_in_passage: int = 0
    """Offset of the quote in `passage`."""
    sentence: str = field(default="", repr=False)
    """The sentence of the quote; line ends are blanks."""
    before: str = field(default="", repr=False)
    """The sentence in front of the quote, from the end of the entity before; in a table, the
    cell of the quote only."""
    after: str = field(default="", repr=False)
    """The sentence behind the quote, up to the next entity; in a table, the cell only."""
    entity_before: str = field(default="", repr=False)
    """The quote of the entity that ends `before`; empty without one."""
    entity_after: str = field(default="", repr=False)
    cells: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """In a table, the other cells of the row, each with the heading of its column."""
    headings: tuple[str, ...] = field(default=(), repr=False)
    """The headings above the row, nearest first."""
    shown: QuotedText | None = field(default=None, repr=False)
    """The text of the checks that Pass 1 also makes; None if no slice contains the entity."""


def evidence_of(
    facts: EntityFacts, slices: Sequence[PageSlice], neighbours: Sequence[EntityFacts] = ()
) -> Evidence:
    """Return the evidence of an entity; only the quote, if no slice contains the entity.

    `neighbours` are the other entities of the same text, in any order; the entity itself may be
    among the neighbours.
    """
    for part in slices:
        if part.page != facts.page or facts.start is None or facts.end is None:
            continue
        begin = facts.start - part.start
        end = facts.end - part.start if facts.page_end is None else len(part.text)
        if begin < 0 or begin >= len(part.text):
            continue
        others = _others(facts, part, neighbours)
        return _in_text(
            part.text,
            facts.page,
            facts.quote,
            (begin, min(max(end, begin), len(part.text))),
            tuple((start, end) for _, start, end in others),
            tuple((a, b) for each, a, b in others if each.category == facts.category),
        )
    return Evidence(quote=facts.quote)


# The local engine asks about each entity of a zone, and then the checks of its reply ask.
@lru_cache(maxsize=256)
def _in_text(
    text: str,
    number: int,
    quote: str,
    place: tuple[int, int],
    places: tuple[tuple[int, int], ...],
    places_of_kind: tuple[tuple[int, int], ...],
) -> Evidence:
    """Return the evidence of a quote at a place of page `number`, beside these other entities.

    `places_of_kind` are the places of the entities of the same category.
    """
    begin, end = place
    row_from = text.rfind("\n", 0, begin) + 1
    row_to = _line_end(text, max(begin, end - 1))
    passage_from = text.rfind("\n\n", 0, begin)
    passage_from = 0 if passage_from < 0 else passage_from + 2
    passage_to = text.find("\n\n", row_to)
    first, last = _sentence(text, begin, end)
    left = max((stop for _, stop in places if first < stop <= begin), default=first)
    right = min((start for start, _ in places if end <= start < last), default=last)
    is_table = "\t" in text[row_from:row_to]
    before, after = text[left:begin], text[end:right]
    if is_table:
        before, after = before.rpartition("\t")[2], after.partition("\t")[0]
    span = Span(number, begin, end)
    same_kind = [Span(number, *each) for each in places_of_kind]
    page = PageText(number=number, text=text)
    shown = quoted_text(quote, [span], {number: page}, same_kind)
    return Evidence(
        quote=quote,
        row=text[row_from:row_to],
        passage=text[passage_from : passage_to if passage_to >= 0 else len(text)],
        start_in_passage=begin - passage_from,
        sentence=_plain(text[first:last]),
        before=_plain(before),
        after=_plain(after),
        entity_before=_quote_at(text, places, stop=left),
        entity_after=_quote_at(text, places, start=right),
        cells=_cells(text, row_from, row_to, begin) if is_table else (),
        headings=shown.headings,
        shown=shown,
    )


def _others(
    facts: EntityFacts, part: PageSlice, neighbours: Sequence[EntityFacts]
) -> list[tuple[EntityFacts, int, int]]:
    """Return the neighbours within a slice that lie beside the entity, not over it."""
    page, key, first, last = facts.page, facts.key, facts.start, facts.end
    if first is None or last is None:
        return []
    at, size = part.start, len(part.text)
    return [
        (each, each.start - at, each.end - at)
        for each in neighbours
        if each.page == page
        and each.start is not None
        and each.end is not None
        and each.key != key
        and not (each.start < last and first < each.end)
        and each.start >= at
        and each.end - at <= size
        and each.page_end is None
    ]


def _quote_at(
    text: str, places: Sequence[tuple[int, int]], *, start: int = -1, stop: int = -1
) -> str:
    return next((text[a:b] for a, b in places if a == start or b == stop), "")


def _sentence(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return the first and the last offset of the sentence, or of the row of a table."""
    row_from, row_to = text.rfind("\n", 0, begin) + 1, _line_end(text, max(begin, end - 1))
    if "\t" in text[row_from:row_to]:
        return row_from, row_to
    found = sentences_between(text, begin, max(end, begin + 1))
    if not found:
        return row_from, row_to
    return min(begin, found[0].start), max(end, found[-1].end)


def _cells(text: str, row_from: int, row_to: int, begin: int) -> tuple[tuple[str, str], ...]:
    """Return the other cells of a row with the headings of their columns."""
    row = text[row_from:row_to].split("\t")
    own = text.count("\t", row_from, begin)
    heads = _column_headings(text, row_from, len(row))
    return tuple(
        (head.strip(), cell.strip())
        for index, (head, cell) in enumerate(zip(heads, row, strict=True))
        if index != own and cell.strip()
    )


def _column_headings(text: str, row_from: int, count: int) -> list[str]:
    """Return the headings of a table: the first row above with as many cells, without figures."""
    lines = text[: max(0, row_from - 1)].split("\n")
    found = [""] * count
    for line in reversed(lines):
        cells = line.split("\t")
        if len(cells) < 2:
            break
        if len(cells) == count:
            found = cells if not any(c.isdigit() for c in line) else [""] * count
    return found


def _plain(text: str) -> str:
    return text.replace("\n", " ").replace("\r", " ")


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end
