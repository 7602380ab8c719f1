"""Words as a text layer or OCR gives them: cleaned, with the turn that makes them upright."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from .placed_words import PageWord, upright

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
    #: Where the baseline begins, in fractions of the displayed page; None if unknown.
    origin: tuple[float, float] | None = None
    #: Size of the type in points; 0 if unknown.
    size: float = 0.0
    bold: bool = False


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


def reading_turn(lines: Sequence[Sequence[RowToken]]) -> int:
    """Return the clockwise turn in degrees (0, 90, 180, 270) that makes the text upright."""
    long = [token for line in lines for token in line if len(token.text) > 3]
    if not long or right_to_left(long):
        return 0
    tall = sum(token.y1 - token.y0 > token.x1 - token.x0 for token in long)
    several = [line for line in lines if len(line) > 1]
    if 2 * tall > len(long):
        down = sum(line[0].y0 < line[-1].y0 for line in several)
        return 270 if 2 * down >= len(several) else 90
    backward = sum(line[0].x0 > line[-1].x0 for line in several)
    return 180 if 2 * backward > len(several) else 0


def right_to_left(tokens: Sequence[RowToken]) -> bool:
    """Return whether most words are Arabic or Hebrew."""
    from_right = sum(unicodedata.bidirectional(token.text[0]) in {"R", "AL"} for token in tokens)
    return 2 * from_right > len(tokens)


def placed(token: RowToken, width: float, height: float, turn: int) -> PageWord:
    """Return a word of the displayed page of `width` × `height` points as a word of its layout."""
    box = (token.x0, token.y0, token.x1, token.y1)
    left, top, right, bottom = upright(box, width, height, turn)
    baseline = bottom - 0.2 * (bottom - top)
    if token.origin:
        baseline = upright((*token.origin, *token.origin), width, height, turn)[1]
    size = token.size
    if not 0.5 * (bottom - top) <= size <= 1.6 * (bottom - top):
        size = (bottom - top) / 1.15
    return PageWord(
        text=token.text,
        left=left,
        top=top,
        right=right,
        bottom=bottom,
        baseline=baseline,
        size=max(size, 0.1),
        box=box,
        confidence=token.confidence,
        bold=token.bold,
    )
