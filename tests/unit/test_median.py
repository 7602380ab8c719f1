"""The median of whole images equals the filter of Pillow."""

from __future__ import annotations

import random

import pytest
from PIL import Image, ImageFilter

from pipeline.documents.reader.median import median3


@pytest.mark.parametrize(
    "size", [(1, 1), (1, 5), (4, 1), (2, 2), (3, 3), (17, 9), (200, 130)], ids=str
)
@pytest.mark.parametrize("levels", [2, 5, 256])
def test_the_median_equals_that_of_pillow(size: tuple[int, int], levels: int) -> None:
    drawn = random.Random(f"{size} {levels}")
    pixels = bytes(drawn.randrange(levels) for _ in range(size[0] * size[1]))
    image = Image.frombytes("L", size, pixels)

    assert median3(image).tobytes() == image.filter(ImageFilter.MedianFilter(3)).tobytes()
