"""Batches of an encounter's pages, planned once before the first call.

May import `types`, `boundaries` and the prompts' estimate; pure and deterministic. The rules are
`spec.md` point 4: every span is covered once, in order, and no batch passes a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.types import PageSlice, PageText, Span


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How large a batch may be; pages count from its first to its last, both included."""

    min_pages: int = 3
    max_pages: int = 10
    hard_ceiling: int = 50
    max_tokens: int = 24_000
    """Estimated input tokens of a batch's own text."""

    def __post_init__(self) -> None:
        if not 1 <= self.min_pages <= self.max_pages <= self.hard_ceiling or self.max_tokens < 1:
            raise ValueError("bounds must satisfy 1 <= min <= max <= ceiling, and tokens >= 1")


@dataclass(frozen=True, kw_only=True)
class PlannedBatch:
    """One contiguous run of pages of one encounter, and that encounter's text on them."""

    index: int
    """0-based within the encounter."""
    spans: tuple[Span, ...]
    first_page: int
    last_page: int


def plan(
    spans: Sequence[Span], pages: Mapping[int, PageText], bounds: Bounds | None = None
) -> tuple[PlannedBatch, ...]:
    """Divide one encounter's spans into batches.

    Blank pages inside a run do not break it. Raises ValueError where spans overlap.
    """
    raise NotImplementedError


def context_for(
    batch: PlannedBatch,
    spans: Sequence[Span],
    pages: Mapping[int, PageText],
    *,
    limit: int = 600,
) -> tuple[tuple[PageSlice, ...], tuple[PageSlice, ...]]:
    """Return the encounter's text before and after a batch, each at most `limit` characters.

    `spans` are all spans of the encounter. Both are cut at line starts and marked as context.
    """
    raise NotImplementedError
