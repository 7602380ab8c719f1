"""What a format needs of a snapshot. `snapshot.Snapshot` reads it; the formats know only this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from pipeline.exports.rows import EntityRow, ListItemRow, PageRow, RecordRow, SentenceRow


class RecordSource(Protocol):
    """The rows of one record. Each method starts from the first row again."""

    record: RecordRow

    def entities(self) -> Iterator[EntityRow]:
        """Yield all entities, by encounter and in the order of the text."""

    def entities_by_page(self) -> Iterator[EntityRow]:
        """Yield all entities, by page and in the order of their quotes."""

    def pages(self) -> Iterator[PageRow]:
        """Yield the pages in order."""

    def sentences(self) -> Iterator[SentenceRow]:
        """Yield the supported sentences: those of the record first, then by encounter."""

    def list_items(self) -> Iterator[ListItemRow]:
        """Yield the entries of the record's lists, by kind."""
