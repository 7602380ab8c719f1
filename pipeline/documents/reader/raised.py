"""Superscripts and subscripts: small raised or lowered characters, by their size and baseline.

A figure after a number is a note and becomes a word of its own (`98 ¹`). A figure in a unit or
formula stays with it (`10³/µL`, `m²`, `CO₂`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from .placed_words import PageWord

#: A raised or lowered character is at most this large, in sizes of its neighbour.
SMALL = 0.85
#: Least distance of the baselines, in sizes of the neighbour.
RAISED, LOWERED = 0.12, 0.06
#: Least distance at which a character of the same size is raised or lowered.
FULL_SIZE = 0.25
#: Greatest distance of the baselines, in sizes of the neighbour.
HIGHEST = 0.75
#: Greatest gap between the neighbour and the character, in sizes of the neighbour.
NEAR = 0.3
_UP = str.maketrans(
    "0123456789+-()abcdefghijklmnoprstuvwxyz", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"
)
_DOWN = str.maketrans("0123456789+-()", "₀₁₂₃₄₅₆₇₈₉₊₋₍₎")
_NOTE = re.compile(r"(\d[\d.,]*)([⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})")
_TEN = re.compile(r"(?:.*[x×*·])?10")
_UNIT = re.compile(r"(?:.*[\d/·. ])?(?:[munpcdk]?m|in|ft|s|h|[dmµμ]?L|kg|Ca|Na|K|Cl|Mg|[A-Z]{1,2})")
_PLAIN = re.compile(r"st|nd|rd|th|TM|®|™|[A-Z]{1,3}")


def settle(words: Sequence[PageWord]) -> list[PageWord]:
    """Join raised and lowered parts to their words, or set them apart as notes.

    `words` are in the order of their source. Parts of one word follow each other without a gap.
    """
    found: list[PageWord] = []
    open_end = False
    for word in words:
        base = found[-1] if found else None
        shift = _shift(base, word) if base else 0
        if base is not None and shift:
            before = found[-2] if len(found) > 1 else None
            apart = _is_note(base, word, shift, before)
            text = _written(word.text, shift, apart)
            if apart:
                found.append(replace(word, text=text, baseline=base.baseline, size=base.size))
            else:
                found[-1] = _joined(base, word, text)
            open_end = True
        elif base is not None and open_end and _touches(base, word):
            # The rest of a word after its raised part: `/µL` after `10³`.
            if _is_exponent_of(found, word):
                found[-2:] = [_joined(found[-2], found[-1], found[-1].text)]
                base = found[-1]
            found[-1] = _joined(base, word, word.text)
            open_end = False
        else:
            found.append(word)
            open_end = False
    return [part for word in found for part in _without_note(word)]


def superscript(text: str) -> str:
    """Return `text` in Unicode superscripts, as far as they exist."""
    return text.translate(_UP)


def _shift(base: PageWord, word: PageWord) -> int:
    """Return 1 if `word` is raised against `base`, -1 if it is lowered, else 0."""
    gap = word.left - base.right
    if not -0.6 * base.size <= gap <= NEAR * base.size or len(word.text) > 4:
        return 0
    rise = (base.baseline - word.baseline) / base.size
    if abs(rise) > HIGHEST:
        return 0
    small = word.size < SMALL * base.size
    if rise > (RAISED if small else FULL_SIZE):
        return 1
    return -1 if rise < -(LOWERED if small else FULL_SIZE) else 0


def _touches(base: PageWord, word: PageWord) -> bool:
    gap = (word.left - base.right) / base.size
    return -0.6 <= gap < 0.12 and abs(word.baseline - base.baseline) < LOWERED * base.size


def _is_note(base: PageWord, word: PageWord, shift: int, before: PageWord | None) -> bool:
    text = base.text
    if _PLAIN.fullmatch(word.text):
        return word.text.isupper()
    if not text[-1].isalpha():
        multiplied = before is not None and before.text in {"x", "×", "*", "X", "·"}
        exponent = _TEN.fullmatch(text) and (multiplied or len(text) > 2)
        return not (exponent and any(c.isdigit() for c in word.text))
    if shift < 0:
        return False
    return not (_UNIT.fullmatch(text) or len(text) <= 2)


def _is_exponent_of(found: Sequence[PageWord], word: PageWord) -> bool:
    """Return whether the last two words are `10` and a note, followed by a unit."""
    return len(found) > 1 and found[-2].text == "10" and word.text.startswith("/")


def _written(text: str, shift: int, apart: bool) -> str:
    if _PLAIN.fullmatch(text):
        return text
    marked = text.translate(_UP if shift > 0 else _DOWN)
    if apart or all(one != other for one, other in zip(text, marked, strict=True)):
        return marked
    return text


def _joined(base: PageWord, word: PageWord, text: str) -> PageWord:
    x0, y0, x1, y1 = base.box
    return replace(
        base,
        text=base.text + text,
        right=max(base.right, word.right),
        top=min(base.top, word.top),
        bottom=max(base.bottom, word.bottom),
        box=(
            min(x0, word.box[0]),
            min(y0, word.box[1]),
            max(x1, word.box[2]),
            max(y1, word.box[3]),
        ),
    )


def _without_note(word: PageWord) -> list[PageWord]:
    """Split a number from the note behind it if the source wrote the note in Unicode."""
    if word.text.isascii():
        return [word]
    match = _NOTE.fullmatch(word.text)
    if match is None or match[1] == "10":
        return [word]
    share = len(match[1]) / len(word.text)
    x0, y0, x1, y1 = word.box
    middle = word.left + share * (word.right - word.left)
    across = x0 + share * (x1 - x0)
    return [
        replace(word, text=match[1], right=middle, box=(x0, y0, across, y1)),
        replace(word, text=match[2], left=middle, box=(across, y0, x1, y1)),
    ]
