"""The rows and cells of one block: fragments in, lines of cells out.

Cells need column positions that several lines share. A line that continues a wrapped cell joins the
row of that cell.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from statistics import median

from .cell_words import (
    continues,
    has_label,
    is_column_head,
    is_marker,
    is_section,
    is_styled,
    is_value,
)
from .fragments import Fragment
from .placed_words import Marks

#: A cell may have several printed lines. A row of cells is one line of the page text.
Cell = list[Fragment]
Row = list[Cell]
_Line = tuple[Sequence[Fragment], Row]

#: Difference of baselines in sizes of the type within one printed line.
SAME_LINE = 0.35
#: Distance in sizes of the type below which two lines without common columns are one row.
CENTRED = 0.8
#: Distance in sizes of the type above which a line does not belong to the table above it.
APART = 3.2
#: Distance of lines in sizes of the type up to which a line may continue a cell.
TIGHT = 1.45
#: Distance of edges in sizes of the type at which cells share a column position.
ALIGNED = 0.6
#: Gap in sizes of the type that is wider than a space, at the beginning of a column.
LOOSE = 0.45
#: Lines of one fragment that a table may contain between two rows.
BETWEEN = 3


def rows_of(fragments: Sequence[Fragment], marks: Marks) -> list[Row]:
    """Return the rows of a block from top to bottom."""
    lines = _lines(fragments)
    rows: list[Row] = []
    at = 0
    while at < len(lines):
        table = PrintedTable.grown(lines, at)
        if table is None:
            rows.append(_plain(lines[at]))
            at += 1
        else:
            rows.extend(table.rows(marks))
            at += len(table.lines)
    return rows


def _lines(fragments: Sequence[Fragment]) -> list[list[Fragment]]:
    lines: list[list[Fragment]] = []
    for fragment in sorted(fragments, key=lambda f: (f.baseline, f.left)):
        line = lines[-1] if lines else None
        if (
            line
            and fragment.baseline - line[0].baseline <= SAME_LINE * min(fragment.size, line[0].size)
            and not any(f.left < fragment.right and fragment.left < f.right for f in line)
        ):
            line.append(fragment)
        else:
            lines.append([fragment])
    for line in lines:
        line.sort(key=lambda f: f.left)
    return lines


def _plain(line: Sequence[Fragment]) -> Row:
    """Return a line outside tables: cells only between labels with their values."""
    row: Row = [[line[0]]]
    for fragment in line[1:]:
        labels = has_label(fragment.text) and has_label(row[-1][0].text)
        if labels:
            row.append([fragment])
        else:
            row[-1].append(fragment)
    return row


class TableColumn:
    """The horizontal extent of the cells below each other."""

    def __init__(self, fragment: Fragment) -> None:
        self.left, self.right = fragment.left, fragment.right
        self.cells = [fragment]

    def hits(self, fragment: Fragment) -> bool:
        return fragment.left < self.right and self.left < fragment.right

    def add(self, fragment: Fragment) -> None:
        self.left, self.right = min(self.left, fragment.left), max(self.right, fragment.right)
        self.cells.append(fragment)

    def shares_edge(self, fragment: Fragment) -> bool:
        """Return whether a cell begins, ends or has its middle where another cell does."""
        near = ALIGNED * fragment.size
        return any(
            abs(cell.left - fragment.left) <= near
            or abs(cell.right - fragment.right) <= near
            or abs(cell.left + cell.right - fragment.left - fragment.right) <= 2 * near
            for cell in self.cells
        )

    def is_aligned(self) -> bool:
        """Return whether at least two cells share their left, right or middle position."""
        for edge in (
            [f.left for f in self.cells],
            [f.right for f in self.cells],
            [(f.left + f.right) / 2 for f in self.cells],
        ):
            ordered = sorted(edge)
            near = ALIGNED * self.cells[0].size
            pairs = sum(b - a <= near for a, b in itertools.pairwise(ordered))
            if pairs and 2 * pairs >= len(ordered) - 1:
                return True
        return False


class PrintedTable:
    """Lines with common columns, as they are collected."""

    def __init__(self, line: list[Fragment]) -> None:
        self.lines = [line]
        self._columns = [TableColumn(fragment) for fragment in line]

    @classmethod
    def grown(cls, lines: Sequence[list[Fragment]], start: int) -> PrintedTable | None:
        """Return the table that begins with the line at `start`, or None."""
        if len(lines[start]) < 2:
            return None
        table = cls(lines[start])
        waiting: list[list[Fragment]] = []
        for line in lines[start + 1 :]:
            last = (waiting or table.lines)[-1]
            if line[0].baseline - last[0].baseline > APART * line[0].size:
                break
            if len(line) == 1:
                waiting.append(line)
                if len(waiting) > BETWEEN or line[0].size > 1.15 * lines[start][0].size:
                    break
                continue
            far = table.is_far(line)
            fitted = table.fitted(line, strictly=bool(waiting) or far)
            if fitted is None or _begins_other(line, table.lines):
                break
            if far and not all(map(table.has_column, fitted)):
                break
            for passed in waiting:
                table.lines.append(table.parted(passed))
            waiting = []
            table.take(fitted)
        for line in waiting[:BETWEEN]:
            if not table.is_tail(line[0]):
                break
            table.lines.append(table.parted(line))
        return table if table.is_table() else None

    def fitted(self, line: list[Fragment], *, strictly: bool) -> list[Fragment] | None:
        """Return the line with one cell per column, or None if the line has other columns.

        `strictly` asks for the edges of the columns, because other lines part the line from the
        table.
        """
        if not strictly:
            line = self.parted(line)
        bridging = [f for f in line if len(self._hit(f)) > 1]
        taken = [self._hit(fragment)[0] for fragment in line if self._hit(fragment)]
        if len(bridging) > 1 or len(set(taken)) < len(taken):
            return None
        if bridging and len(line) < 4 and not self._overhangs(bridging[0], taken):
            return None
        if not taken:
            return None
        aligned = sum(any(column.shares_edge(f) for column in self._columns) for f in line)
        return line if aligned >= (0.66 if strictly else 0.5) * len(line) else None

    def is_far(self, line: Sequence[Fragment]) -> bool:
        """Return whether a line is much farther below the last row than the rows are apart."""
        steps = [b[0].baseline - a[0].baseline for a, b in itertools.pairwise(self.lines)]
        step = line[0].baseline - self.lines[-1][0].baseline
        return bool(steps) and step > 1.5 * median(steps)

    def has_column(self, fragment: Fragment) -> bool:
        """Return whether a column exists where the fragment is."""
        return bool(self._hit(fragment))

    def _overhangs(self, fragment: Fragment, taken: Sequence[int]) -> bool:
        """Return whether a long cell reaches from its column into empty cells."""
        first, *others = self._hit(fragment)
        begins = any(
            abs(cell.left - fragment.left) <= ALIGNED * fragment.size
            for cell in self._columns[first].cells
        )
        return begins and not set(others) & set(taken)

    def parted(self, line: list[Fragment]) -> list[Fragment]:
        """Split a fragment whose words stand at the beginnings of two columns."""
        found: list[Fragment] = []
        for fragment in line:
            rest = fragment
            for column in self._columns[1:]:
                if not rest.left < column.left - 1 < rest.right:
                    continue
                index = next(
                    (i for i in range(1, len(rest.words)) if _starts(rest, i, column)), None
                )
                before = self._columns[self._columns.index(column) - 1]
                if index is None or rest.words[index - 1].right < before.left:
                    continue
                head, rest = rest.split(index)
                found.append(head)
            found.append(rest)
        return found

    def take(self, line: list[Fragment]) -> None:
        self.lines.append(line)
        for fragment in line:
            hit = self._hit(fragment)
            if len(hit) == 1:
                self._columns[hit[0]].add(fragment)
            elif not hit:
                self._columns.append(TableColumn(fragment))
                self._columns.sort(key=lambda column: column.left)

    def is_tail(self, fragment: Fragment) -> bool:
        """Return whether a single fragment below the rows continues a cell."""
        last = self.lines[-1]
        hit = self._hit(fragment)
        step = fragment.baseline - last[0].baseline
        if len(hit) != 1 or step > TIGHT * fragment.size or is_styled(fragment.text):
            return False
        if hit[0] == 0 and not continues(fragment.text):
            return False
        above = [f for f in last if hit[0] in self._hit(f)]
        return bool(above) and not is_value(fragment.text)

    def is_table(self) -> bool:
        """Return whether several lines share columns, and the columns are no accident of prose."""
        shared = [column for column in self._columns if len(column.cells) > 1]
        full = [line for line in self.lines if len(line) > 1]
        if len(full) < 2 or len(shared) < 2:
            return False
        if not any(column.is_aligned() for column in shared[1:]):
            return False
        prose = sum(sum(len(f.words) > 3 for f in line) > 1 for line in full)
        narrow = all(b.left - a.right < 1.3 * a.size for line in full for a, b in _pairs(line))
        return not (narrow and 2 * prose > len(full))

    def rows(self, marks: Marks) -> list[Row]:
        """Return the rows, with an empty cell for each column that a row lacks."""
        columns = self._final_columns()
        placed = [(line, _cells(line, columns)) for line in self.lines]
        return [_trim(row) for row in _Wrapping(placed, columns, marks).joined()]

    def _final_columns(self) -> list[TableColumn]:
        """Return the columns; a column of list markers is part of the column behind it.

        A heading beside its column, and not above its column, is part of that column.
        """
        columns = list(self._columns)
        at = 0
        while at + 1 < len(columns):
            one, other = columns[at], columns[at + 1]
            markers = at == 0 and all(is_marker(f.text) for f in one.cells)
            near = other.left - one.right < 2.0 * one.cells[0].size
            if markers or (near and self._heads(one, other) is not self._heads(other, one)):
                for fragment in other.cells:
                    one.add(fragment)
                del columns[at + 1]
            else:
                at += 1
        return columns

    def _heads(self, one: TableColumn, other: TableColumn) -> bool:
        """Return whether `one` holds only a cell of the first line, where `other` is empty."""
        first = set(map(id, self.lines[0]))
        return all(id(f) in first for f in one.cells) and not any(
            id(f) in first for f in other.cells
        )

    def _hit(self, fragment: Fragment) -> list[int]:
        return [i for i, column in enumerate(self._columns) if column.hits(fragment)]


def _starts(fragment: Fragment, index: int, column: TableColumn) -> bool:
    """Return whether the words from `index` on are a cell of `column`."""
    word = fragment.words[index]
    loose = word.left - fragment.words[index - 1].right > LOOSE * word.size
    if abs(word.left - column.left) < 1.5:
        return loose or len(column.cells) > 1
    ends = abs(fragment.right - column.right) < 1.5
    centred = abs(word.left + fragment.right - column.left - column.right) < 3
    return loose and (ends or centred)


def _begins_other(line: Sequence[Fragment], rows: Sequence[Sequence[Fragment]]) -> bool:
    """Return whether a line cannot be a further row: a row of headings, or of labels."""
    if _is_header(line):
        return not _is_header(rows[-1])
    labels = all(has_label(f.text) for f in line)
    return labels and len(rows) > 1 and not any(has_label(row[0].text) for row in rows)


def _is_header(line: Sequence[Fragment]) -> bool:
    """Return whether a line holds headings of columns and no value."""
    heads = sum(is_column_head(f.text) for f in line)
    digits = any(char.isdigit() for f in line for char in f.text)
    return heads >= 2 and 2 * heads >= len(line) and not digits


def _pairs(line: Sequence[Fragment]) -> Iterator[tuple[Fragment, Fragment]]:
    return itertools.pairwise(line)


def _cells(line: Sequence[Fragment], columns: Sequence[TableColumn]) -> Row:
    """Place the fragments of a line; a fragment over several columns goes to the first."""
    row: Row = [[] for _ in columns]
    for fragment in line:
        middle = (fragment.left + fragment.right) / 2
        hit = [i for i, column in enumerate(columns) if column.hits(fragment)]
        if not hit:
            hit = [min(range(len(columns)), key=lambda i: abs(columns[i].left - middle))]
        free = [i for i in hit if not row[i]] or hit
        row[free[0]].append(fragment)
    return row


def _trim(row: Row) -> Row:
    """Drop the empty cells at the end."""
    while len(row) > 1 and not row[-1]:
        row = row[:-1]
    return row


def _first_width(fragment: Fragment) -> float:
    return fragment.words[0].right - fragment.words[0].left


def _is_number(cell: Cell) -> bool:
    return bool(cell) and is_value(cell[-1].text) and any(c.isdigit() for c in cell[-1].text)


class _Wrapping:
    """Joins printed lines to rows where a cell has several lines."""

    def __init__(
        self,
        placed: Sequence[_Line],
        columns: Sequence[TableColumn],
        marks: Marks,
    ) -> None:
        self._placed = placed
        self._columns = columns
        #: False if the distances show that most rows have several lines.
        self._pitch_is_usual = True
        self._pitch = self._row_pitch()
        self._edges = self._row_edges(marks)

    def joined(self) -> list[Row]:
        """Return the rows."""
        rows: list[Row] = []
        previous: _Line | None = None
        for line, cells in self._placed:
            if previous is not None and self._joins(*previous, rows[-1], line, cells):
                rows[-1] = [above + below for above, below in zip(rows[-1], cells, strict=True)]
            else:
                rows.append(cells)
            previous = line, cells
        return rows

    def _row_pitch(self) -> float:
        """Return the usual distance of two rows in points."""
        full = self._full_pairs(0) or self._full_pairs(3)
        steps = [b[0].baseline - a[0].baseline for (a, _), (b, _) in full]
        if not steps:
            return 0.0
        usual = median(steps)
        # Rows of several lines: the small distances lie inside the rows, the large ones between.
        small = [step for step in steps if step < 1.25 * min(steps)]
        large = [step for step in steps if step >= 1.25 * min(steps)]
        if not large or min(steps) > TIGHT * self._placed[0][0][0].size:
            return usual
        inner = [pair for pair, step in zip(full, steps, strict=True) if step in small]
        wrapped = sum(self._is_wrapped(above, below) for (_, above), (_, below) in inner)
        if wrapped < 0.6 * len(inner):
            return usual
        self._pitch_is_usual = False
        return min(large)

    def _full_pairs(self, between: int) -> list[tuple[_Line, _Line]]:
        """Return pairs of lines with several cells, and at most `between` lines between them."""
        found: list[tuple[_Line, _Line]] = []
        last: tuple[int, _Line] | None = None
        for at, (line, cells) in enumerate(self._placed):
            if self._is_heading(line):
                last = None
            elif sum(map(bool, cells)) > 1 and cells[0]:
                if last and at - last[0] - 1 <= between:
                    found.append((last[1], (line, cells)))
                last = at, (line, cells)
        return found

    def _is_wrapped(self, above: Row, below: Row) -> bool:
        """Return whether the words below had no room at the end of each cell above."""
        return continues(below[0][0].text) and all(
            upper[-1].right + 0.25 * upper[-1].size + _first_width(lower[0]) > column.right - 1
            for upper, lower, column in zip(above, below, self._columns, strict=True)
            if upper and lower
        )

    def _row_edges(self, marks: Marks) -> list[float]:
        """Return the heights of the lines or shades between rows, if they part all rows."""
        left, right = self._columns[0].left, self._columns[-1].right
        top, bottom = self._placed[0][0][0].baseline, self._placed[-1][0][0].baseline
        heights: set[float] = set()
        for rule in (*marks.rules, *marks.frames):
            if min(right, rule.right) - max(left, rule.left) < 0.6 * (right - left):
                continue
            heights |= {y for y in (rule.top, rule.bottom) if top < y < bottom}
        cells = [f for f in marks.frames if f.top < bottom and f.bottom > top]
        if not heights and len(cells) >= len(self._columns):
            heights = {y for f in cells for y in (f.top, f.bottom) if top < y < bottom}
        edges: list[float] = []
        for y in sorted(heights):
            if not edges or y - edges[-1] > 3:
                edges.append(y)
        if len(edges) < 2:
            return []
        counts = [0] * (len(edges) + 1)
        for line, cells_ in self._placed:
            if sum(map(bool, cells_)) > 1:
                counts[sum(y < line[0].baseline for y in edges)] += 1
        return edges if sum(count > 2 for count in counts) == 0 else []

    def _joins(
        self,
        previous: Sequence[Fragment],
        previous_cells: Row,
        row: Row,
        line: Sequence[Fragment],
        cells: Row,
    ) -> bool:
        """Return whether `line` is a further line of the cells of `row`."""
        size = max(line[0].size, previous[0].size)
        distance = line[0].baseline - previous[0].baseline
        step = distance / size
        if any(_is_number(a) and _is_number(b) for a, b in zip(row, cells, strict=True)):
            return False
        if self._edges:
            between = any(previous[0].baseline < y < line[0].baseline for y in self._edges)
            return not between and step <= 2 * TIGHT
        common = any(above and below for above, below in zip(previous_cells, cells, strict=True))
        if step < CENTRED and not common:
            return True
        if step > TIGHT or self._is_heading(previous):
            return False
        if self._is_heading(line):
            return distance < 0.7 * self._pitch
        if distance < 0.82 * self._pitch:
            return not self._begins(row, cells)
        return self._continues(row, cells)

    def _begins(self, row: Row, cells: Row) -> bool:
        """Return whether a line with several cells begins a row, by its first word."""
        if not (row[0] and cells[0]) or sum(map(bool, cells)) < 2:
            return False
        return self._pitch_is_usual and not continues(cells[0][0].text)

    @staticmethod
    def _is_heading(line: Sequence[Fragment]) -> bool:
        return len(line) == 1 and (is_section(line[0].text) or is_styled(line[0].text))

    def _continues(self, row: Row, cells: Row) -> bool:
        """Return whether the only cell of a line is the rest of the cell above."""
        filled = [i for i, cell in enumerate(cells) if cell]
        if len(filled) != 1 or not row[filled[0]]:
            return False
        at = filled[0]
        text, above = cells[at][0].text, row[at][-1]
        if is_value(text) and any(char.isdigit() for char in text):
            return False
        hanging = cells[at][0].left - row[at][0].left > 0.5 * above.size
        unfinished = above.text.endswith(("-", ",", "/", "(", " and", " of", " with", " to", "&"))
        rest = continues(text) or unfinished or (hanging and not has_label(text))
        if at == 0:
            return sum(map(bool, row)) > 1 and rest
        return rest or is_value(text)
