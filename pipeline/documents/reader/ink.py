"""Find the ink of a page that its known words do not explain. Pure.

Ink is every edge between dark and light, so light words on a dark ground count, and an even ground
of any colour does not. Rules, frames, dots and single small marks are no ink that could be words.
Images are in mode L at `LOOK_DPI`; boxes are in their pixels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from PIL import Image, ImageChops, ImageDraw

from .bits import Bits, bits, blank, from_blank, none
from .blank import spread

#: Resolution of the image on which the ink check works.
LOOK_DPI = 100
#: Difference of grey levels between neighbouring pixels that counts as an edge. A stamp in light
#: grey (200 of 255) has 25 or more; the texture of paper and JPEG has less.
EDGE = 20
#: Pixels over which grey levels are compared; the edges of a blurred copy are this wide.
STEP = 2
#: Pixels by which the image is reduced to find the edges of a badly blurred copy.
BLUR = 3
#: Least length in pixels (0.3 inch) of a straight run of edges that is a rule or a frame.
RULE = 30
#: Side of a cell in pixels; words are searched in cells.
CELL = 4
#: Grey level of a cell's mean from which the cell contains ink: 2 of its 16 pixels.
_CELL_INK = 30
#: Largest side in pixels of a dot, a bullet, or an accent, with its edges. Letters of 8 pt type are
#: smaller, but neighbours join them to words.
DOT = 12
#: Longer side in pixels, with its edges, of the least letter or digit: 5 pt type.
LETTER = 7
#: Largest side in pixels of a square mark, such as a check box or an icon (0.24 inch).
SQUARE_MARK = 26
#: Mean thickness in pixels of a slanted or dashed line.
THIN = 7
#: Ratio of the edges in one direction to those in the other from which ink is a barcode; words have
#: .6 to 1.7.
BARS = 4.0
#: Distances in pixels at which patches belong to one block (a column, a table, a paragraph).
APART_ACROSS, APART_DOWN = 40, 28

Box = tuple[int, int, int, int]
Fractions = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """Connected ink: a line of words, a drawing, or a part of a picture."""

    box: Box
    #: Pixels that the ink covers, including the gaps between its letters.
    area: int


def strokes(image: Image.Image, edge: int = EDGE) -> Bits:
    """Return the edges in `image`, without straight rules and frames."""
    if spread(image) < edge:
        # An even ground has no edge. Many pages have no ink but their text.
        return none(*image.size)
    sharp = _edges(image, edge, STEP, RULE)
    coarse = _edges(image.reduce(BLUR), edge, 1, RULE // BLUR)
    if not coarse.value:
        return sharp
    # Only a blurred copy has edges in the coarse image and none in the fine image.
    widened = coarse.image().resize(image.size, Image.Resampling.NEAREST).convert("L")
    return sharp.also(bits(widened, 128).without(sharp.grown(2 * BLUR, 2 * BLUR)))


def _edges(image: Image.Image, edge: int, step: int, rule: int) -> Bits:
    across, down = bits(_step(image, step, 0), edge), bits(_step(image, 0, step), edge)
    # A rule that crosses a rule has a gap there.
    upright, level = across.closed(0, 1).runs_down(rule), down.closed(1, 0).runs_across(rule)
    return across.without(upright).also(down.without(level))


def is_blurred_line(image: Image.Image, box: Box) -> bool:
    """Return whether the ink within `box` has the shape of a line of words, and no sharp edge."""
    part = image.crop(box)
    short, long = sorted(part.size)
    sharp = bits(_step(part, STEP, 0), EDGE).also(bits(_step(part, 0, STEP), EDGE))
    return long > 2.5 * short and sharp.count < 0.1 * short * long


def is_code(image: Image.Image, box: Box) -> bool:
    """Return whether the ink within `box` is a barcode or a square code for machines."""
    return _is_barcode(image, box) or _is_square_code(image, box)


def _is_square_code(image: Image.Image, box: Box) -> bool:
    """Return whether the box is a dense square, of which about half is dark."""
    part = image.crop(box)
    short, long = sorted(part.size)
    if short < 0.8 * long:
        return False
    pixels = short * long
    edges = bits(_step(part, STEP, 0), EDGE).also(bits(_step(part, 0, STEP), EDGE)).count
    light, dark = sum(part.histogram()[170:]), sum(part.histogram()[:86])
    return edges > 0.35 * pixels and min(light, dark) > 0.4 * pixels


def _is_barcode(image: Image.Image, box: Box) -> bool:
    """Return whether the edges within `box` are bars, which all run in one direction."""
    part = image.crop(box)
    across = bits(_step(part, STEP, 0), EDGE).count
    down = bits(_step(part, 0, STEP), EDGE).count
    dense = max(across, down) > 0.15 * part.width * part.height
    return dense and max(across, down) > BARS * max(1, min(across, down))


def covered(size: tuple[int, int], boxes: Iterable[Fractions], room: float = 0.15) -> Bits:
    """Return the pixels of these boxes, which are fractions of the page.

    `room` is added on each side, as a share of the shorter side of the box.
    """
    width, height = size
    places = list(boxes)
    if not places:
        return none(width, height)
    mask = blank(width, height)
    draw = ImageDraw.Draw(mask)
    for x0, y0, x1, y1 in places:
        more = room * min((x1 - x0) * width, (y1 - y0) * height) + 1
        left, right = x0 * width - more, min(width - 1, x1 * width + more)
        if left <= right:
            draw.rectangle((left, y0 * height - more, right, y1 * height + more), fill=1)
    return from_blank(mask, width)


def patches(ink: Bits) -> list[Patch]:
    """Return the connected ink that may be words, from the top of the page to its end."""
    if not ink.value:
        return []
    image = ink.image()
    cells = bits(image.convert("L").reduce(CELL), _CELL_INK)
    # Letters have neighbours to the side, so a small mark without such a neighbour is no word.
    lines = components(cells.closed(2, 0))
    kept = [runs for runs in lines if not _is_mark(_patch(runs), image)]
    found = [_patch(runs) for runs in components(_drawn(kept, cells).closed(0, 1))]
    whole = [each for each in found if not _is_mark(each, image)]
    return sorted(whole, key=lambda each: each.box[1])


def with_marks(found: Sequence[Patch], ink: Bits) -> list[Patch]:
    """Return `found` with the small marks beside them, such as a digit in a column of numbers."""
    if not found:
        return []
    image = ink.image()
    cells = bits(image.convert("L").reduce(CELL), _CELL_INK)
    marks = [_patch(runs) for runs in components(cells.closed(2, 0))]
    left = [mark for mark in marks if _is_mark(mark, image) and _tight(mark, image)[1] >= LETTER]
    joined, reached = list(found), list(found)
    while reached:
        near = [
            mark
            for mark in left
            if any(_near(mark.box, each.box, APART_ACROSS, APART_DOWN) for each in reached)
        ]
        left = [mark for mark in left if mark not in near]
        joined, reached = joined + near, near
    return joined


def blocks(found: Sequence[Patch], across: int = APART_ACROSS, down: int = APART_DOWN) -> list[Box]:
    """Join the boxes of neighbouring patches to blocks that can be read together."""
    joined: list[Box] = []
    for patch in found:
        box, apart = patch.box, []
        for other in joined:
            if _near(box, other, across, down):
                box = _around(box, other)
            else:
                apart.append(other)
        joined = [*apart, box]
    # A block that grew may have reached another block.
    while len(again := _joined_once(joined, across, down)) < len(joined):
        joined = again
    return sorted(joined, key=lambda box: (box[1], box[0]))


def _joined_once(boxes: Sequence[Box], across: int, down: int) -> list[Box]:
    kept: list[Box] = []
    for box in boxes:
        near = next((i for i, other in enumerate(kept) if _near(box, other, across, down)), None)
        if near is None:
            kept.append(box)
        else:
            kept[near] = _around(box, kept[near])
    return kept


def _near(one: Box, other: Box, across: int, down: int) -> bool:
    return (
        one[0] - across < other[2]
        and other[0] - across < one[2]
        and one[1] - down < other[3]
        and other[1] - down < one[3]
    )


def _around(one: Box, other: Box) -> Box:
    return (
        min(one[0], other[0]),
        min(one[1], other[1]),
        max(one[2], other[2]),
        max(one[3], other[3]),
    )


def _step(image: Image.Image, right: int, down: int) -> Image.Image:
    """Return the difference of each pixel to the pixel at this distance."""
    width, height = image.size
    moved = image.crop((right, down, width + right, height + down))
    difference = ImageChops.difference(image, moved)
    # The neighbours of the last column and row are outside of the page.
    if right:
        difference.paste(0, (width - right, 0, width, height))
    if down:
        difference.paste(0, (0, height - down, width, height))
    return difference


def _drawn(groups: Iterable[Sequence[tuple[int, int, int]]], like: Bits) -> Bits:
    """Return an image of `like`'s size with these groups of runs."""
    value = 0
    for row, first, end in (run for runs in groups for run in runs):
        ones = (1 << (end - first)) - 1
        value |= ones << (like.stride * (like.height - row) - end)
    return Bits(width=like.width, height=like.height, value=value)


def components(cells: Bits) -> list[list[tuple[int, int, int]]]:
    """Return each connected group of cells as runs (row, first column, end)."""
    width = cells.stride
    written = format(cells.value, f"0{width * cells.height}b")
    parents: list[int] = []
    runs: list[tuple[int, int, int]] = []
    above: list[int] = []
    for row in range(cells.height):
        line = written[row * width : (row + 1) * width]
        here: list[int] = []
        for found in re.finditer("1+", line):
            index = len(runs)
            runs.append((row, found.start(), found.end()))
            parents.append(index)
            here.append(index)
            for other in above:
                if runs[other][1] <= found.end() and found.start() <= runs[other][2]:
                    parents[_root(parents, other)] = _root(parents, index)
        above = here
    groups: dict[int, list[tuple[int, int, int]]] = {}
    for index, run in enumerate(runs):
        groups.setdefault(_root(parents, index), []).append(run)
    return list(groups.values())


def _root(parents: list[int], index: int) -> int:
    while parents[index] != index:
        parents[index] = parents[parents[index]]
        index = parents[index]
    return index


def _patch(runs: Sequence[tuple[int, int, int]]) -> Patch:
    box = (
        CELL * min(first for _, first, _ in runs),
        CELL * min(row for row, _, _ in runs),
        CELL * max(end for _, _, end in runs),
        CELL * (max(row for row, _, _ in runs) + 1),
    )
    return Patch(box=box, area=CELL * CELL * sum(end - first for _, first, end in runs))


def _tight(patch: Patch, ink: Image.Image) -> tuple[int, int]:
    """Return the shorter and the longer side of the ink of a patch, in pixels."""
    left, top, right, bottom = ink.crop(patch.box).getbbox() or (0, 0, 0, 0)
    return min(right - left, bottom - top), max(right - left, bottom - top)


def _is_mark(patch: Patch, ink: Image.Image) -> bool:
    """Return whether the patch is a dot, a check box, an icon or a line, and no word."""
    short, long = _tight(patch, ink)
    if long <= DOT:
        return True
    if long <= SQUARE_MARK and short >= 0.7 * long:
        return True
    return patch.area <= THIN * max(patch.box[2] - patch.box[0], patch.box[3] - patch.box[1])
