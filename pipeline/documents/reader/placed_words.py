"""The input of the page layout: words and drawn marks in points of the upright page.

The origin is the top left corner and `y` grows downwards. An upright page is the page after the
clockwise turn that makes its text horizontal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

_DESCENDING = frozenset("gjpqy,;()[]{}/|_Q")
_ASCENDING = frozenset("bdfhijkltß()[]{}/|!?'\"%&*")
#: Heights of a small letter and of a descender, in heights of a capital.
X_HEIGHT, DESCENT = 0.72, 0.28
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
    struck: bool = False


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
    #: True for a form field, which is a check box wherever it is.
    is_field: bool = False


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


def turned(marks: Marks, width: float, height: float, turn: int) -> Marks:
    """Return marks of the displayed page of `width` × `height` points on the upright page."""
    if turn == 0:
        return marks

    def place(mark: Rule | CheckBox) -> tuple[float, float, float, float]:
        box = mark.left / width, mark.top / height, mark.right / width, mark.bottom / height
        return upright(box, width, height, turn)

    def rules(found: Sequence[Rule]) -> tuple[Rule, ...]:
        return tuple(
            Rule(left=left, top=top, right=right, bottom=bottom)
            for left, top, right, bottom in map(place, found)
        )

    boxes = []
    for box in marks.check_boxes:
        left, top, right, bottom = place(box)
        boxes.append(replace(box, left=left, top=top, right=right, bottom=bottom))
    return Marks(
        rules=rules(marks.rules),
        frames=rules(marks.frames),
        check_boxes=tuple(boxes),
        struck=rules(marks.struck),
    )


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


def in_lines(lines: Sequence[Sequence[PageWord]]) -> list[PageWord]:
    """Give the words of each line of OCR a common baseline and size, from the boxes of their ink.

    Lines of about the page's usual size get exactly that size, because ink shows the size of the
    type only roughly.
    """
    measured = [(line, *_measured(line)) for line in lines if line]
    if not measured:
        return []
    usual = median(size for _, _, size in measured)
    return [
        replace(word, baseline=baseline, size=usual if 0.7 < size / usual < 1.4 else size)
        for line, baseline, size in measured
        for word in line
    ]


def _measured(line: Sequence[PageWord]) -> tuple[float, float]:
    """Return the baseline and the size of the type of a line, from the letters of its words."""
    baselines, heights = [], []
    for word in line:
        letters = set(word.text)
        descent = DESCENT if letters & _DESCENDING else 0.0
        rise = 1.0 if letters & _ASCENDING or any(map(_is_tall, letters)) else X_HEIGHT
        height = max(1.0, word.bottom - word.top) / (rise + descent)
        heights.append(height)
        baselines.append(word.bottom - descent * height)
    return median(baselines), median(heights) / CAPITALS


def _is_tall(char: str) -> bool:
    return char.isupper() or char.isdigit()
