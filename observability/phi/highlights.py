"""The positions of entities on a page, as boxes on its image. Pure.

Offsets are 0-based in the page's text, and the end is exclusive. Boxes are fractions (0–1) of the
page as the reader renders it, with the origin at the top left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.clinical.page_text.marks import Place


@dataclass(frozen=True, kw_only=True)
class Box:
    """Words of one entity on one line."""

    number: int
    x0: float
    y0: float
    x1: float
    y1: float


def boxes(words: Sequence[Sequence[float]], places: Sequence[Place]) -> list[Box]:
    """Return one box for each line of each entity; `words` are as in `Page.words`."""
    found: list[Box] = []
    for number, start, end in places:
        line: Box | None = None
        for first, last, x0, y0, x1, y1, *_ in words:
            if last <= start or first >= end:
                continue
            word = Box(number=number, x0=x0, y0=y0, x1=x1, y1=y1)
            if line is not None and _beside(line, word):
                line = _joined(line, word)
                continue
            found += [line] if line is not None else []
            line = word
        found += [line] if line is not None else []
    return found


def _beside(line: Box, word: Box) -> bool:
    """Return whether a word continues the line, instead of beginning a new line or column."""
    height = min(line.y1 - line.y0, word.y1 - word.y0)
    shared = min(line.y1, word.y1) - max(line.y0, word.y0)
    gap = max(word.x0 - line.x1, line.x0 - word.x1)
    return shared > height / 2 and gap < 5 * max(height, 0.01)


def _joined(one: Box, other: Box) -> Box:
    return Box(
        number=one.number,
        x0=min(one.x0, other.x0),
        y0=min(one.y0, other.y0),
        x1=max(one.x1, other.x1),
        y1=max(one.y1, other.y1),
    )
