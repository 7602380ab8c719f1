"""Blocks printed side by side: find the gaps between them and put the blocks one after the other.

A gap parts two blocks only if the words show that the right block does not continue the rows of
the left block. Otherwise both sides are one table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from statistics import fmean, median
from typing import NamedTuple

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

#: Cuts inside cuts; three columns under each of several headings need four.
DEEPEST = 12
#: Gaps that are examined, and fragments above which a region is a drawing or an attack.
MOST_GAPS, MOST_FRAGMENTS = 40, 4_000
#: Distance of lines in sizes of the type above which the lower line begins another block.
APART = 2.1
#: Difference of baselines in sizes of the type within one row.
LEVEL = 0.22
#: Lines of the longest usual cell; longer paragraphs side by side are columns of prose.
LONGEST_CELL = 5
#: Height in sizes of the type, beyond the space of a line, of a blank band.
BAND = 0.9


class Kind(Enum):
    """What the lines on both sides of a gap are."""

    BLOCKS = auto()
    """Blocks of their own, to be read one after the other."""
    TABLE = auto()
    """Columns of one table."""
    OPEN = auto()
    """Not decided by these lines alone; read as rows."""


class Cut(NamedTuple):
    """A region cut into four parts, in reading order."""

    above: list[Fragment]
    left: list[Fragment]
    right: list[Fragment]
    below: list[Fragment]


def one_after_the_other(fragments: list[Fragment], marks: Marks) -> list[list[Fragment]]:
    """Return the blocks of a region in reading order."""
    return list(_blocks(fragments, marks, DEEPEST))


def _blocks(fragments: list[Fragment], marks: Marks, depth: int) -> Iterator[list[Fragment]]:
    few = 4 <= len(fragments) <= MOST_FRAGMENTS
    cut = _best_cut(fragments, marks) if depth and few else None
    if cut is None:
        if fragments:
            yield fragments
        return
    for part in cut:
        yield from _blocks(part, marks, depth - 1)


def _best_cut(fragments: list[Fragment], marks: Marks) -> Cut | None:
    """Return the cut with the most lines beside each other, or None."""
    best: _Sides | None = None
    most: tuple[bool, int, int] = (False, 0, 0)
    for x in _gaps(fragments):
        for run, is_whole, is_cut in _runs(fragments, x):
            for sides in _parts_of(run, x, marks, is_cut=is_cut):
                weight = is_whole, *sides.weight
                if best is None or weight > most:
                    best, most = sides, weight
    return _cut(fragments, best) if best else None


def _parts_of(run: Sequence[Fragment], x: float, marks: Marks, *, is_cut: bool) -> Iterator[_Sides]:
    """Yield the parts of a run in which blocks lie side by side; `is_cut` runs go on below.

    A blank band splits the run. A part begins with lines that are certainly blocks, and goes on
    until a table, or a heading below which only the left side has lines.
    """
    whole = _Sides(run, x, marks)
    if whole.beside < 2:
        return
    bands = _bands(run)
    solid = [_kind_of(band, x, marks, prose=False) for band in bands]
    kinds = [_kind_of(band, x, marks, prose=True) for band in bands]
    if len(bands) == 1 or not {Kind.TABLE, Kind.BLOCKS} & set(kinds):
        if whole.kind(prose=not whole.has_parallel_paragraphs()) is Kind.BLOCKS:
            yield whole
        return
    at = 0
    while at < len(bands):
        first, at = at, at + 1
        if kinds[first] is not Kind.BLOCKS:
            continue
        while at < len(bands) and _goes_on(bands[at - 1], bands[at], kinds[at], x):
            at += 1
        if is_cut and at == len(bands) and at - first > 1:
            # The last band goes on below the line that crosses the gap; it is judged on its own.
            at -= 1
        part = _Sides([f for band in bands[first:at] for f in band], x, marks)
        if Kind.BLOCKS in solid[first:at] or not part.has_parallel_paragraphs():
            yield part


def _kind_of(band: Sequence[Fragment], x: float, marks: Marks, *, prose: bool) -> Kind:
    if _heads_table(_rows(band)[0]):
        return Kind.TABLE
    return _Sides(band, x, marks).kind(prose=prose)


def _goes_on(above: Sequence[Fragment], band: Sequence[Fragment], kind: Kind, x: float) -> bool:
    """Return whether the blocks of `above` go on in `band`."""
    if kind is Kind.TABLE:
        return False
    rows = _rows(band)
    if kind is Kind.OPEN and median(map(len, rows)) > max(map(len, _rows(above))):
        return False
    first = rows[0][0]
    if first.left > x or any(f.left > x for f in rows[0]):
        return True
    far = first.top - max(f.bottom for f in above) > 2.2 * first.size
    return not (far or is_styled(first.text) or is_section(first.text) or first.bold)


def _bands(run: Sequence[Fragment]) -> list[list[Fragment]]:
    """Split a run where a blank band crosses both sides, and above the headings of a table.

    A band is blanker than the space above or below it, so that the padding of rows is no band.
    """
    rows = _rows(run)
    gaps = [0.0]
    bottom = max(f.bottom for f in rows[0])
    for row in rows[1:]:
        gaps.append(max(0.0, row[0].top - bottom))
        bottom = max(bottom, *(fragment.bottom for fragment in row))
    bands = [list(rows[0])]
    for i, row in enumerate(rows[1:], start=1):
        beside = [
            gap for gap in (gaps[i - 1] if i > 1 else None, *gaps[i + 1 : i + 2]) if gap is not None
        ]
        blank = gaps[i] > BAND * row[0].size and gaps[i] > 1.3 * min(beside, default=0.0)
        if blank or _heads_table(row):
            bands.append([])
        bands[-1].extend(row)
    return bands


def _heads_table(row: Sequence[Fragment]) -> bool:
    """Return whether a row holds only headings of columns."""
    return (
        len(row) > 1
        and all(is_column_head(f.text) and len(f.text) < 32 for f in row)
        and not any(char.isdigit() for f in row for char in f.text)
        and not all(is_section(f.text) or is_order(f.text) for f in row)
    )


def _cut(fragments: list[Fragment], sides: _Sides) -> Cut:
    inside = {*map(id, sides.left), *map(id, sides.right)}
    # A line beside the run belongs to neither part; its height tells whether it comes first.
    top = min(f.baseline for f in (*sides.left, *sides.right))
    others = [f for f in fragments if id(f) not in inside]
    return Cut(
        above=[f for f in others if f.baseline < top],
        left=sides.left,
        right=sides.right,
        below=[f for f in others if f.baseline >= top],
    )


def _gaps(fragments: Sequence[Fragment]) -> list[float]:
    """Return a few places that together hit every gap between two neighbours of a line."""
    intervals: list[tuple[float, float]] = []
    ordered = sorted(fragments, key=lambda f: f.top)
    for i, one in enumerate(ordered):
        right: float | None = None
        for other in ordered[max(0, i - 40) : i + 40]:
            if other.left < one.right or other is one:
                continue
            if min(one.bottom, other.bottom) - max(one.top, other.top) <= 0.3 * one.size:
                continue
            right = other.left if right is None else min(right, other.left)
        if right is not None:
            intervals.append((one.right, right))
    places: dict[float, int] = {}
    last = float("-inf")
    for low, high in sorted(intervals, key=lambda gap: gap[1]):
        if low > last:
            last = high - 0.01
            places[last] = 0
        places[last] += 1
    return sorted(places, key=lambda place: -places[place])[:MOST_GAPS]


def _runs(fragments: Sequence[Fragment], x: float) -> Iterator[tuple[list[Fragment], bool, bool]]:
    """Yield the rows between those that cross `x`, with the two limits of the run.

    The first truth value tells that the run does not begin below a close row of several fragments,
    which would be its headings. The second tells that a crossing row follows closely.
    """
    run: list[Fragment] = []
    above: list[Fragment] = []
    is_whole = True
    for row in _rows(sorted(fragments, key=lambda f: f.baseline)):
        if any(f.left < x - 0.5 and f.right > x + 0.5 for f in row):
            if run:
                yield run, is_whole, row[0].top - run[-1].bottom < BAND * row[0].size
            run, above = [], row
            continue
        if not run:
            near = bool(above) and row[0].top - above[0].bottom < BAND * row[0].size
            is_whole = not (near and len(above) > 1)
        run.extend(row)
    if run:
        yield run, is_whole, False


class _Sides:
    """The lines to the left and to the right of one gap, and what they tell."""

    def __init__(self, run: Sequence[Fragment], x: float, marks: Marks) -> None:
        self._marks = marks
        self._x = x
        left = [f for f in run if f.right <= x + 0.5]
        right = [f for f in run if f.right > x + 0.5]
        self.left, self.right = _trimmed(left, right)
        self._left_rows = _rows(self.left)
        self._right_rows = _rows(self.right)
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


def _rows(side: Sequence[Fragment]) -> list[list[Fragment]]:
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
