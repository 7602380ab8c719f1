"""The text of a page that belongs to a quote: its row or sentence, and the headings above its row.

This module is pure. A row ends where the next entity of the same kind begins, so no entity takes an
attribute from its neighbour.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pipeline.clinical.page_text.lines import PrintedLine, Sentence, lines_of, sentences_of
from pipeline.core.types import PageText, Span

_HEADINGS = 3
"""The most headings above a row that are read; comments between the rows of a table are common."""
_REACH = 80
"""The most lines between a row and its heading: more than the longest page of a table."""
_FIGURE = re.compile(r"(?<![\w/.])\d+(?:[.,]\d+)?(?![\w/])|\d+/\d+(?!/)")
_IN_PARENTHESES = re.compile(r"\([^()\n]*\)")
_DAY = re.compile(
    r"\b\d{1,4}[/-]\d{1,2}(?:[/-]\d{2,4})?\b|\b\d{1,2}\.\d{1,2}\.\d{2,4}\b|\b\d{1,2}:\d{2}\b"
)
"""A day or a time. Two figures with a point between them are a value, never a day."""


@dataclass(frozen=True, kw_only=True)
class QuotedText:
    """The text in which the attributes of one entity must occur."""

    quote: str = field(repr=False)
    row: str = field(repr=False)
    """The rest of the row or sentence around the quote; the quote's own place is a blank."""
    headings: tuple[str, ...] = field(repr=False)
    """The headings above the row, nearest first; in a table, only the cells of its column."""
    first_cell: str = field(default="", repr=False)
    """The first cell of a table row before the quote: a label or a day for the whole row."""
    above: tuple[str, ...] = field(default=(), repr=False)
    """The page above the row, and the page before: a table's date is printed once, above it."""


def quoted_text(
    quote: str, spans: Sequence[Span], pages: Mapping[int, PageText], neighbours: Sequence[Span]
) -> QuotedText:
    """Collect the text of a quote at `spans`. `neighbours` are places of entities of its kind."""
    first, last = spans[0], spans[-1]
    head, tail = pages[first.page].text, pages[last.page].text
    begin, end = _row(head, first)[0], _row(tail, last)[1]
    before = [n for n in neighbours if n.page == first.page and begin < n.end <= first.start]
    after = [n.start for n in neighbours if n.page == last.page and last.end <= n.start < end]
    row_before = "" if before else head[begin : first.start]
    return QuotedText(
        quote=quote,
        row=f"{row_before} \n {tail[last.end : min(after, default=end)]}",
        headings=headings_above(head, first),
        first_cell=_first_cell(head, first),
        above=(head[: first.start], pages[first.page - 1].text if first.page - 1 in pages else ""),
    )


def _first_cell(text: str, span: Span) -> str:
    cell, tab, _ = text[text.rfind("\n", 0, span.start) + 1 : span.start].partition("\t")
    return cell if tab else ""


def row_of(text: str, span: Span) -> str:
    """Return the printed lines and the sentence around a place."""
    return text[slice(*_row(text, span))]


def headings_above(text: str, span: Span) -> tuple[str, ...]:
    """Return the nearest lines without figures above a row, within its block of lines."""
    lines, starts = _lines(text)
    at = max(0, bisect.bisect_right(starts, span.start) - 1)
    return tuple(_column(heading, lines[at], span) for heading in _headings_above(text, at))


# Each entity of a row asks, and so does each check of an entity.
@lru_cache(maxsize=1_024)
def _headings_above(text: str, at: int) -> tuple[str, ...]:
    lines, plain = _lines(text)[0], _without_figures(text)
    found: list[str] = []
    for above in range(at - 1, max(-1, at - _REACH), -1):
        words = lines[above].text
        if not words.strip():
            break
        if plain[above]:
            found.append(words)
            if len(found) == _HEADINGS:
                break
    return tuple(found)


# The rows of a table have the same lines above them.
@lru_cache(maxsize=64)
def _without_figures(text: str) -> list[bool]:
    """Return for each line of a page whether no figure but a day or a remark is in the line."""
    return [
        _FIGURE.search(_DAY.sub("", _IN_PARENTHESES.sub("", line.text))) is None
        for line in _lines(text)[0]
    ]


def _column(heading: str, row: PrintedLine, span: Span) -> str:
    """Return the heading's cell above a cell of a row, if both have the same number of cells."""
    cells = heading.split("\t")
    if len(cells) < 2 or len(cells) != row.text.count("\t") + 1:
        return heading
    first = row.text.count("\t", 0, max(0, span.start - row.start))
    last = row.text.count("\t", 0, max(0, span.end - row.start))
    return "\t".join(cells[first : last + 1])


def sentences_between(text: str, begin: int, end: int) -> list[Sentence]:
    """Return the sentences of a page that share a character with `text[begin:end]`."""
    sentences, starts = _sentences(text)
    # Sentences follow each other, so only the first one can end in front of the place.
    first = max(0, bisect.bisect_right(starts, begin) - 1)
    near = sentences[first : bisect.bisect_left(starts, end)]
    return [sentence for sentence in near if begin < sentence.end]


def _row(text: str, span: Span) -> tuple[int, int]:
    begin = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", span.end)
    sentences, starts = _sentences(text)
    first = max(0, bisect.bisect_right(starts, span.start) - 1)
    last = max(0, bisect.bisect_left(starts, max(span.end, span.start + 1)) - 1)
    if sentences and sentences[first].end > span.start:
        begin = min(begin, sentences[first].start)
    end = len(text) if end < 0 else end
    if sentences and sentences[last].end > span.end:
        end = max(end, sentences[last].end)
    return begin, end


@lru_cache(maxsize=64)
def _lines(text: str) -> tuple[list[PrintedLine], list[int]]:
    lines = lines_of(text)
    return lines, [line.start for line in lines]


@lru_cache(maxsize=64)
def _sentences(text: str) -> tuple[list[Sentence], list[int]]:
    sentences = sentences_of(text, _lines(text)[0])
    return sentences, [sentence.start for sentence in sentences]
