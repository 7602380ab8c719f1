"""The two sides of a gap between words: whether they are rows of one table or blocks of their own.

Only the words and their places decide; no image is read.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import Enum, auto
from statistics import fmean, median

from .cell_words import (
    continues,
    has_bullet,
    has_label,
    is_amount,
    is_column_head,
    is_order,
    is_section,
    is_styled,
    is_value,
    number_of,
)
from .fragments import Fragment
from .placed_words import Marks, Rule

#: Distance of lines in sizes of the type above which the lower line begins another block.
APART = 2.1
#: Difference of baselines in sizes of the type within one row.
LEVEL = 0.22
#: Lines of the longest usual cell; longer paragraphs side by side are columns of prose.
LONGEST_CELL = 5


class Kind(Enum):
    """What the lines on both sides of a gap are."""

    BLOCKS = auto()
    """Blocks of their own, to be read one after the other."""
    TABLE = auto()
    """Columns of one table."""
    OPEN = auto()
    """Not decided by these lines alone; read as rows."""


class Sides:
    """The lines to the left and to the right of one gap, and what they tell."""

    def __init__(self, run: Sequence[Fragment], x: float, marks: Marks) -> None:
        self._marks = marks
        self._x = x
        left = [f for f in run if f.right <= x + 0.5]
        right = [f for f in run if f.right > x + 0.5]
        self.left, self.right = _trimmed(left, right)
        self._left_rows = rows_of(self.left)
        self._right_rows = rows_of(self.right)
        #: Pairs of a row at the right and the row at the left at the same height, if any.
        self._pairs = [(_level(row, self._left_rows), row) for row in self._right_rows]
        self.beside = 0
        if self.left and self.right:
            top = max(self._left_rows[0][0].top, self._right_rows[0][0].top)
            bottom = min(self._left_rows[-1][0].bottom, self._right_rows[-1][0].bottom)
            self.beside = min(
                sum(top <= row[0].baseline <= bottom for row in self._left_rows),
                sum(top <= row[0].baseline <= bottom for row in self._right_rows),
            )

    @property
    def weight(self) -> tuple[int, int]:
        """Return by how much a cut here counts for more than another cut."""
        return self.beside, len(self.left) + len(self.right)

    def kind(self, *, prose: bool) -> Kind:
        """Return what the lines on both sides are; `prose` allows columns of sentences."""
        if self.beside < 2:
            return Kind.OPEN
        if self._have_headings():
            return Kind.BLOCKS
        if self._right_is_values():
            return Kind.BLOCKS if self._repeats() else Kind.TABLE
        if self._are_labels() and not self._are_framed():
            return Kind.TABLE
        if self._have_orders():
            return Kind.BLOCKS
        if self._has_column_heads():
            return Kind.BLOCKS if self._repeats() else Kind.TABLE
        if self._are_framed() or self._repeats():
            return Kind.BLOCKS
        if self._has_row_rules():
            return Kind.TABLE
        if self._have_bullets() or self._is_misaligned() or self._are_uneven_lists():
            return Kind.BLOCKS
        if self._numbers_go_on():
            return Kind.BLOCKS
        return Kind.BLOCKS if prose and self._are_prose() else Kind.OPEN

    def _have_headings(self) -> bool:
        """Return whether both sides have the heading of a section above further lines."""
        if not self._headed(self._left_rows) or not self._headed(self._right_rows):
            return False
        return not (self._has_row_rules() and self._has_column_heads())

    def _are_labels(self) -> bool:
        """Return whether most rows are labels with values on both sides."""
        labels = sum(
            has_label(level[0].text) and has_label(row[0].text)
            for level, row in self._pairs
            if level is not None
        )
        return labels >= 2 and labels >= 0.6 * len(self._pairs)

    def _have_orders(self) -> bool:
        """Return whether lists such as `CONTINUE` and `STOP` begin at the same height."""
        return any(
            level is not None
            and all(is_order(f.text) or is_section(f.text) for f in (*level, *row))
            and any(is_order(f.text) for f in (*level, *row))
            for level, row in self._pairs[:-1]
        )

    @staticmethod
    def _headed(rows: Sequence[list[Fragment]]) -> bool:
        return any(
            any(is_section(f.text) for f in row) and not continues(rows[i + 1][0].text)
            for i, row in enumerate(rows[:-1])
        )

    def _right_is_values(self) -> bool:
        """Return whether the cells right of the gap are values of the names at the left."""
        first = [row[0].text for level, row in self._pairs if level is not None]
        items = [text for text in first if not is_styled(text)] or first
        if not items:
            return False
        return 2 * sum(map(is_value, items)) >= len(items)

    def _has_column_heads(self) -> bool:
        """Return whether a row above the others holds the headings of a table's columns."""
        for level, row in self._pairs[:3]:
            if level is None:
                continue
            texts = [f.text for f in (*level, *row)]
            heads = sum(is_column_head(text) and len(text) < 32 for text in texts)
            if 2 * heads >= len(texts) and heads >= 2:
                return True
        return False

    def _repeats(self) -> bool:
        """Return whether two tables stand side by side: the headings or the kinds repeat."""
        level, row = self._pairs[0] if self._pairs else (None, [])
        if level and len(level) > 1:
            heads = [f.text.lower() for f in level]
            if heads == [f.text.lower() for f in row]:
                return True
        return self._repeats_kinds()

    def _repeats_kinds(self) -> bool:
        """Return whether names and values are followed by other names and values."""
        full = [(a, b) for a, b in self._pairs if a and len(a) == len(b) >= 2]
        if len(full) < 3 or 4 * len(full) < 3 * len(self._pairs):
            return False
        names = [row[0].text for _, row in full]
        if any(map(is_value, names)) or len(set(names)) < len(names):
            return False
        if any(is_value(level[0].text) for level, _ in full):
            return False
        kinds = [
            (is_value(f.text), is_value(g.text))
            for level, row in full
            for f, g in zip(level[1:], row[1:], strict=True)
        ]
        return all(one and other for one, other in kinds)

    def _are_framed(self) -> bool:
        """Return whether each side has a frame around several of its lines."""
        return self._framed(self.left, self.right) and self._framed(self.right, self.left)

    def _framed(self, inner: Sequence[Fragment], outer: Sequence[Fragment]) -> bool:
        for frame in self._marks.frames:
            if frame.bottom - frame.top < 2.5 * inner[0].size:
                continue
            inside = sum(_within(frame, f) for f in inner)
            if inside >= max(2, 0.8 * len(inner)) and not any(_within(frame, f) for f in outer):
                return True
        return False

    def _has_row_rules(self) -> bool:
        """Return whether lines or shaded rows cross the gap between the rows."""
        top = self._left_rows[0][0].top
        bottom = max(self._left_rows[-1][0].bottom, self._right_rows[-1][0].bottom)
        crossing = [
            rule
            for rule in (*self._marks.rules, *self._marks.frames)
            if rule.left < self._x - 2 and rule.right > self._x + 2
        ]
        edges = {
            round(edge / 3)
            for rule in crossing
            for edge in (rule.top, rule.bottom)
            if top + 2 < edge < bottom - 2
        }
        frames = [f for f in self._marks.frames if top - 2 < f.top and f.bottom < bottom + 2]
        ending = {(round(f.top), round(f.bottom)) for f in frames if abs(f.right - self._x) < 40}
        edges |= {
            round(f.top / 3)
            for f in frames
            if f.left > self._x - 6
            and f.top > top + 2
            and (round(f.top), round(f.bottom)) in ending
        }
        rows = max(len(self._left_rows), len(self._right_rows))
        return len(edges) >= 2 and 4 * len(edges) >= rows

    def _have_bullets(self) -> bool:
        return all(
            len(rows) >= 2 and sum(has_bullet(row[0].text) for row in rows) >= 0.6 * len(rows)
            for rows in (self._left_rows, self._right_rows)
        )

    def _numbers_go_on(self) -> bool:
        """Return whether the numbers of the left side, from 1, go on at the right side."""
        left, right = (
            [number for row in rows if (number := number_of(row[0].text)) is not None]
            for rows in (self._left_rows, self._right_rows)
        )
        counted = list(range(1, len(left) + len(right) + 1))
        return len(left) > 1 and len(right) > 0 and left + right == counted

    def _is_misaligned(self) -> bool:
        """Return whether the lines of both sides have heights of their own."""
        inside = [
            (level, row)
            for level, row in self._pairs
            if self._left_rows[0][0].top <= row[0].baseline <= self._left_rows[-1][0].bottom
        ]
        apart = sum(level is None for level, _ in inside)
        return apart >= 3 and 2 * apart > len(inside)

    def _are_prose(self) -> bool:
        """Return whether sentences run from line to line on both sides."""
        return self._flows([row[-1] for row in self._left_rows]) and self._flows(
            [row[0] for row in self._right_rows]
        )

    @staticmethod
    def _flows(lines: Sequence[Fragment]) -> bool:
        if len(lines) < 3:
            return False
        words = fmean(len(line.words) for line in lines)
        going = sum(
            line.text[:1].islower() or (is_amount(line.text) and above.text[-1:] not in ".:;?!")
            for above, line in itertools.pairwise(lines)
        )
        return words >= 3 and going >= 0.3 * (len(lines) - 1)

    def has_parallel_paragraphs(self) -> bool:
        """Return whether the paragraphs of both sides begin at the same heights, as cells do."""
        if not self._left_rows or not self._right_rows:
            return False
        left, right = _paragraphs(self._left_rows), _paragraphs(self._right_rows)
        common = [
            min(lines, more)
            for y, lines in left.items()
            for other, more in right.items()
            if abs(y - other) < 3 and max(lines, more) > 1
        ]
        several = max(sum(lines > 1 for lines in side.values()) for side in (left, right))
        if len(common) < 2 or len(common) < 0.7 * several:
            return False
        return median(common) <= LONGEST_CELL

    def _are_uneven_lists(self) -> bool:
        """Return whether each side is a list of another length below a heading of its own."""
        level, row = self._pairs[0]
        if level is None or len(level) > 1 or len(row) > 1:
            return False
        sides = (
            self._left_rows[self._left_rows.index(level) :],
            self._right_rows[self._right_rows.index(row) :],
        )
        for first, *items in sides:
            texts = [item[0] for item in items]
            if not items or any(len(item) > 1 or is_styled(item[0].text) for item in items):
                return False
            is_larger = first[0].size > 1.1 * texts[0].size
            is_bolder = first[0].bold and not any(f.bold for f in texts)
            if not (is_styled(first[0].text) or is_larger or is_bolder):
                return False
        return len(sides[0]) != len(sides[1])


def _trimmed(left: list[Fragment], right: list[Fragment]) -> tuple[list[Fragment], list[Fragment]]:
    """Keep of both sides the lines beside each other and the lines that continue them."""
    if not left or not right:
        return [], []
    top = max(left[0].top, right[0].top)
    bottom = min(max(f.bottom for f in left), max(f.bottom for f in right))
    if bottom <= top:
        return [], []
    kept = _connected(left, top, bottom), _connected(right, top, bottom)
    return kept if all(kept) else ([], [])


def _connected(side: list[Fragment], top: float, bottom: float) -> list[Fragment]:
    """Return the lines between `top` and `bottom`, and their neighbours at normal distances."""
    first = next((i for i, f in enumerate(side) if f.bottom > top), len(side))
    last = next((i for i, f in enumerate(side) if f.baseline > bottom), len(side))
    if first >= last:
        return []
    while first and side[first].baseline - side[first - 1].baseline < APART * side[first].size:
        first -= 1
    pitch = _pitch(side[first:last])
    begin = last
    while last < len(side) and side[last].baseline - side[last - 1].baseline <= 1.25 * max(
        pitch, 1.1 * side[last].size
    ):
        last += 1
    # A heading at the end belongs to the lines below.
    while last > begin and _ends_as_heading(side, last - 1, pitch):
        last -= 1
    return side[first:last]


def _ends_as_heading(side: Sequence[Fragment], at: int, pitch: float) -> bool:
    """Return whether the line at `at` is a heading; an item of a list may be an abbreviation."""
    text = side[at].text
    if is_section(text):
        return True
    apart = at > 0 and side[at].baseline - side[at - 1].baseline > 1.15 * pitch
    return is_styled(text) and (apart or text.endswith(":"))


def _pitch(side: Sequence[Fragment]) -> float:
    steps = [
        b.baseline - a.baseline
        for a, b in itertools.pairwise(side)
        if b.baseline - a.baseline > 0.5 * b.size
    ]
    return median(steps) if steps else 1.3 * side[0].size


def rows_of(side: Sequence[Fragment]) -> list[list[Fragment]]:
    """Group the fragments of one side by baseline, each row from left to right."""
    rows: list[list[Fragment]] = []
    for fragment in side:
        if rows and fragment.baseline - rows[-1][0].baseline <= LEVEL * fragment.size:
            rows[-1].append(fragment)
        else:
            rows.append([fragment])
    for row in rows:
        row.sort(key=lambda f: f.left)
    return rows


def _level(row: Sequence[Fragment], others: Sequence[list[Fragment]]) -> list[Fragment] | None:
    for other in others:
        if abs(other[0].baseline - row[0].baseline) <= LEVEL * row[0].size:
            return other
    return None


def _paragraphs(rows: Sequence[list[Fragment]]) -> dict[float, int]:
    """Return the baselines at which paragraphs begin, with the number of their lines."""
    steps = [b[0].baseline - a[0].baseline for a, b in itertools.pairwise(rows)]
    usual = min(steps, default=0.0)
    start = rows[0][0].baseline
    found = {start: 1}
    for row, step in zip(rows[1:], steps, strict=True):
        if step > 1.2 * usual:
            start = row[0].baseline
        found[start] = found.get(start, 0) + 1
    return found


def _within(frame: Rule, fragment: Fragment) -> bool:
    middle = (fragment.left + fragment.right) / 2
    return (
        frame.left <= middle <= frame.right
        and frame.top <= fragment.baseline - 0.3 * fragment.size <= frame.bottom
    )
