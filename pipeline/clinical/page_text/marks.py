"""The places of entities in the text of a page, as runs of marked text. Pure.

Offsets are 0-based in the page's text, and the end is exclusive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

Place = tuple[int, int, int]
"""Number of the entity on this page, start, end."""
_NOT_BLANK = re.compile(r"\S")


@dataclass(frozen=True, kw_only=True)
class HighlightRun:
    """A run of text that the same entities cover; `numbers` is empty if no entity covers it."""

    text: str = field(repr=False)
    numbers: tuple[int, ...]
    first_of: tuple[int, ...] = ()
    """The entities that begin here."""


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


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with blanks for the words of these spans; lines and offsets stay."""
    for start, end in spans:
        text = text[:start] + _NOT_BLANK.sub(" ", text[start:end]) + text[end:]
    return text


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
