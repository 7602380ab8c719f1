"""The search for a quote in a page's text, literal or tolerant of layout and scanner errors.

This module is pure. At every tolerance, the numbers of the found text equal the numbers of the
quote. A match never begins or ends inside a number or a short word.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache

_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−"), "-")
_QUOTES = {ord("‘"): "'", ord("’"): "'", ord("“"): '"', ord("”"): '"', ord("µ"): "μ"}
_VARIANTS = _DASHES | _QUOTES
_DROPPED = {0xAD, 0x200B, 0x200C, 0x200D, 0xFEFF}
_STRIKE = "~~"
"""The mark of the page text around struck-through words."""
_CONFUSABLE = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "!": "l", "5": "s", "8": "b"})
_PAIRS = {"rn": "m", "vv": "w"}
_NUMBER = re.compile(r"\d+(?:[.,/]\d+)*")
_ENDS_IN_NUMBER = re.compile(r"\d[.,]?\Z")
_GOES_ON = re.compile(r"[.,]?\d")
_LEAST_INSIDE = 4
"""A quote shorter than this never matches inside a longer word."""


class Fold(Enum):
    """The differences that a search ignores."""

    LAYOUT = "layout"
    """White space, case, typographic variants, marks of struck words, and a hyphen kept before a
    line break."""
    JOINED = "joined"
    """As `LAYOUT`, and words that a hyphen divided at a line break are joined."""
    CONFUSABLE = "confusable"
    """As `JOINED`, and letters that scanners confuse are equal."""


def find(
    quote: str, text: str, start: int, end: int, fold: Fold | None, *, once: bool = False
) -> Iterator[tuple[int, int]]:
    """Yield start and end of each place of `quote` in `text[start:end]`; None ignores nothing.

    `once` means that this text will not be searched again, so its folded form is not cached.
    """
    if not quote.strip():
        return
    if fold is None:
        at = text.find(quote, start, end)
        while at >= 0:
            if cuts_no_word(text, at, at + len(quote)):
                yield at, at + len(quote)
            at = text.find(quote, at + 1, end)
        return
    needle = _fold(quote, fold)[0]
    hay, begins, ends = (_fold if once else _folded)(text[start:end], fold)
    at = hay.find(needle) if needle else -1
    while at >= 0:
        begin, stop = start + begins[at], start + ends[at + len(needle) - 1]
        same = same_numbers(quote, text[begin:stop], loose=fold is Fold.CONFUSABLE)
        if same and cuts_no_word(text, begin, stop):
            yield begin, stop
        at = hay.find(needle, at + 1)


def cuts_no_word(text: str, start: int, end: int) -> bool:
    """Return whether `text[start:end]` cuts no number, and no word unless the text is long."""
    if start >= end:
        return False
    left, right = text[max(0, start - 2) : start], text[end : end + 2]
    first, last = text[start], text[end - 1]
    if (first.isdigit() and _ENDS_IN_NUMBER.search(left)) or (
        first in ".," and left[-1:].isdigit()
    ):
        return False
    if (last.isdigit() and _GOES_ON.match(right)) or (last in ".," and right[:1].isdigit()):
        return False
    cuts_left = first.isalnum() and left[-1:].isalnum()
    cuts_right = last.isalnum() and right[:1].isalnum()
    return not (cuts_left or cuts_right) or end - start >= _LEAST_INSIDE


def same_numbers(quote: str, found_text: str, *, loose: bool = False) -> bool:
    """Return whether both texts contain the same numbers in the same order.

    `loose` accepts a digit for a letter inside a word that the quote writes without digits
    (`1isinopril`). It never accepts the reverse, or a word of fewer than five letters.
    """
    if not loose:
        return _NUMBER.findall(quote) == _NUMBER.findall(found_text)
    wanted, given = quote.split(), found_text.split()
    if len(wanted) != len(given):
        return _NUMBER.findall(quote) == _NUMBER.findall(found_text)
    return all(
        _NUMBER.findall(one) == _NUMBER.findall(other)
        or (
            not any(c.isdigit() for c in one)
            and sum(c.isalpha() for c in one) >= 5
            and sum(c.isdigit() for c in other) * 3 <= len(other)
        )
        for one, other in zip(wanted, given, strict=True)
    )


@lru_cache(maxsize=128)
def _folded(text: str, fold: Fold) -> tuple[str, array[int], array[int]]:
    return _fold(text, fold)


def _fold(text: str, fold: Fold) -> tuple[str, array[int], array[int]]:
    """Return the folded text and, for each character, its start and end in the original."""
    out: list[str] = []
    begins, ends = array("I"), array("I")

    def put(piece: str, begin: int, end: int) -> None:
        out.append(piece)
        begins.append(begin)
        ends.append(end)

    at = 0
    while at < len(text):
        char = text[at]
        if char == "~" and text.startswith(_STRIKE, at):
            at += len(_STRIKE)
            continue
        if char.isspace():
            gap = _gap(text, at)
            if out and at + len(gap) < len(text):
                put(" ", at, at + len(gap))
            at += len(gap)
            continue
        if ord(char) in _DROPPED:
            at += 1
            continue
        char = char.translate(_VARIANTS)
        gap = _gap(text, at + 1) if char == "-" else ""
        if "\n" in gap:
            divided = out and out[-1].isalpha() and text[at + 1 + len(gap) :][:1].isalpha()
            if fold is Fold.LAYOUT or not divided:
                put("-", at, at + 1)
            at += 1 + len(gap)
            continue
        for piece in unicodedata.normalize("NFKC", char).casefold():
            put(piece, at, at + 1)
        at += 1
    if fold is Fold.CONFUSABLE:
        return _alike(out, begins, ends)
    return "".join(out), begins, ends


def _gap(text: str, at: int) -> str:
    end = at
    while end < len(text) and text[end].isspace():
        end += 1
    return text[at:end]


def _alike(
    chars: list[str], begins: array[int], ends: array[int]
) -> tuple[str, array[int], array[int]]:
    """Make confusable letters equal; `rn` and `vv` become one character."""
    out: list[str] = []
    firsts, lasts = array("I"), array("I")
    at = 0
    while at < len(chars):
        pair = _PAIRS.get("".join(chars[at : at + 2]))
        width = 2 if pair else 1
        out.append(pair or chars[at].translate(_CONFUSABLE))
        firsts.append(begins[at])
        lasts.append(ends[at + width - 1])
        at += width
    return "".join(out), firsts, lasts
