"""Words, lines and rows of tables: from placed tokens to one page text with offsets.

Both the text layer and OCR hand their lines to this module, so a laboratory row is one line of text
for every kind of page.
"""

from __future__ import annotations

import statistics
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from .types import Word

#: A fragment with at least this many words is prose, and therefore a column of its own.
PROSE_WORDS = 5
#: Share of a line's height that two fragments of one row must have in common.
ROW_OVERLAP = 0.6
#: Lines this many times taller than the page's median are never joined into a row.
TALL = 3.0

_REPLACED = {
    **dict(zip("ﬀﬁﬂﬃﬄﬅﬆ", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True)),
    "\x02": "-",  # PDFium's mark for a hyphen at a line's end
    "\ufffe": "-",
    "\uf0b7": "•",
    "\uf0a7": "•",
}
#: Format characters that change how a word reads; all other format characters are dropped.
_KEPT_FORMAT = {"\u200c", "\u200d"}


@dataclass(frozen=True, kw_only=True, slots=True)
class RowToken:
    """A word as its source gave it, with its box in fractions (0–1) of the displayed page."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    confidence: float | None = None


def clean(raw: str) -> str:
    """Return `raw` in NFC, without invisible characters and characters that PostgreSQL refuses."""
    if raw.isascii() and raw.isprintable():
        return raw
    kept = []
    for char in raw:
        char = _REPLACED.get(char, char)
        category = unicodedata.category(char[0])
        if category in {"Cc", "Cs", "Cn", "Zs", "Zl", "Zp"}:
            continue
        if category == "Cf" and char not in _KEPT_FORMAT:
            continue
        kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))


def merge_rows(fragments: Sequence[Sequence[RowToken]]) -> list[list[RowToken]]:
    """Join fragments that lie side by side in one row of a table or form.

    1. Fragments whose heights overlap and whose widths do not overlap are one row.
    2. A row with two fragments of prose is two columns of text and is not joined. On a page with
       mostly such rows nothing is joined.
    3. A row takes the place of its first fragment in reading order.
    """
    lines = [list(line) for line in fragments if line]
    if len(lines) < 2:
        return lines
    spans = [_span(line) for line in lines]
    median = statistics.median(bottom - top for _, top, _, bottom in spans)
    rows = _rows(spans, TALL * median)
    shared = [row for row in rows if len(row) > 1]
    columns = [row for row in shared if sum(len(lines[i]) >= PROSE_WORDS for i in row) > 1]
    if len(columns) >= 3 and len(columns) >= 0.3 * len(shared):
        return lines
    merged: dict[int, list[RowToken]] = {}
    apart = {i for row in columns for i in row}
    for row in rows:
        if len(row) == 1 or row[0] in apart:
            merged.update((i, lines[i]) for i in row)
            continue
        across = sorted(row, key=lambda i: spans[i][0])
        merged[min(row)] = [token for i in across for token in lines[i]]
    return [merged[i] for i in sorted(merged)]


def reading_turn(lines: Sequence[Sequence[RowToken]]) -> int:
    """Return the clockwise turn in degrees (0, 90, 180, 270) that makes the text upright."""
    long = [token for line in lines for token in line if len(token.text) > 3]
    if not long or _right_to_left(long):
        return 0
    tall = sum(token.y1 - token.y0 > token.x1 - token.x0 for token in long)
    several = [line for line in lines if len(line) > 1]
    if 2 * tall > len(long):
        down = sum(line[0].y0 < line[-1].y0 for line in several)
        return 270 if 2 * down >= len(several) else 90
    backward = sum(line[0].x0 > line[-1].x0 for line in several)
    return 180 if 2 * backward > len(several) else 0


def reading_order(lines: Sequence[Sequence[RowToken]], turn: int) -> list[list[RowToken]]:
    """Return the lines of a text layer in the order in which a person reads them.

    PDFium returns the lines of a sideways page from the last to the first.
    """
    if turn == 0:
        return merge_rows(lines)
    if turn == 180:
        return [list(line) for line in lines]
    across = sorted(lines, key=lambda line: line[0].x0, reverse=turn == 270)
    return [list(line) for line in across]


def _right_to_left(tokens: Sequence[RowToken]) -> bool:
    from_right = sum(unicodedata.bidirectional(token.text[0]) in {"R", "AL"} for token in tokens)
    return 2 * from_right > len(tokens)


def _span(line: Sequence[RowToken]) -> tuple[float, float, float, float]:
    return (
        min(token.x0 for token in line),
        statistics.median(token.y0 for token in line),
        max(token.x1 for token in line),
        statistics.median(token.y1 for token in line),
    )


def _rows(spans: Sequence[tuple[float, float, float, float]], tallest: float) -> list[list[int]]:
    """Group the indexes of `spans` that lie side by side."""
    rows: list[list[int]] = []
    for index in sorted(range(len(spans)), key=lambda i: spans[i][1] + spans[i][3]):
        row = next((r for r in reversed(rows[-4:]) if _fits(spans, r, index, tallest)), None)
        if row is None:
            rows.append([index])
        else:
            row.append(index)
    return rows


def _fits(
    spans: Sequence[tuple[float, float, float, float]],
    row: Sequence[int],
    index: int,
    tallest: float,
) -> bool:
    left, top, right, bottom = spans[index]
    if bottom - top > tallest:
        return False
    for other in row:
        other_left, other_top, other_right, other_bottom = spans[other]
        lower = min(bottom - top, other_bottom - other_top)
        overlap = min(bottom, other_bottom) - max(top, other_top)
        if other_bottom - other_top > tallest or overlap < ROW_OVERLAP * lower:
            return False
        if min(right, other_right) > max(left, other_left):
            return False
    return True


def compose(lines: Sequence[Sequence[RowToken]]) -> tuple[str, tuple[Word, ...]]:
    """Return the page text, one line per row, and each word with its offsets into the text."""
    parts: list[str] = []
    words: list[Word] = []
    offset = 0
    for line in lines:
        first = True
        for token in line:
            text = clean(token.text)
            if not text:
                continue
            separator = "" if not parts else "\n" if first else " "
            first = False
            offset += len(separator)
            parts.append(separator + text)
            words.append(
                Word(
                    start=offset,
                    end=offset + len(text),
                    x0=_fraction(token.x0),
                    y0=_fraction(token.y0),
                    x1=_fraction(token.x1),
                    y1=_fraction(token.y1),
                    confidence=token.confidence,
                )
            )
            offset += len(text)
    return "".join(parts), tuple(words)


def _fraction(value: float) -> float:
    return round(min(1.0, max(0.0, value)), 5)
