"""Placed words for tests of the page layout, as a typewriter of 6 points a character sets them."""

from __future__ import annotations

from pipeline.documents.reader.page_layout import lay_out
from pipeline.documents.reader.placed_words import NO_MARKS, Marks, PageWord

ADVANCE = 6.0


def words_of(text: str, x: float, y: float, size: float = 10.0) -> list[PageWord]:
    """Return the words of one line that begins at `x` and has its baseline at `y`, in points."""
    words = []
    for raw in text.split(" "):
        right = x + ADVANCE * len(raw) * size / 10
        if raw:
            words.append(
                PageWord(
                    text=raw,
                    left=x,
                    top=y - 0.9 * size,
                    right=right,
                    bottom=y + 0.25 * size,
                    baseline=y,
                    size=size,
                    box=(x / 612, (y - size) / 792, right / 612, y / 792),
                )
            )
        x = right + ADVANCE * size / 10
    return words


def page_of(lines: list[tuple[float, float, str]], marks: Marks = NO_MARKS) -> str:
    """Return the page text of lines given as (x, baseline, text)."""
    return lay_out([word for x, y, text in lines for word in words_of(text, x, y)], marks)[0]
