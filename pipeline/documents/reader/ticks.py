"""Ticks that a person drew into a check box: ink that the page's text does not explain. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PIL import Image

from .bits import Bits
from .ink import Fractions
from .placed_words import CheckBox, Marks, PageWord

EMPTY, TICKED = "[ ]", "[x]"
#: Share of each side of a box that is left out, because its outline is drawn there. The outline of
#: a box of 10 points is four pixels wide where it lies between two pixels.
_OUTLINE = 0.36
#: Share of the inside of a box that a tick darkens at least; a tick has .2.
_DARK = 0.08
#: Room around a check box into which a tick reaches, as a share of its side.
TICK_ROOM = 0.6


def tick_words(words: Sequence[PageWord], ink: Bits) -> list[PageWord]:
    """Return the words with `[x]` in place of each `[ ]` that has ink inside."""
    if not any(word.text == EMPTY for word in words):
        return list(words)
    image = ink.image()
    return [
        replace(word, text=TICKED)
        if word.text == EMPTY and _has_ink(image, _square(word.box, image.size))
        else word
        for word in words
    ]


def tick_boxes(boxes: Sequence[CheckBox], ink: Bits) -> tuple[CheckBox, ...]:
    """Return the check boxes; a drawn box is ticked if it has ink inside.

    A form field states itself whether it is ticked, and its ink includes a round outline.
    """
    if all(box.ticked or box.is_field for box in boxes):
        return tuple(boxes)
    image = ink.image()
    return tuple(
        replace(box, ticked=True)
        if not box.ticked and not box.is_field and _has_ink(image, box.box)
        else box
        for box in boxes
    )


def check_boxes(words: Sequence[PageWord], marks: Marks) -> list[Fractions]:
    """Return the boxes of all check boxes, which are read as a part of the text."""
    drawn = [box.box for box in marks.check_boxes]
    return drawn + [word.box for word in words if word.text in {EMPTY, TICKED}]


def _square(box: Fractions, size: tuple[int, int]) -> Fractions:
    """Return the lower square of a character's box, which is taller than its glyph."""
    x0, y0, x1, y1 = box
    side = (x1 - x0) * size[0] / size[1]
    middle = (y0 + y1) / 2
    return (x0, middle - side / 2, x1, middle + side / 2) if side < y1 - y0 else box


def _has_ink(image: Image.Image, box: Fractions) -> bool:
    width, height = image.size
    x0, y0, x1, y1 = box
    across, down = _OUTLINE * (x1 - x0), _OUTLINE * (y1 - y0)
    part = image.crop(
        (
            round((x0 + across) * width),
            round((y0 + down) * height),
            round((x1 - across) * width),
            round((y1 - down) * height),
        )
    )
    pixels = part.width * part.height
    return pixels > 0 and part.histogram()[-1] >= max(2, _DARK * pixels)
