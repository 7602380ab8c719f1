"""The ink of a page's text: the difference between the page and the page without its text. Pure.

The difference shows exactly what the text layer draws. A word that leaves no ink is hidden, and
ink outside of the words is text without characters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from PIL import Image, ImageChops

from .bits import Bits, bits
from .ink import EDGE, Fractions, covered

#: Least grey levels (0–255) that a visible word changes.
CONTRAST = 8
#: Widths of an average character without ink, at the end of a word or inside a word, from which a
#: part of the word is covered. A space between spaced letters has less than .8.
_GAP = 1.4
_EDGE_GAP = 0.8


#: Last character of the scripts whose letters follow each other from left to right, each in a box.
_LAST_LATIN = "\u052f"


class TextInk:
    """The ink that the text objects of one page draw."""

    def __init__(self, whole: Image.Image, without_text: Image.Image) -> None:
        self._ink = ImageChops.difference(whole, without_text)

    def shows(self, text: str, box: Fractions) -> bool:
        """Return whether the word at `box` leaves ink, and all of the word."""
        # The box reaches into the lines above and below, whose ink must not count. Only a rule or a
        # full stop has its ink at the edge of the box.
        letters = any(char.isalnum() for char in text)
        left, top, right, bottom = _pixels(box, self._ink.size, 0.2 if letters else 0.0)
        part = self._ink.crop((left, top, right, bottom))
        _, darkest = cast("tuple[int, int]", part.getextrema())
        if darkest < CONTRAST:
            return False
        if len(text) < 2 or not (text[0].isalnum() and text[-1].isalnum()):
            return True
        if max(text) > _LAST_LATIN:
            return True
        if bottom - top > right - left:
            return True
        # Raised characters have their ink near the upper edge of the box.
        return _is_whole(self._ink.crop(_pixels(box, self._ink.size, 0.0)), len(text))

    def outside(self, boxes: Iterable[Fractions]) -> Bits:
        """Return the ink of text outside of these words."""
        return bits(self._ink, EDGE).without(covered(self._ink.size, boxes))


def _pixels(box: Fractions, size: tuple[int, int], inset: float) -> tuple[int, int, int, int]:
    """Return `box` in pixels, less the share `inset` of its height above and below."""
    x0, y0, x1, y1 = box
    width, height = size
    less = inset * (y1 - y0)
    left = min(width - 1, int(max(0.0, x0) * width))
    top = min(height - 1, int(max(0.0, y0 + less) * height))
    right = max(left + 1, min(width, round(x1 * width)))
    bottom = max(top + 1, min(height, round((y1 - less) * height)))
    return left, top, right, bottom


def _is_whole(part: Image.Image, characters: int) -> bool:
    """Return whether no character of the word is without ink."""
    across, _ = part.point([0] * CONTRAST + [255] * (256 - CONTRAST), "1").getprojection()
    each = len(across) / characters
    if across.index(1) > _EDGE_GAP * each + 1 or across[::-1].index(1) > _EDGE_GAP * each + 1:
        return False
    gaps = "".join(map(str, across)).strip("0").split("1")
    return max(map(len, gaps)) <= _GAP * each + 1
