"""Paragraphs and tables of RTF, DOCX and C-CDA, and how they become lines.

A table becomes rows with cells, unless its cells only place blocks side by side. Such blocks follow
each other, so that no entry of a list is beside an entry of another list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from . import characters
from .lines import (
    Blank,
    Framed,
    Item,
    Line,
    PageBreak,
    SectionEnd,
    TypedWord,
    Warned,
    prose,
    table_lines,
)
from .typesetting import WIDTH

_PIECE = re.compile(r"[^\S\n\t]+|\n|\t|[^\s]{1,1000}")
_NUMBER_FIRST = re.compile(r"\W{0,3}\d")
#: Points of an indent, per character of paper.
_POINTS = 6.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Text with one look; `\\t` is a tab and `\\n` a line break."""

    text: str
    struck: bool = False
    shift: int = 0


@dataclass(kw_only=True, slots=True)
class Paragraph:
    """Runs, and a marker such as `1.` or `•` that the author did not type."""

    runs: list[Run] = field(default_factory=list)
    marker: str = ""
    is_heading: bool = False


@dataclass(kw_only=True, slots=True)
class TypedCell:
    """The blocks of one cell, and the columns that it covers."""

    blocks: list[Block] = field(default_factory=list)
    span: int = 1


@dataclass(kw_only=True, slots=True)
class TypedRow:
    """The cells of a row; `is_header` rows are repeated on each page of their table."""

    cells: list[TypedCell] = field(default_factory=list)
    is_header: bool = False


@dataclass(kw_only=True, slots=True)
class TypedTable:
    """Rows of cells."""

    rows: list[TypedRow] = field(default_factory=list)


Block = Paragraph | TypedTable | PageBreak | Warned | Blank | Framed | SectionEnd
Words = tuple[TypedWord, ...]


def items_of(blocks: Iterable[Block]) -> Iterator[Item]:
    """Yield the lines of the blocks. Raises InputRefused where a text leaves a value open."""
    for block in blocks:
        if isinstance(block, Paragraph):
            yield from _paragraph(block)
        elif isinstance(block, TypedTable):
            yield Blank()
            yield from _table(block)
            yield Blank()
        elif not isinstance(block, SectionEnd):
            yield block


def plain_text(blocks: Iterable[Block]) -> str:
    """Return the words of blocks with single spaces."""
    words = (w.text for i in items_of(blocks) if isinstance(i, Line) for c in i.cells for w in c)
    return " ".join(words)


def _paragraph(paragraph: Paragraph) -> Iterator[Item]:
    if paragraph.is_heading:
        yield Blank()
    rows, warnings = _rows(paragraph)
    yield from (Warned(name=name) for name in warnings)
    for cells in rows:
        while cells and not cells[0]:
            cells.pop(0)
        if not cells:
            yield Blank()
        elif len(cells) == 1:
            yield prose(cells[0], width=WIDTH)
        else:
            yield from table_lines([cells], WIDTH)


def _rows(paragraph: Paragraph) -> tuple[list[list[Words]], tuple[str, ...]]:
    """Return the lines of a paragraph as cells between tabs, and the warnings about its text."""
    marker = [Run(text=f"{paragraph.marker} ")] if paragraph.marker else []
    runs = [*marker, *paragraph.runs]
    # A sign and its number can be in different runs.
    _, warnings = characters.normalised("".join(run.text for run in runs))
    rows: list[list[list[TypedWord]]] = [[[]]]
    is_open = False
    for (struck, shift), same in groupby(runs, key=lambda run: (run.struck, run.shift)):
        text, _ = characters.normalised("".join(run.text for run in same), is_part=True)
        for match in _PIECE.finditer(text):
            piece = match[0]
            if piece == "\n":
                rows.append([[]])
            elif piece == "\t":
                rows[-1].append([])
            elif not piece.isspace():
                word = TypedWord(text=piece, struck=struck, shift=shift, is_glued=is_open)
                rows[-1][-1].append(word)
            is_open = not piece.isspace()
    return [[tuple(cell) for cell in row] for row in rows], warnings


def _table(table: TypedTable) -> Iterator[Item]:
    count = max((sum(cell.span for cell in row.cells) for row in table.rows), default=0)
    if count <= 1 or (len(table.rows) == 1 and _has_blocks(table.rows[0])):
        for row in table.rows:
            for cell in row.cells:
                yield from items_of(cell.blocks)
        return
    has_headings = len(table.rows) > 1 and all(
        len(_lines(cell)) <= 1 for cell in table.rows[0].cells
    )
    found: list[tuple[list[Words], bool]] = []
    for row in table.rows:
        yield from _warnings(row)
        simple = _simple_rows(row, has_headings)
        if simple is None:
            yield from _set(found)
            found = []
            for cell in row.cells:
                yield from items_of(cell.blocks)
        else:
            found += [(cells, row.is_header) for cells in simple if any(cells)]
    yield from _set(found)


def _set(rows: Sequence[tuple[list[Words], bool]]) -> Iterator[Item]:
    lines = table_lines([cells for cells, _ in rows], WIDTH)
    headers = tuple(line for line, (_, is_header) in zip(lines, rows, strict=True) if is_header)
    for line, (_, is_header) in zip(lines, rows, strict=True):
        yield line if is_header else replace(line, headers=headers)


def _warnings(row: TypedRow) -> Iterator[Warned]:
    for cell in row.cells:
        for block in cell.blocks:
            if isinstance(block, Warned):
                yield block
            elif isinstance(block, Paragraph):
                yield from (Warned(name=name) for name in _rows(block)[1])


def _has_blocks(row: TypedRow) -> bool:
    return any(len(_lines(cell)) > 1 or _nested(cell) for cell in row.cells)


def _nested(cell: TypedCell) -> bool:
    return any(isinstance(block, TypedTable) for block in cell.blocks)


def _simple_rows(row: TypedRow, has_headings: bool) -> list[list[Words]] | None:
    """Return the rows of text of a row; None if its cells are blocks side by side.

    Lines below each other in a cell are one cell, unless they begin with numbers. Numbers belong to
    the lines beside them if all cells have equally many lines, below a row of headings.
    """
    if any(_nested(cell) for cell in row.cells):
        return None
    cells = [_lines(cell) for cell in row.cells]
    several = [lines for lines in cells if len(lines) > 1]
    stacked = any(sum(map(_is_number, lines)) > 1 for lines in several)
    if not several or not stacked:
        return [_spread(row, [tuple(w for line in lines for w in line) for lines in cells])]
    counts = {len(lines) for lines in several}
    if has_headings and len(counts) == 1 and len(several) > 1:
        return [
            _spread(row, [lines[i] if i < len(lines) else () for lines in cells])
            for i in range(counts.pop())
        ]
    return None


def _is_number(line: Words) -> bool:
    return bool(line) and bool(_NUMBER_FIRST.match(line[0].text))


def _spread(row: TypedRow, texts: Sequence[Words]) -> list[Words]:
    """Return the texts with an empty cell for each further column that a cell covers."""
    found: list[Words] = []
    for cell, text in zip(row.cells, texts, strict=True):
        found += [text, *([()] * (cell.span - 1))]
    return found


def _lines(cell: TypedCell) -> list[Words]:
    """Return the lines of a cell that have words; a tab inside a cell is a space."""
    found = []
    for block in cell.blocks:
        if isinstance(block, Paragraph):
            for row in _rows(block)[0]:
                words = tuple(word for part in row for word in part)
                if words:
                    found.append(words)
    return found
