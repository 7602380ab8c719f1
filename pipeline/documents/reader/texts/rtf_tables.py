"""The tables of RTF: control words end cells and rows; edges say which columns a cell covers."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..types import HIDDEN_TEXT, TRACKED_CHANGES
from .blocks import Block, Paragraph, TypedCell, TypedRow, TypedTable
from .lines import Warned

#: Twips by which the edges of one column differ from row to row.
_SAME_EDGE = 60


@dataclass(kw_only=True)
class RowLook:
    """The definition of a row: right edges, merged cells, and whether it is a heading."""

    edges: list[int] = field(default_factory=list)
    joined: list[bool] = field(default_factory=list)
    #: Number of the colour of each cell's ground; 0 if none is stated.
    grounds: list[int] = field(default_factory=list)
    deleted: list[bool] = field(default_factory=list)
    is_header: bool = False
    is_deleted: bool = False
    #: The row has an exact height in which nothing is seen.
    is_flat: bool = False
    next_ground: int = 0
    is_next_deleted: bool = False
    _next_joined: bool = False

    def join_next(self) -> None:
        """Note that the next cell continues the cell before or above."""
        self._next_joined = True

    def edge(self, at: int) -> None:
        """Note the right edge of the next cell, in twips."""
        self.edges.append(at)
        self.joined.append(self._next_joined)
        self.grounds.append(self.next_ground)
        self.deleted.append(self.is_next_deleted)
        self._next_joined = self.is_next_deleted = False
        self.next_ground = 0


@dataclass(kw_only=True)
class _Row:
    cells: list[list[Block]]
    look: RowLook


class RtfTable:
    """One table under construction."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._cells: list[list[Block]] = []
        #: Blocks of the cell that is not ended yet.
        self.open: list[Block] = []

    @property
    def cell_number(self) -> int:
        """The number of cells of the open row that are ended."""
        return len(self._cells)

    def end_cell(self) -> None:
        """End the open cell."""
        self._cells.append(self.open)
        self.open = []

    def end_row(self, look: RowLook) -> None:
        """End the row."""
        if self.open:
            self.end_cell()
        if self._cells and not look.is_deleted:
            self._rows.append(_Row(cells=self._cells, look=look))
        self._cells = []

    def table(self) -> TypedTable:
        """Return the table with the columns that its edges define."""
        self.end_row(RowLook())
        edges = _edges(self._rows)
        return TypedTable(rows=[_typed(row, edges) for row in self._rows])


def _shown(blocks: list[Block], look: RowLook, number: int) -> list[Block]:
    """Return the blocks of a cell that are on the page, or a warning in their place."""
    if number >= len(look.edges):
        is_joined = is_deleted = False
    else:
        is_joined, is_deleted = look.joined[number], look.deleted[number]
    if not (is_joined or is_deleted or look.is_flat):
        return blocks
    warning = TRACKED_CHANGES if is_deleted else HIDDEN_TEXT
    return [Warned(name=warning)] if any(map(_has_text, blocks)) else []


def _has_text(block: Block) -> bool:
    if isinstance(block, Paragraph):
        return any(run.text.strip() for run in block.runs)
    return isinstance(block, TypedTable | Warned)


def _edges(rows: list[_Row]) -> list[int]:
    """Return the edges of all rows, without edges that differ only slightly."""
    found: list[int] = []
    for edge in sorted({edge for row in rows for edge in row.look.edges}):
        if not found or edge - found[-1] > _SAME_EDGE:
            found.append(edge)
    return found


def _typed(row: _Row, edges: list[int]) -> TypedRow:
    own = row.look.edges
    cells, left = [], -1
    for i, blocks in enumerate(row.cells):
        span = 1
        if i < len(own):
            right = max(
                (k for k, edge in enumerate(edges) if edge <= own[i] + _SAME_EDGE), default=left + 1
            )
            span, left = max(1, right - left), max(right, left + 1)
        cells.append(TypedCell(blocks=_shown(blocks, row.look, i), span=span))
    return TypedRow(cells=cells, is_header=row.look.is_header)
