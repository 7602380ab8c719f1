"""The input of the page layout: words and drawn marks in points of the upright page.

The origin is the top left corner and `y` grows downwards. An upright page is the page after the
clockwise turn that makes its text horizontal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

#: Ratio of the height of capitals to the size of the type; OCR boxes enclose only the ink.
CAPITALS = 0.72


@dataclass(frozen=True, kw_only=True, slots=True)
class PageWord:
    """One word, or a part of a word with its own size or baseline."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    #: The line on which the letters sit, and the size of the type, both in points.
    baseline: float
    size: float
    #: (x0, y0, x1, y1) in fractions (0–1) of the page as it is displayed.
    box: tuple[float, float, float, float]
    confidence: float | None = None
    bold: bool = False
    #: True if the word continues the word before it without a space.
    glued: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A straight horizontal or vertical line; `left == right` or `top == bottom` may hold."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckBox:
    """A box or circle that a person ticks: a drawing or a form field."""

    left: float
    top: float
    right: float
    bottom: float
    ticked: bool
    box: tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Marks:
    """Everything drawn on a page that is not a letter."""

    #: Lines of tables, lines between columns, underlines, and lines through words.
    rules: tuple[Rule, ...] = ()
    #: Outlines and grounds of cells, frames and shaded rows.
    frames: tuple[Rule, ...] = ()
    check_boxes: tuple[CheckBox, ...] = ()
    #: Areas that an annotation strikes through.
    struck: tuple[Rule, ...] = ()


NO_MARKS = Marks()


def upright(
    box: tuple[float, float, float, float], width: float, height: float, turn: int
) -> tuple[float, float, float, float]:
    """Return a box in fractions of the displayed page as points of the upright page.

    `width` and `height` are those of the displayed page in points. `turn` is the clockwise turn in
    degrees (0, 90, 180, 270) that makes the page upright.
    """
    x0, y0, x1, y1 = box
    if turn == 90:
        return (1 - y1) * height, x0 * width, (1 - y0) * height, x1 * width
    if turn == 180:
        return (1 - x1) * width, (1 - y1) * height, (1 - x0) * width, (1 - y0) * height
    if turn == 270:
        return y0 * height, (1 - x1) * width, y1 * height, (1 - x0) * width
    return x0 * width, y0 * height, x1 * width, y1 * height


def on_one_line(words: Sequence[PageWord]) -> list[PageWord]:
    """Give the words of one line of OCR a common baseline and size, from the boxes of their ink."""
    if not words:
        return []
    low = [word.bottom for word in words if not set(word.text) & set("gjpqy,;()[]{}/|_Q")]
    tall = [
        word.baseline - word.top
        for word in words
        if any(c.isupper() or c.isdigit() for c in word.text)
    ]
    baseline = median(low or [word.bottom for word in words])
    height = median([baseline - word.top for word in words])
    size = max(height, median(tall or [height])) / CAPITALS
    return [replace(word, baseline=baseline, size=size) for word in words]
