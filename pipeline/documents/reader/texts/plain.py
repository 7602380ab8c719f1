"""Plain text: lines, columns made with spaces or tabs, and pages that end with a form feed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from .characters import STRIKES
from .lines import WORD, Blank, Item, Line, PageBreak, TypedColumns, TypedWord, prose, table_lines
from .typesetting import WIDTH

#: A gap between columns: a tab, or spaces that do not follow the end of a sentence.
_GAP = re.compile(r"(?<=\S)(?: {3,}| *\t[ \t]*|(?<![.:;?!]) {2})(?=\S)")
_TABS = re.compile(r" *\t *")
#: A longer line is a paragraph, not a row of columns.
LONGEST_ROW = 250
#: Lines of columns that are laid out together; ten pages.
LONGEST_BAND = 600
_TAB_STOPS = 8


def items_of(text: str) -> Iterator[Item]:
    """Yield the lines of a normalised text."""
    pages = text.split("\f")
    if not pages[-1].strip():
        # A form feed at the end ends the last page; it begins no further page.
        pages.pop()
    for number, page in enumerate(pages):
        if number:
            yield PageBreak()
        yield from _page(_lines(page))
        if not page.strip() and number == len(pages) - 1:
            yield Blank()


def _lines(page: str) -> Iterator[str]:
    """Yield the lines one by one: the pages can reach their limit long before the last line."""
    at = 0
    while (end := page.find("\n", at)) >= 0:
        yield page[at:end]
        at = end + 1
    yield page[at:]


def _page(lines: Iterable[str]) -> Iterator[Item]:
    for is_blank, group in groupby(lines, key=lambda line: not line.strip()):
        if is_blank:
            for _ in group:
                yield Blank()
        else:
            yield from _paragraph(group)


def _paragraph(lines: Iterable[str]) -> Iterator[Item]:
    """Yield lines between two empty lines: their columns, if they have any, and prose."""
    band: list[str] = []
    for line in lines:
        row = line.expandtabs(_TAB_STOPS) if len(line) <= LONGEST_ROW else line
        is_row = len(row) <= LONGEST_ROW and not _struck(line)
        if is_row and (band or _GAP.search(line.strip())):
            band.append(line)
            if len(band) < LONGEST_BAND:
                continue
            yield from _band(band)
            band = []
            continue
        yield from _band(band)
        band = []
        yield _prose(line)
    yield from _band(band)


def _band(lines: Sequence[str]) -> Iterator[Item]:
    if not lines:
        return
    tabbed = [line for line in lines if "\t" in line.strip()]
    if tabbed and _is_separated(tabbed):
        rows = [[_words(cell) for cell in _TABS.split(line.strip())] for line in lines]
        yield from table_lines(rows, WIDTH)
        return
    yield TypedColumns(lines=tuple(line.expandtabs(_TAB_STOPS).rstrip() for line in lines))


def _is_separated(lines: Sequence[str]) -> bool:
    """Return whether each tab ends a cell; otherwise tabs only move to the next stop."""
    counts = {line.strip().count("\t") for line in lines}
    doubled = any(re.search(r"\t *\t", line.strip()) for line in lines)
    spaced = any(re.search(r"\S {3,}\S", line) for line in lines)
    return not spaced and (not doubled or (len(counts) == 1 and len(lines) > 1))


def _prose(line: str) -> Line:
    indent = min(24, len(line) - len(line.lstrip(" ")))
    return prose(_words(line), indent=indent, width=WIDTH)


def _words(text: str) -> tuple[TypedWord, ...]:
    return tuple(
        TypedWord(text=STRIKES.sub("", word[0]), struck=bool(STRIKES.search(word[0])))
        for word in WORD.finditer(text)
    )


def _struck(line: str) -> bool:
    return not line.isascii() and bool(STRIKES.search(line))
