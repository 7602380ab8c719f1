"""A part of a long list: its rows, their numbers, and the addresses of the parts before and after.

A list has fixed parts. An address names a row, and the page shows the part that contains this row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
S = TypeVar("S")


@dataclass(frozen=True, kw_only=True)
class Portion(Generic[T]):
    """The shown part of a list."""

    rows: Sequence[T] = field(repr=False)
    first: int
    """The number of the first shown row; 1-based."""
    total: int
    """The rows of the whole list."""
    before: str
    """The address of a row of the part before; "" for the first part."""
    after: str
    """The address of a row of the part after; "" for the last part."""

    def of(self, rows: Sequence[S]) -> Portion[S]:
        """Return the same part with other rows, one for each shown row."""
        return Portion(
            rows=rows, first=self.first, total=self.total, before=self.before, after=self.after
        )

    @property
    def last(self) -> int:
        """The number of the last shown row; 0 for an empty list."""
        return self.first + len(self.rows) - 1

    @property
    def words(self) -> str:
        """The shown numbers, `21–40 of 250`; the number of rows of a list that is shown whole."""
        return f"{self.total:,}" if self.is_whole else f"{self.span} of {self.total:,}"

    @property
    def span(self) -> str:
        """The first and the last shown number."""
        return f"{self.first:,}–{self.last:,}"

    @property
    def before_words(self) -> str:
        """How many rows are before the shown ones."""
        return f"{self.first - 1:,} before these"

    @property
    def after_words(self) -> str:
        """How many rows are after the shown ones."""
        return f"{self.total - self.last:,} after these"

    @property
    def is_whole(self) -> bool:
        """Whether the list has no other part."""
        return len(self.rows) == self.total


def portion(
    rows: Sequence[T],
    addresses: Sequence[object],
    chosen: int,
    size: int,
    *,
    from_end: bool = False,
) -> Portion[T]:
    """Return the part of at most `size` rows that contains the row `chosen` (0-based).

    `addresses` holds the address of each row, a text or an id. With `from_end`, the last part is
    full and the first part takes the rest.
    """
    lead = len(rows) % size if from_end else 0
    begin = (chosen - lead) // size * size + lead
    start, end = max(0, begin), min(begin + size, len(rows))
    return Portion(
        rows=rows[start:end],
        first=start + 1,
        total=len(rows),
        before=str(addresses[start - 1]) if start else "",
        after=str(addresses[end]) if end < len(rows) else "",
    )
