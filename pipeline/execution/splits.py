"""Parts of a batch or chunk whose pages were halved: their names, pages and tokens.

Pure: imports nothing of the project. The whole is the part "", its halves are "0" and "1", theirs
"00", "01" and so on; which pages a part holds follows from its name alone, on every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID, uuid5

Key = tuple[UUID, str]
"""A row's id and the name of the part: what the fan-out knows a piece by."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """What one call is about: a batch or chunk, or a part of its pages."""

    row: Any
    pages: tuple[int, ...]
    """The numbers of its pages, in order."""
    name: str = ""
    """Which part it is."""

    @property
    def key(self) -> Key:
        """What it is known by."""
        return (self.row.id, self.name)

    @property
    def token(self) -> str:
        """What its reply must echo: no two parts of a row share it."""
        return token_of(self.row.id, self.name)

    @cached_property
    def page_range(self) -> tuple[int, int]:
        """Its first and last page; of the whole, those of its row."""
        if not self.name:
            return (self.row.page_range_start, self.row.page_range_end)
        return (self.pages[0], self.pages[-1])

    @property
    def halves(self) -> tuple[Piece, ...]:
        """Both halves of its pages; none of a single page."""
        if len(self.pages) < 2:
            return ()
        return tuple(
            Piece(row=self.row, name=self.name + digit, pages=tuple(half(self.pages, digit)))
            for digit in "01"
        )


def half(pages: Sequence[int], digits: str) -> Sequence[int]:
    """Return the pages of a part; the first half has the odd one."""
    for digit in digits:
        middle = (len(pages) + 1) // 2
        pages = pages[:middle] if digit == "0" else pages[middle:]
    return pages


def token_of(row_id: UUID, name: str) -> str:
    """Return the item token of a part: 32 hex digits, the row's own for the whole."""
    return row_id.hex if not name else uuid5(row_id, name).hex
