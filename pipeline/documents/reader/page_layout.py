"""The layout of a page: placed words and marks in, the page text with offsets out.

The text contains the blocks one after the other, a TAB between the cells of a table row, `~~`
around struck-through words, and `[x]` or `[ ]` for check boxes. The functions are pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from .placed_words import NO_MARKS, Marks, PageWord
from .text_rows import RowToken, compose, merge_rows
from .types import Word


def lay_out(words: Sequence[PageWord], marks: Marks = NO_MARKS) -> tuple[str, tuple[Word, ...]]:
    """Return the text of a page or region, and each word with its offsets into the text.

    The order of `words` does not matter, so words of the text layer and of OCR may be mixed. The
    words of a line of OCR need a common baseline and size (`on_one_line`).
    """
    lines: dict[float, list[RowToken]] = {}
    for word in sorted(words, key=lambda word: (word.baseline, word.left)):
        x0, y0, x1, y1 = word.box
        token = RowToken(text=word.text, x0=x0, y0=y0, x1=x1, y1=y1, confidence=word.confidence)
        lines.setdefault(round(word.baseline), []).append(token)
    return compose(merge_rows(list(lines.values())))
