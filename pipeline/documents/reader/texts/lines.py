"""What every text format becomes: lines of cells of tokens, blocks of columns, and page breaks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

#: Longest word in characters; a longer run without a space is cut, since no page holds it.
LONGEST_WORD = 1000
#: A part of a word, as long as the longest word.
WORD = re.compile(rf"\S{{1,{LONGEST_WORD}}}")


@dataclass(frozen=True, kw_only=True, slots=True)
class TypedWord:
    """A word, or a part of a word that is raised or lowered."""

    text: str
    struck: bool = False
    #: 1 for superscript, -1 for subscript.
    shift: int = 0
    #: True for a part of a word that follows the part before without a space.
    is_glued: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line of the page text: its cells, and the column where each cell begins on paper."""

    cells: tuple[tuple[TypedWord, ...], ...]
    #: First column and width in characters of each cell.
    places: tuple[tuple[int, int], ...]
    #: The headings of the line's table, which are repeated if a page begins with this line.
    headers: tuple[Line, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TypedColumns:
    """Lines of a typewriter whose columns the layout of pages has to find."""

    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Blank:
    """An empty line, which is on paper and not in the page text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PageBreak:
    """The end of a page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Warned:
    """A warning for the page of this item; it takes no room."""

    name: str
    #: Share of the page that was not read, for the warning `partly_read`.
    unread_share: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Framed:
    """From here on, these lines stand above and below each page.

    `frame` returns them from the number of the page (1-based), the number of pages, and whether the
    page is the first of its section.
    """

    frame: Callable[[int, int, bool], tuple[Sequence[Item], Sequence[Item]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class SectionEnd:
    """The end of a section of a DOCX, which its reader replaces by a page break and a frame."""


Item = Line | TypedColumns | Blank | PageBreak | Warned | Framed


def tokens(text: str, *, struck: bool = False) -> tuple[TypedWord, ...]:
    """Return the words of a text without line ends."""
    return tuple(TypedWord(text=match[0], struck=struck) for match in WORD.finditer(text))


def prose(words: Iterable[TypedWord], *, indent: int = 0, width: int) -> Line:
    """Return a line of one cell."""
    return Line(cells=(tuple(words),), places=((indent, width - indent),))


def table_lines(rows: Sequence[Sequence[Sequence[TypedWord]]], width: int) -> list[Line]:
    """Return one line for each row; the columns are as wide as their cells, as far as they fit."""
    count = max((len(row) for row in rows), default=0)
    if count == 0:
        return []
    needed = [1] * count
    for row in rows:
        for i, cell in enumerate(row):
            needed[i] = max(needed[i], min(width, length(cell)))
    spare = max(count, width - 2 * (count - 1))
    fair = max(1, spare // count)
    while sum(needed) > spare and max(needed) > fair:
        widest = needed.index(max(needed))
        needed[widest] = max(fair, needed[widest] - (sum(needed) - spare))
    starts, at = [], 0
    for size in needed:
        starts.append(at)
        at += size + 2
    places = tuple(zip(starts, needed, strict=True))
    return [
        Line(cells=tuple(tuple(cell) for cell in row), places=places[: len(row)]) for row in rows
    ]


def length(words: Sequence[TypedWord]) -> int:
    """Return the characters that words take with their spaces."""
    return sum(len(word.text) + (not word.is_glued) for word in words) - 1
