"""The parent's side of the reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .types import Limits, PageRead, Probe


def probe(path: str | Path, limits: Limits | None = None) -> Probe:
    """Return the media type and page count of the file; raise `InputRefused`."""
    raise NotImplementedError


def read_pages(
    path: str | Path, first: int, last: int, limits: Limits | None = None
) -> Iterator[PageRead]:
    """Yield pages `first` to `last` (1-based, inclusive) in order; raise `InputRefused`."""
    raise NotImplementedError


def render_page(
    path: str | Path, number: int, dpi: int = 100, limits: Limits | None = None
) -> bytes:
    """Return page `number` (1-based) as PNG at `dpi`; raise `InputRefused`."""
    raise NotImplementedError
