"""Grey levels of many small boxes of one image. Pure.

The visibility of a word is read from a few hundred pixels. A crop of the image costs more than the
look at its pixels, so the boxes are slices of the image's bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image


class Levels:
    """The grey levels (0–255) of an image in mode L."""

    def __init__(self, image: Image.Image) -> None:
        self._width = image.width
        self._levels = image.tobytes()

    def rows(self, box: tuple[int, int, int, int]) -> Iterator[bytes]:
        """Yield each row of a box (left, top, right, bottom), which lies inside of the image."""
        left, top, right, bottom = box
        for start in range(top * self._width, bottom * self._width, self._width):
            yield self._levels[start + left : start + right]
