"""Check boxes printed as letters of a font: each becomes the word `[x]` or `[ ]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .placed_words import PageWord

_EMPTY = "☐□▢◻❏❐❑❒"
_TICKED = "☑🗹✅🗷"
_CROSSED = "☒"
_TICK = "✓✔"
_CROSS = "✗✘"
_ALL = _EMPTY + _TICKED + _CROSSED + _TICK + _CROSS
_GLYPH = re.compile(f"([{_ALL}])")
#: Codes of the common symbol fonts, which have no meaning in Unicode.
_WINGDINGS = {0xA8: "☐", 0x6F: "☐", 0x71: "☐", 0x72: "☐", 0xFE: "☑", 0xFD: "☒", 0x78: "☒"}
_WINGDINGS |= {0xFC: "✓", 0xFB: "✗"}
_WINGDINGS_2 = {0xA3: "☐", 0x30: "☐", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0x50: "✓", 0x4F: "✗"}
_ZAPF = {0x6F: "☐", 0x70: "☐", 0x71: "☐", 0x72: "☐", 0x33: "✓", 0x34: "✔", 0x37: "✗", 0x38: "✘"}


def named(text: str, font: str) -> str:
    """Return `text` with the codes of a symbol font as Unicode characters."""
    name = font.lower().replace(" ", "").replace("-", "")
    if "wingdings2" in name:
        table = _WINGDINGS_2
    elif "wingdings" in name:
        table = _WINGDINGS
    elif "dingbat" in name:
        table = _ZAPF
    elif any("\uf020" <= char <= "\uf0ff" for char in text):
        table = {code: sign for code, sign in _WINGDINGS.items() if code > 0x7E}
        return "".join(
            table.get(ord(char) - 0xF000, char) if char >= "\uf020" else char for char in text
        )
    else:
        return text
    return "".join(
        table.get(ord(char) - 0xF000 if "\uf020" <= char <= "\uf0ff" else ord(char), char)
        for char in text
    )


def glyphs_of(texts: Iterable[str]) -> frozenset[str]:
    """Return the glyphs in the texts that can be check boxes."""
    return frozenset(char for text in texts if not text.isascii() for char in text) & set(_ALL)


def as_boxes(words: Sequence[PageWord], seen: frozenset[str] | None = None) -> list[PageWord]:
    """Return the words with `[x]` and `[ ]` in place of glyphs that are check boxes.

    A cross without a box means "no" beside ticks, and "yes" beside empty boxes. A glyph whose
    meaning the page does not show stays as it is. `seen` has the glyphs of the page if `words` are
    only a part of its words.
    """
    seen = glyphs_of(word.text for word in words) if seen is None else seen
    if not seen:
        return list(words)
    signs = dict.fromkeys(_EMPTY, "[ ]") | dict.fromkeys(_TICKED + _TICK, "[x]")
    has_empty = bool(seen & set(_EMPTY))
    if has_empty or not seen & set(_TICKED):
        signs |= dict.fromkeys(_CROSSED, "[x]")
    if seen & set(_TICK):
        signs |= dict.fromkeys(_CROSS, "[ ]")
    elif has_empty:
        signs |= dict.fromkeys(_CROSS, "[x]")
    return [part for word in words for part in _parts(word, signs)]


def _parts(word: PageWord, signs: dict[str, str]) -> Iterable[PageWord]:
    if word.text.isascii() or not any(char in signs for char in word.text):
        return [word]
    pieces = [piece for piece in _GLYPH.split(word.text) if piece]
    found: list[PageWord] = []
    at = 0
    x0, y0, x1, y1 = word.box
    length = len(word.text)
    for piece in pieces:
        start, at = at / length, at + len(piece)
        end = at / length
        found.append(
            replace(
                word,
                text=signs.get(piece, piece),
                left=word.left + start * (word.right - word.left),
                right=word.left + end * (word.right - word.left),
                box=(x0 + start * (x1 - x0), y0, x0 + end * (x1 - x0), y1),
            )
        )
    return found
