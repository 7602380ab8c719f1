"""The ink of a page's text: the difference between the page and the page without its text. Pure.

The difference shows exactly what the text layer draws. A word that leaves no ink is hidden, and
ink outside of the words is text without characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PIL import Image, ImageChops

from .bits import Bits, bits
from .contrast import LEAST_RATIO, Colour, ratio
from .ink import EDGE, Box, Fractions, covered
from .levels import Levels

#: Least grey levels (0–255) that a visible word changes.
CONTRAST = 8
#: 1 for each grey level that counts as ink, else 0.
_MARKED = bytes(CONTRAST) + b"\1" * (256 - CONTRAST)
#: Widths of an average character without ink, at the end of a word or inside a word, from which a
#: part of the word is covered. A space between spaced letters has less than .8.
_GAP = 1.4
_EDGE_GAP = 0.8
#: Grey levels that always give a contrast of 1.5 or more: 255 with 211, 0 with 43.
STRONG = 45
#: Resolution at which the thinnest stroke of small print fills a pixel.
SHARP_DPI = 300
#: Share of a word's box at its top and bottom that holds ink of other lines: `inset_of`.
_INSET = 0.2

#: Last character of the scripts whose letters follow each other from left to right, each in a box.
_LAST_LATIN = "\u052f"


class TextInk:
    """The ink that the text objects of one page draw."""

    def __init__(self, whole: Image.Image, without_text: Image.Image) -> None:
        self._ground = without_text
        self._ink = ImageChops.difference(whole, without_text)
        self._levels = Levels(self._ink)

    def shows(self, text: str, box: Fractions) -> bool:
        """Return whether the word at `box` leaves ink, and all of the word."""
        width, height = self._ink.size
        left = min(width - 1, int(max(0.0, box[0]) * width))
        top = min(height - 1, int(max(0.0, box[1]) * height))
        right = max(left + 1, min(width, round(box[2] * width)))
        bottom = max(top + 1, min(height, round(box[3] * height)))
        rows = [row.translate(_MARKED) for row in self._levels.rows((left, top, right, bottom))]
        edge = int(inset_of(text) * len(rows))
        if not any(1 in row for row in rows[edge : len(rows) - edge]):
            return False
        if len(text) < 2 or not (text[0].isalnum() and text[-1].isalnum()):
            return True
        if max(text) > _LAST_LATIN or len(rows) > right - left:
            return True
        columns = 0
        for row in rows:
            columns |= int.from_bytes(row)
        return _is_whole(columns.to_bytes(right - left), len(text))

    def is_strong(self, text: str, box: Fractions) -> bool:
        """Return whether some ink of the word at `box` has so much contrast that it is seen."""
        rows = self._levels.rows(_inside(self._ink.size, box, inset_of(text)))
        return any(max(row) >= STRONG for row in rows)

    def differs(self, colour: Colour | None, box: Fractions) -> bool:
        """Return whether a colour shows on the ground at `box`."""
        level = _middle(self._ground.crop(_inside(self._ground.size, box)))
        return colour is not None and ratio(colour, (level, level, level)) >= LEAST_RATIO

    def outside(self, boxes: Iterable[Fractions]) -> Bits:
        """Return the ink of text outside of these words."""
        return bits(self._ink, EDGE).without(covered(self._ink.size, boxes))


class SharpInk:
    """The page in colour, with and without its text, drawn only if a pale word asks for it."""

    def __init__(self, draw: Callable[[], tuple[Image.Image, Image.Image]]) -> None:
        self._draw = draw
        self._drawn: tuple[Image.Image, Image.Image] | None = None

    def ground(self, box: Fractions) -> Colour:
        """Return the colour that lies behind most of a word."""
        _, bare = self._images()
        red, green, blue = map(_middle, bare.crop(_inside(bare.size, box)).split())
        return red, green, blue

    def contrast(self, text: str, box: Fractions) -> float:
        """Return the contrast (1–21) of a word's strongest pixel with the page without text."""
        whole, bare = self._images()
        place = _inside(whole.size, box, inset_of(text))
        one, other = whole.crop(place), bare.crop(place)
        red, green, blue = ImageChops.difference(one, other).split()
        most = ImageChops.lighter(ImageChops.lighter(red, green), blue)
        levels = most.tobytes()
        down, across = divmod(levels.index(max(levels)), most.width)
        return ratio(_pixel(one, across, down), _pixel(other, across, down))

    def _images(self) -> tuple[Image.Image, Image.Image]:
        if self._drawn is None:
            self._drawn = self._draw()
        return self._drawn


def inset_of(text: str) -> float:
    """Return the share of a word's box, at its top and bottom, that holds no ink of the word.

    The box reaches into the lines above and below, whose ink must not count. Only a rule, a dash or
    a full stop has its ink at the edge of the box.
    """
    # Most words begin with a letter or a digit.
    return _INSET if text[:1].isalnum() or any(map(str.isalnum, text)) else 0.0


def _inside(size: tuple[int, int], box: Fractions, share: float = _INSET) -> Box:
    """Return the pixels of a word's letters, without a share of the box at its top and bottom."""
    width, height = size
    inset = share * (box[3] - box[1])
    left = min(width - 1, int(max(0.0, box[0]) * width))
    top = min(height - 1, int(max(0.0, box[1] + inset) * height))
    right = max(left + 1, min(width, round(box[2] * width)))
    bottom = max(top + 1, min(height, round((box[3] - inset) * height)))
    return left, top, right, bottom


def _middle(image: Image.Image) -> int:
    """Return the median level of one channel."""
    levels = sorted(image.tobytes())
    return levels[len(levels) // 2]


def _pixel(image: Image.Image, across: int, down: int) -> Colour:
    red, green, blue = image.crop((across, down, across + 1, down + 1)).tobytes()
    return red, green, blue


def _is_whole(columns: bytes, characters: int) -> bool:
    """Return whether no character of a word is without ink; `columns` are 1 with ink, else 0."""
    each = len(columns) / characters
    inside = columns.strip(b"\0")
    before = columns.index(1)
    if max(before, len(columns) - before - len(inside)) > _EDGE_GAP * each + 1:
        return False
    return bytes(int(_GAP * each + 2)) not in inside
