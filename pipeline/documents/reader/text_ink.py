"""The ink of a page's text: the difference between the page and the page without its text. Pure.

The difference shows exactly what the text layer draws. A word that leaves no ink is hidden, and
ink outside of the words is text without characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
        self._marked = self._ink.point([0] * CONTRAST + [255] * (256 - CONTRAST))

    def shows(self, text: str, box: Fractions) -> bool:
        """Return whether the word at `box` leaves ink, and all of the word."""
        width, height = self._ink.size
        left = min(width - 1, int(max(0.0, box[0]) * width))
        top = min(height - 1, int(max(0.0, box[1]) * height))
        right = max(left + 1, min(width, round(box[2] * width)))
        bottom = max(top + 1, min(height, round(box[3] * height)))
        across, down = self._marked.crop((left, top, right, bottom)).getprojection()
        # The box reaches into the lines above and below, whose ink must not count. Only a rule or a
        # full stop has its ink at the edge of the box.
        edge = len(down) // 5 if any(char.isalnum() for char in text) else 0
        if not any(down[edge : len(down) - edge]):
            return False
        if len(text) < 2 or not (text[0].isalnum() and text[-1].isalnum()):
            return True
        if max(text) > _LAST_LATIN or len(down) > len(across):
            return True
        return _is_whole(across, len(text))

    def outside(self, boxes: Iterable[Fractions]) -> Bits:
        """Return the ink of text outside of these words."""
        return bits(self._ink, EDGE).without(covered(self._ink.size, boxes))


def _is_whole(across: Sequence[int], characters: int) -> bool:
    """Return whether no character of a word is without ink; `across` tells the columns with ink."""
    each = len(across) / characters
    written = "".join(map(str, across))
    inside = written.strip("0")
    before = written.index("1")
    if max(before, len(written) - before - len(inside)) > _EDGE_GAP * each + 1:
        return False
    return "0" * int(_GAP * each + 2) not in inside
