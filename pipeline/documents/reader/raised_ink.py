"""Raised figures in the words of OCR, by the boxes of their symbols.

Tesseract reads `98` with a small raised `1` as `981`. The boxes of the symbols show the note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from .raised import superscript
from .text_rows import RowToken

Box = tuple[int, int, int, int]
Symbol = tuple[str, Box]

#: A raised symbol is at most this high, and ends at least this far above the baseline; both in
#: heights of the word's digits.
SMALL, RISE = 0.8, 0.2
#: Signs that are small and high by nature.
_HIGH_SIGNS = frozenset("'\"°*^-–—~`´’‘“”")
_NUMBER = re.compile(r"[<>≤≥~]?\d[\d.,]*")


def symbols_of(engine: Any) -> dict[Box, list[Symbol]]:
    """Return the symbols of each word with a digit that `engine` has recognised, by its box."""
    # Only a page that OCR reads needs the library.
    from tesserocr import RIL, iterate_level

    found: dict[Box, list[Symbol]] = {}
    words = engine.GetIterator()
    if words is None:
        return found
    key: Box = (0, 0, 0, 0)
    for symbol in iterate_level(words, RIL.SYMBOL):
        try:
            text, box = symbol.GetUTF8Text(RIL.SYMBOL), symbol.BoundingBox(RIL.SYMBOL)
            if symbol.IsAtBeginningOf(RIL.WORD):
                key = symbol.BoundingBox(RIL.WORD)
        except RuntimeError:
            continue  # An empty iterator has no text and says so with an error.
        if box and key:
            found.setdefault(key, []).append((text, box))
    return {
        box: symbols for box, symbols in found.items() if any(text.isdigit() for text, _ in symbols)
    }


def without_notes(token: RowToken, words: Mapping[Box, Sequence[Symbol]]) -> list[RowToken]:
    """Return `token`, or its number and its raised note as two tokens."""
    symbols = words.get((int(token.x0), int(token.y0), int(token.x1), int(token.y1)), ())
    if len(symbols) < 2 or "".join(text for text, _ in symbols) != token.text:
        return [token]
    height = max(box[3] - box[1] for text, box in symbols if text.isdigit())
    if height <= 0:
        # Tesseract gives symbols that it cannot place a box without height.
        return [token]
    full = [box[3] for text, box in symbols if text.isdigit() and box[3] - box[1] > 0.85 * height]
    baseline = median(full)
    end = len(symbols)
    while end > 1 and _is_raised(symbols[end - 1][1], height, baseline):
        end -= 1
    number = "".join(text for text, _ in symbols[:end])
    note = "".join(text for text, _ in symbols[end:])
    if not note or set(note) <= _HIGH_SIGNS or not _NUMBER.fullmatch(number):
        return [token]
    middle = symbols[end][1][0]
    return [
        replace(token, text=number, x1=symbols[end - 1][1][2]),
        replace(token, text=superscript(note), x0=middle),
    ]


def _is_raised(box: Box, height: float, baseline: float) -> bool:
    return box[3] - box[1] <= SMALL * height and box[3] <= baseline - RISE * height
