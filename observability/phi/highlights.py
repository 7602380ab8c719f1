"""The positions of entities on a page, as runs of marked text and as boxes on the image. Pure.

Offsets are 0-based in the page's text, the end is exclusive. Boxes are fractions (0–1) of the page
as the reader renders it, with the origin at the top left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Place = tuple[int, int, int]
"""Number of the entity on this page, start, end."""


@dataclass(frozen=True, kw_only=True)
class HighlightRun:
    """A run of text that the same entities cover; `numbers` is empty if no entity covers it."""

    text: str = field(repr=False)
    numbers: tuple[int, ...]
    first_of: tuple[int, ...] = ()
    """The entities that begin here."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """Words of one entity on one line."""

    number: int
    x0: float
    y0: float
    x1: float
    y1: float


def runs(text: str, places: Sequence[Place]) -> list[HighlightRun]:
    """Cut a text where an entity begins or ends; the runs joined are the text."""
    inside = [(n, max(0, start), min(end, len(text))) for n, start, end in places]
    inside = [place for place in inside if place[1] < place[2]]
    edges = sorted({0, len(text), *(edge for _, *both in inside for edge in both)})
    return [
        HighlightRun(
            text=text[start:end],
            numbers=tuple(n for n, first, last in inside if first <= start and end <= last),
            first_of=tuple(n for n, first, _ in inside if first == start),
        )
        for start, end in pairwise(edges)
    ]


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


def halves(quote: str, before: str, after: str, start: int, end: int) -> tuple[int, int]:
    """Return where a quote over two pages ends on the first and begins on the second page.

    The quote is stored as the texts of both pages with a line break between them. Only the page
    texts tell which of its line breaks that is.
    """
    breaks = [at for at, letter in enumerate(quote) if letter == "\n"]
    for at in reversed(breaks):
        tail = quote[at + 1 :]
        if before.startswith(quote[:at], start) and after[:end].endswith(tail):
            return start + at, end - len(tail)
    return len(before), 0


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
