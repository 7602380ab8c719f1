"""Splits: the halves of a work item's pages that are asked about apart, with names and tokens.

The whole work item is the split "", its halves are "0" and "1", theirs "00", "01" and so on. The
name alone tells which pages a split holds, on every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeAlias, TypeVar
from uuid import UUID, uuid5

from pipeline.models.work_item import WorkItem

SplitKey: TypeAlias = tuple[UUID, str]
"""The id of the work item and the name of the split: the key of one item of the fan-out."""

W_co = TypeVar("W_co", bound=WorkItem, covariant=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class Split(Generic[W_co]):
    """What one call is about: a whole work item, or a part of its pages."""

    row: W_co
    pages: tuple[int, ...]
    """The numbers of the pages, in order."""
    name: str = ""

    @property
    def key(self) -> SplitKey:
        """The key of this split in the fan-out."""
        return (self.row.id, self.name)

    @property
    def token(self) -> str:
        """The token that the reply must echo; no two splits share one."""
        return token_of(self.row.id, self.name)

    @cached_property
    def page_range(self) -> tuple[int, int]:
        """The first and last page; of the whole, those of the work item."""
        if not self.name:
            return (self.row.page_range_start, self.row.page_range_end)
        return (self.pages[0], self.pages[-1])

    @property
    def halves(self) -> tuple[Split[W_co], ...]:
        """Both halves of the pages; none of a single page."""
        if len(self.pages) < 2:
            return ()
        return tuple(
            Split(row=self.row, name=self.name + digit, pages=tuple(pages_of(self.pages, digit)))
            for digit in "01"
        )


def pages_of(pages: Sequence[int], name: str) -> Sequence[int]:
    """Return the pages that the split of this name holds; a first half has the odd page."""
    for digit in name:
        middle = (len(pages) + 1) // 2
        pages = pages[:middle] if digit == "0" else pages[middle:]
    return pages


def token_of(row_id: UUID, name: str) -> str:
    """Return the item token of a split: 32 hex digits, the row's own for the whole."""
    return row_id.hex if not name else uuid5(row_id, name).hex
