"""The rows that Pass 1 would write for a text, in this process and without a database."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.published import Row, publish

__all__ = ["HEAD", "Row", "published", "read_page"]

HEAD = "OFFICE VISIT\nPatient: Wrenfield, Odalys M.\nDate of Service: 01/05/2025\n\n"


def published(text: str) -> Sequence[Row]:
    """Return the rows for a record of one page: an office visit with this text."""
    return read_page(HEAD + text)


def read_page(text: str) -> Sequence[Row]:
    """Return the rows for a whole page text."""
    return publish({1: text}).rows
