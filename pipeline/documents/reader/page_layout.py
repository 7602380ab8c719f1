"""The layout of a page: placed words and marks in, the page text with offsets out.

The text contains the blocks one after the other, a TAB between the cells of a table row, `~~`
around struck-through words, and `[x]` or `[ ]` for check boxes. The functions are pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .fragments import Fragment, join, prepare
from .placed_words import NO_MARKS, Marks, PageWord
from .side_by_side import one_after_the_other
from .table_rows import Row, rows_of
from .text_rows import clean
from .types import Word

_STRIKE = "~~"


def lay_out(words: Sequence[PageWord], marks: Marks = NO_MARKS) -> tuple[str, tuple[Word, ...]]:
    """Return the text of a page or region, and each word with its offsets into the text.

    The order of `words` does not matter, so words of the text layer and of OCR may be mixed. The
    words of OCR need a common baseline and size for each line (`in_lines`).
    """
    upright, sideways = _parted([word for word in words if clean(word.text)])
    prepared = prepare(upright, marks)
    blocks = one_after_the_other(join(prepared, marks), marks)
    rows = [row for block in blocks for row in rows_of(block, marks)]
    return _compose([*rows, *([[Fragment(run)]] for run in sideways)])


def _parted(words: Sequence[PageWord]) -> tuple[list[PageWord], list[list[PageWord]]]:
    """Return the words of horizontal lines, and runs of words that climb or descend the margin."""
    upright: list[PageWord] = []
    runs: list[list[PageWord]] = []
    run: list[PageWord] = []
    for word in words:
        tall = word.bottom - word.top > 1.5 * (word.right - word.left)
        beside = bool(run) and abs(word.left - run[-1].left) < 0.3 * run[-1].size
        if (tall and len(word.text) > 3) or (beside and len(word.text) <= 3):
            if run and not beside:
                runs.append(run)
                run = []
            run.append(word)
            continue
        upright.append(word)
    return upright, [*runs, run] if run else runs


def in_given_order(lines: Iterable[Sequence[PageWord]]) -> tuple[str, tuple[Word, ...]]:
    """Return the text of lines whose order only their source knows (from right to left)."""
    writer = _Writer()
    for line in lines:
        writer.line()
        writer.words(word for word in line if clean(word.text))
    return writer.result()


def in_given_rows(
    rows: Iterable[Sequence[Sequence[PageWord]]],
) -> tuple[str, tuple[Word, ...]]:
    """Return the text of rows whose cells their source states (the tables of a DOCX).

    A row has the words of each cell; empty cells at its end are left out.
    """
    writer = _Writer()
    for row in rows:
        writer.line()
        filled = max((i for i, cell in enumerate(row) if cell), default=0) + 1
        for i, cell in enumerate(row[:filled]):
            if i:
                writer.cell()
            writer.words(word for word in cell if clean(word.text))
    return writer.result()


def _compose(rows: Iterable[Row]) -> tuple[str, tuple[Word, ...]]:
    writer = _Writer()
    for row in rows:
        writer.line()
        for i, cell in enumerate(row):
            if i:
                writer.cell()
            writer.words(word for fragment in cell for word in fragment.words)
    return writer.result()


class _Writer:
    """Collects the text and the offsets."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._words: list[Word] = []
        self._length = 0
        self._fresh = True

    def line(self) -> None:
        """Begin a line of the text."""
        if self._parts:
            self._put("\n")
        self._fresh = True

    def cell(self) -> None:
        """Begin the next cell of the row."""
        self._put("\t")
        self._fresh = True

    def words(self, words: Iterable[PageWord]) -> None:
        """Add words with single spaces; a run of struck words has one mark on each side."""
        struck = False
        for word in words:
            if struck and not word.struck:
                self._put(_STRIKE)
            if not self._fresh:
                self._put(" ")
            self._fresh = False
            if word.struck and not struck:
                self._put(_STRIKE)
            struck = word.struck
            self._word(word)
        if struck:
            self._put(_STRIKE)

    def result(self) -> tuple[str, tuple[Word, ...]]:
        """Return the text and the words in the order of the text."""
        return "".join(self._parts), tuple(self._words)

    def _word(self, word: PageWord) -> None:
        text = clean(word.text)
        x0, y0, x1, y1 = (round(min(1.0, max(0.0, value)), 5) for value in word.box)
        self._words.append(
            Word(
                start=self._length,
                end=self._length + len(text),
                x0=x0,
                y0=y0,
                x1=x1,
                y1=y1,
                confidence=word.confidence,
            )
        )
        self._put(text)

    def _put(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
