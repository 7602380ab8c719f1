"""The lines and check boxes of a page image. Runs in the child only.

Only straight lines and clean squares count. Everything that is less certain stays in the image, and
OCR reads or misses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from PIL import Image, ImageDraw

from .placed_words import Rule

#: Grey level (0–255) below which a pixel is ink.
INK = 150
#: Pixels of a cell of a line, the greatest thickness of a line, and the cells of a line: a stroke
#: of a letter is shorter.
CELL, THICK = 24, 9
LEVEL_CELLS, ERECT_CELLS = 2, 4
#: Pixels of the side of a check box: 2 to 8 mm at 200 dpi.
SHORTEST, LONGEST = 19, 64
#: Share of a side of a square that must be dark.
SIDE_SHARE = 0.9
#: Shares of dark pixels inside a square: at most for an empty one, at least for a ticked one.
EMPTY, TICKED = 0.015, 0.06
#: Share of the surroundings of a square that may be dark.
OUTSIDE = 0.1
#: Squares or lines above which the image is a picture.
MOST = 400
MOST_ERECT = 60
_RUN = re.compile(rb"\x00{%d,}" % SHORTEST)
_DARK = re.compile(rb"\x00+")


@dataclass(frozen=True, kw_only=True)
class Square:
    """A check box of an image, in pixels."""

    left: int
    top: int
    right: int
    bottom: int
    ticked: bool

    @property
    def surroundings(self) -> tuple[int, int, int, int]:
        """Return the box with the parts of a tick that reach out of the box."""
        out = (self.right - self.left) // 4 if self.ticked else 3
        return self.left - 3, self.top - out, self.right + out, self.bottom + 3


def black_and_white(image: Image.Image) -> Image.Image:
    """Return `image` (mode L) with ink as 0 and paper as 255."""
    return image.point([0 if level < INK else 255 for level in range(256)])


def lines_of(image: Image.Image) -> tuple[Rule, ...]:
    """Return the long horizontal and vertical lines of a black and white image, in pixels."""
    level = _long_runs(image, LEVEL_CELLS)
    erect = _long_runs(image.transpose(Image.Transpose.TRANSPOSE), ERECT_CELLS)
    if len(level) + len(erect) > MOST:
        return ()
    return (
        *level,
        *(Rule(left=r.top, top=r.left, right=r.bottom, bottom=r.right) for r in erect),
    )


def frames_of(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Return the rectangles that four lines form, if no line crosses them."""
    level = [r for r in rules if r.right - r.left > r.bottom - r.top]
    erect = sorted((r for r in rules if r.bottom - r.top > r.right - r.left), key=lambda r: r.left)
    found: list[Rule] = []
    for i, one in enumerate(erect[:MOST_ERECT]):
        for other in erect[i + 1 : MOST_ERECT]:
            if abs(one.top - other.top) > CELL or abs(one.bottom - other.bottom) > CELL:
                continue
            ends = [
                r.top
                for r in level
                if r.left < one.left + 2 * CELL
                and r.right > other.left - 2 * CELL
                and one.top - CELL < r.top < one.bottom + CELL
            ]
            if len(ends) == 2 and max(ends) - min(ends) > 0.8 * (one.bottom - one.top):
                found.append(
                    Rule(left=one.left, top=min(ends), right=other.right, bottom=max(ends))
                )
                break
    return tuple(found)


def squares_of(image: Image.Image) -> tuple[Square, ...]:
    """Return the check boxes of a black and white image."""
    width = image.width
    data = image.tobytes()
    bars: dict[tuple[int, int], list[tuple[int, int, int, int]]] = {}
    count = 0
    for match in _RUN.finditer(data):
        start, end = match.span()
        y, left = divmod(start, width)
        right = left + end - start
        if end - start > LONGEST or right > width:
            continue
        count += 1
        if count > 100 * MOST:
            return ()
        bars.setdefault((left // 4, right // 4), []).append((left, right, y, y))
    merged = [bar for runs in bars.values() for bar in _stacked(runs)]
    merged = [bar for bar in merged if bar[3] - bar[2] < THICK]
    found: list[Square] = []
    by_place: dict[int, list[tuple[int, int, int, int]]] = {}
    for bar in merged:
        by_place.setdefault(bar[0] // 8, []).append(bar)
    for upper in merged:
        near = [bar for key in (-1, 0, 1) for bar in by_place.get(upper[0] // 8 + key, [])]
        square = next((s for lower in near if (s := _square(image, upper, lower))), None)
        if square and not any(_same(square, other) for other in found):
            found.append(square)
    return tuple(found) if len(found) <= MOST else ()


def without(image: Image.Image, squares: tuple[Square, ...]) -> Image.Image:
    """Return a copy of `image` (mode L) with the check boxes painted over."""
    if not squares:
        return image
    copy = image.copy()
    draw = ImageDraw.Draw(copy)
    for square in squares:
        draw.rectangle(square.surroundings, fill=255)
    return copy


def _long_runs(image: Image.Image, cells: int) -> list[Rule]:
    small = image.reduce((CELL, 1)).point([0 if level < 16 else 255 for level in range(256)])
    width, data = small.width, small.tobytes()
    found: list[list[int]] = []
    for match in _DARK.finditer(data):
        y, left = divmod(match.start(), width)
        right = min(width, left + match.end() - match.start())
        above = next(
            (
                run
                for run in reversed(found[-40:])
                if y - run[3] <= 2 and run[0] <= right and left <= run[2]
            ),
            None,
        )
        if above is None:
            found.append([left, y, right, y])
        else:
            above[0], above[2], above[3] = min(above[0], left), max(above[2], right), y
        if len(found) > 20 * MOST:
            return []
    return [
        Rule(left=run[0] * CELL, top=run[1], right=run[2] * CELL, bottom=run[3] + 1)
        for run in found
        if run[3] - run[1] < THICK and run[2] - run[0] >= cells
    ]


def _stacked(runs: list[tuple[int, int, int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Join runs in neighbouring rows to bars (left, right, first row, last row)."""
    bar = runs[0]
    for run in runs[1:]:
        if run[2] - bar[3] <= 1 and abs(run[0] - bar[0]) <= 3 and abs(run[1] - bar[1]) <= 3:
            bar = (min(bar[0], run[0]), max(bar[1], run[1]), bar[2], run[3])
        else:
            yield bar
            bar = run
    yield bar


def _square(
    image: Image.Image, upper: tuple[int, int, int, int], lower: tuple[int, int, int, int]
) -> Square | None:
    left, right, inner_bottom, bottom = lower[0], lower[1], lower[2], lower[3] + 1
    top, inner_top = upper[2:]
    side = right - left
    # A tick that crosses the corner at the top right lengthens the upper side.
    if abs(upper[0] - left) > 3 or not -3 <= upper[1] - right <= 0.5 * side:
        return None
    if abs(bottom - top - side) > max(1.5, 0.06 * side) or inner_bottom - inner_top < 0.4 * side:
        return None
    if max(inner_top - top, bottom - inner_bottom) > max(3, side // 6):
        return None
    edge = max(3, side // 6)
    for first in (left - 1, right - edge + 1):
        strip = image.crop((max(0, first), inner_top, max(0, first) + edge, inner_bottom + 1))
        data = strip.tobytes()
        dark = sum(0 in data[at : at + edge] for at in range(0, len(data), edge))
        if dark < SIDE_SHARE * strip.height:
            return None
    inset = max(4, side // 4)
    inside = image.crop((left + inset, top + inset, right - inset, bottom - inset))
    share = _dark_share(inside)
    if EMPTY < share < TICKED or share > 0.9:
        return None
    ticked = share >= TICKED
    # The sides of a letter such as `o` bulge, a letter such as `p` goes on, and letters have
    # neighbours. A tick reaches out of its box at the top and at the right only.
    beside, above = (0.15, 0.35) if ticked else (OUTSIDE, OUTSIDE)
    strips: tuple[tuple[tuple[int, int, int, int], float], ...] = (
        ((left - 6, top, left - 2, bottom), OUTSIDE),
        ((left, bottom + 2, right, bottom + 6), OUTSIDE),
        ((right + 2, top, right + 6, bottom), beside),
        ((left, top - 6, right, top - 2), above),
    )
    for around, most in strips:
        if min(around) < 0 or _dark_share(image.crop(around)) > most:
            return None
    if _thin_sides(image, left, right, (top + side // 4, bottom - side // 4)) < 3:
        return None
    return Square(left=left, top=top, right=right, bottom=bottom, ticked=ticked)


def _thin_sides(image: Image.Image, left: int, right: int, rows: tuple[int, int]) -> int:
    """Return at how many of four places a side of a square is as thin as a drawn line."""
    most = max(4, (right - left) // 6)
    thin = 0
    for y in rows:
        line = image.crop((left - 2, y, right + 2, y + 1)).tobytes()
        for data in (line, line[::-1]):
            stroke = _DARK.search(data)
            thin += stroke is not None and len(stroke.group()) <= most
    return thin


def _dark_share(image: Image.Image) -> float:
    return image.tobytes().count(0) / max(1, image.width * image.height)


def _same(one: Square, other: Square) -> bool:
    return abs(one.left - other.left) < 8 and abs(one.top - other.top) < 8
