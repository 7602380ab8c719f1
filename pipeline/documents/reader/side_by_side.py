"""Blocks printed side by side: find the gaps between them and put the blocks one after the other.

A gap parts two blocks only if the words show that the right block does not continue the rows of
the left block. Otherwise both sides are one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from .cell_words import (
    is_column_head,
    is_order,
    is_section,
    is_styled,
)
from .fragments import Fragment
from .gap_sides import Kind, Sides, rows_of
from .placed_words import Marks

#: Cuts inside cuts; three columns under each of several headings need four.
DEEPEST = 12
#: Gaps that are examined, and fragments above which a region is a drawing or an attack.
MOST_GAPS, MOST_FRAGMENTS = 40, 4_000
#: Height in sizes of the type, beyond the space of a line, of a blank band.
BAND = 0.9


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
    best: Sides | None = None
    most: tuple[bool, int, int] = (False, 0, 0)
    for x in _gaps(fragments):
        for run, is_whole, is_cut in _runs(fragments, x):
            for sides in _parts_of(run, x, marks, is_cut=is_cut):
                weight = is_whole, *sides.weight
                if best is None or weight > most:
                    best, most = sides, weight
    return _cut(fragments, best) if best else None


def _parts_of(run: Sequence[Fragment], x: float, marks: Marks, *, is_cut: bool) -> Iterator[Sides]:
    """Yield the parts of a run in which blocks lie side by side; `is_cut` runs go on below.

    A blank band splits the run. A part begins with lines that are certainly blocks, and goes on
    until a table, or a heading below which only the left side has lines.
    """
    whole = Sides(run, x, marks)
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
        part = Sides([f for band in bands[first:at] for f in band], x, marks)
        if Kind.BLOCKS in solid[first:at] or not part.has_parallel_paragraphs():
            yield part


def _kind_of(band: Sequence[Fragment], x: float, marks: Marks, *, prose: bool) -> Kind:
    if _heads_table(rows_of(band)[0]):
        return Kind.TABLE
    return Sides(band, x, marks).kind(prose=prose)


def _goes_on(above: Sequence[Fragment], band: Sequence[Fragment], kind: Kind, x: float) -> bool:
    """Return whether the blocks of `above` go on in `band`."""
    if kind is Kind.TABLE:
        return False
    rows = rows_of(band)
    if kind is Kind.OPEN and median(map(len, rows)) > max(map(len, rows_of(above))):
        return False
    first = rows[0][0]
    if first.left > x or any(f.left > x for f in rows[0]):
        return True
    far = first.top - max(f.bottom for f in above) > 2.2 * first.size
    return not (far or is_styled(first.text) or is_section(first.text) or first.bold)


def _bands(run: Sequence[Fragment]) -> list[list[Fragment]]:
    """Split a run where a blank band crosses both sides, and above the headings of a table.

    A band is taller than the blank space above the band and below the band. The padding of rows
    is therefore no band.
    """
    rows = rows_of(run)
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


def _cut(fragments: list[Fragment], sides: Sides) -> Cut:
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
    for row in rows_of(sorted(fragments, key=lambda f: f.baseline)):
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
