"""Lines set on pages of paper: each word gets a place, and long texts get page ends.

A page is a letter page (612 × 792 points) of 60 lines of 96 characters in a type of 10 points. A
table or a typewriter's columns that need more characters make their page wider.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice, takewhile

from ..check_glyphs import as_boxes, glyphs_of
from ..page_layout import in_given_rows, lay_out
from ..placed_words import PageWord
from ..raised import settle
from ..types import Word
from .lines import (
    WORD,
    Blank,
    Framed,
    Item,
    Line,
    PageBreak,
    TypedColumns,
    TypedWord,
    Warned,
    length,
)

ROWS = 60
WIDTH = 96
HEIGHT_POINTS = 792.0
#: Points of a character across, of a line, of the type, and of the margins.
ACROSS, DOWN, SIZE = 6.0, 12.0, 10.0
LEFT, TOP = 18.0, 36.0
#: A page ends at an empty line if one is within this many last lines.
LOOK_BACK = 30
LONGEST_HEADING = 60


@dataclass(frozen=True, kw_only=True)
class Placed:
    """The tokens of one item on its page, by cell; a block of columns has one cell."""

    item: Line | TypedColumns
    cells: tuple[tuple[tuple[TypedWord, int, int], ...], ...]
    """TypedWord, row and column, both 0-based."""


@dataclass(frozen=True, kw_only=True)
class TypedPage:
    """One page: its items from top to bottom, and its width in characters."""

    placed: tuple[Placed, ...]
    width: int = WIDTH
    warnings: tuple[str, ...] = ()
    unread_share: float = 0.0

    @property
    def points(self) -> tuple[float, float]:
        """Return width and height of the page in points."""
        return max(WIDTH, self.width) * ACROSS + 2 * LEFT, HEIGHT_POINTS

    def words(self) -> list[list[list[PageWord]]]:
        """Return the words of each item and cell at their places, raised parts on their own."""
        return [[self._cell(cell) for cell in placed.cells] for placed in self.placed]

    def text(self) -> tuple[str, tuple[Word, ...]]:
        """Return the page text, and each word with its offsets."""
        pieces: list[tuple[str, tuple[Word, ...]]] = []
        items = list(zip(self.placed, self.words(), strict=True))
        seen = glyphs_of(
            token.text for placed in self.placed for cell in placed.cells for token, _, _ in cell
        )
        for is_line, group in groupby(items, key=lambda pair: isinstance(pair[0].item, Line)):
            rows = [[as_boxes(settle(cell), seen) for cell in cells] for _, cells in group]
            if is_line:
                pieces.append(in_given_rows(rows))
            else:
                pieces += [lay_out(cell) for row in rows for cell in row]
        return _joined(pieces)

    def _cell(self, cell: Sequence[tuple[TypedWord, int, int]]) -> list[PageWord]:
        return [self._word(token, row, column) for token, row, column in cell]

    def _word(self, token: TypedWord, row: int, column: int) -> PageWord:
        width, height = self.points
        left, top = LEFT + column * ACROSS, TOP + row * DOWN
        right = left + len(token.text) * ACROSS
        rise = {1: 3.5, -1: -1.5}.get(token.shift, 0.0)
        return PageWord(
            text=token.text,
            left=left,
            top=top,
            right=right,
            bottom=top + DOWN,
            baseline=top + 9.5 - rise,
            size=SIZE if not token.shift else 0.6 * SIZE,
            box=(
                min(1.0, left / width),
                min(1.0, top / height),
                min(1.0, right / width),
                min(1.0, (top + DOWN) / height),
            ),
            struck=token.struck,
        )


Set = list[tuple[Item, int]]
"""Items with their rows."""


def paginate(items: Iterable[Item], most: int) -> list[TypedPage]:
    """Return the pages of a text; at most one page more than `most`."""
    pages = list(islice(_pages(items), most + 1))
    found = []
    framed: Framed | None = None
    for number, page in enumerate(pages, start=1):
        begun = [item for item, _ in takewhile(lambda part: part[1] == 0, page)]
        new = [item for item in begun if isinstance(item, Framed)]
        framed = new[-1] if new else framed
        if framed:
            above, below = framed.frame(number, len(pages), bool(new))
            page = [*_in_rows(above), *page, *_in_rows(below)]
        found.append(_page(page))
        framed = next((i for i, _ in reversed(page) if isinstance(i, Framed)), framed)
    return found


def _in_rows(items: Iterable[Item]) -> Set:
    return [part for item in items for part in _parts(item)]


def _pages(items: Iterable[Item]) -> Iterator[Set]:
    page: Set = []
    room, used, is_open = ROWS, 0, False
    for item in items:
        if isinstance(item, Framed):
            ends = (rows for part in item.frame(1, 1, False) for _, rows in _in_rows(part))
            room = max(ROWS // 2, ROWS - sum(ends))
        if isinstance(item, PageBreak):
            yield page
            page, used, is_open = [], 0, False
            continue
        is_open = True
        for part, height in _parts(item):
            while used + height > room and used:
                full, page = _divided(page)
                yield full
                page = _with_headers(page, part)
                used = sum(rows for _, rows in page)
            page.append((part, height))
            used += height
    if is_open:
        yield page


def _with_headers(page: Set, following: Item) -> Set:
    """Return the rest of a page below the headings of the table that it continues."""
    first = page[0][0] if page else following
    if not isinstance(first, Line) or not first.headers:
        return page
    headers: Set = [part for line in first.headers for part in _parts(line)]
    if sum(rows for _, rows in headers) > ROWS // 2:
        return page
    return [*headers, *page]


def _divided(page: Set) -> tuple[Set, Set]:
    """Divide a full page at the last empty line near its end, or at its end.

    An empty line below a heading is no place for the end of a page.
    """
    rows = 0
    for at in range(len(page) - 1, 0, -1):
        if isinstance(page[at][0], Blank) and not _is_heading(page, at - 1):
            return page[:at], page[at + 1 :]
        rows += page[at][1]
        if rows > LOOK_BACK:
            break
    return page, []


def _is_heading(page: Set, at: int) -> bool:
    """Return whether a short line has empty lines above and below."""
    item = page[at][0]
    alone = at == 0 or isinstance(page[at - 1][0], Blank)
    return alone and isinstance(item, Line) and length(item.cells[0]) <= LONGEST_HEADING


def _parts(item: Item) -> Iterator[tuple[Item, int]]:
    """Yield an item with its rows; an item that is higher than a page comes in parts."""
    if isinstance(item, TypedColumns):
        for start in range(0, len(item.lines), ROWS):
            lines = item.lines[start : start + ROWS]
            yield TypedColumns(lines=lines), len(lines)
        return
    if not isinstance(item, Line):
        yield item, 0 if isinstance(item, Warned | Framed) else 1
        return
    if all(length(cell) <= room for cell, (_, room) in zip(item.cells, item.places, strict=True)):
        yield item, 1
        return
    height = 1 + max((at[1] for cell in _set(item) for at in cell[-1:]), default=0)
    if height <= ROWS:
        yield item, height
        return
    for parts in _cut(item):
        yield parts, 1 + max((at[1] for cell in _set(parts) for at in cell[-1:]), default=0)


def _cut(line: Line) -> Iterator[Line]:
    """Yield the rows of a very long line, a page of rows at a time."""
    cells = [list(cell) for cell in _set(line)]
    last = max(cell[-1][1] for cell in cells if cell)
    starts = [0] * len(cells)
    for first in range(0, last + 1, ROWS):
        parts: list[tuple[TypedWord, ...]] = []
        for i, cell in enumerate(cells):
            end = starts[i]
            while end < len(cell) and cell[end][1] < first + ROWS:
                end += 1
            parts.append(tuple(token for token, _, _ in cell[starts[i] : end]))
            starts[i] = end
        yield replace(line, cells=tuple(parts))


def _set(line: Line) -> list[list[tuple[TypedWord, int, int]]]:
    """Return each token of each cell with its row and column; a cell wraps within its width."""
    found = []
    for cell, (start, width) in zip(line.cells, line.places, strict=True):
        row, column = 0, start
        placed: list[tuple[TypedWord, int, int]] = []
        for token in cell:
            space = bool(placed) and not token.is_glued
            if placed and column + space + len(token.text) > start + width:
                row, column, space = row + 1, start, False
            column += space
            placed.append((token, row, column))
            column += len(token.text)
        found.append(placed)
    return found


def _page(page: Set) -> TypedPage:
    row, width = 0, 1
    placed: list[Placed] = []
    warned = [item for item, _ in page if isinstance(item, Warned)]
    for item, height in page:
        if isinstance(item, Line):
            cells = tuple(tuple((t, row + r, c) for t, r, c in cell) for cell in _set(item))
            placed.append(Placed(item=item, cells=cells))
        elif isinstance(item, TypedColumns):
            found = tuple(
                (TypedWord(text=match[0]), row + i, match.start())
                for i, line in enumerate(item.lines)
                for match in WORD.finditer(line)
            )
            placed.append(Placed(item=item, cells=(found,)))
        row += height
    ends = [c + len(t.text) for item in placed for cell in item.cells for t, _, c in cell]
    width = max(ends, default=width)
    return TypedPage(
        placed=tuple(placed),
        width=width,
        warnings=tuple(dict.fromkeys(item.name for item in warned)),
        unread_share=min(1.0, sum(item.unread_share for item in warned)),
    )


def _joined(pieces: Iterable[tuple[str, tuple[Word, ...]]]) -> tuple[str, tuple[Word, ...]]:
    text, words = "", []
    for piece, found in pieces:
        if not piece:
            continue
        text += "\n" if text else ""
        words += [
            replace(word, start=word.start + len(text), end=word.end + len(text)) for word in found
        ]
        text += piece
    return text, tuple(words)
