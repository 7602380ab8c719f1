"""The result of each page: accepted entities, entities to review, a warning, or no extraction.

Two statements, which read page numbers and counts, never text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db.models import Count, Q

from pipeline.core.labels import counted, pages
from pipeline.models import Entity, Page, PageSource

COLUMNS = 50
SQUARE = 12
"""Side of a square, with the gap after it."""
KINDS = {
    "accepted": "with accepted entities",
    "review": "with entities to review",
    "warned": "with a warning",
    "none": "without an extraction",
    "blank": "blank",
}

_FLAGGED_LATER = Q(enriched__isnull=False) & ~Q(enriched__flags=[])
"""Pass 2 has a reason for a review, as the page view of the record shows."""


@dataclass(frozen=True, kw_only=True)
class PageRun:
    """Neighbouring pages with the same result, as one path of squares."""

    kind: str
    path: str
    title: str
    first: int
    """The first page of the run."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """The squares of a record, with their counts."""

    runs: Sequence[PageRun]
    kinds: Sequence[tuple[str, str, int, str]]
    """Kind, kind in words, number of pages, and the pages; only kinds with pages."""
    width: int
    height: int


def coverage(shell_file_id: UUID, warnings: Sequence[Mapping[str, Any]]) -> Coverage | None:
    """Return the coverage of a record; None if no page was read."""
    found = dict(
        Page.objects.filter(shell_file_id=shell_file_id)
        .order_by("page_number")
        .values_list("page_number", "source")
    )
    if not found:
        return None
    counts = {
        number: (accepted, flagged)
        for number, accepted, flagged in Entity.objects.filter(shell_file_id=shell_file_id)
        .order_by()
        .values_list("page_number")
        .annotate(
            accepted=Count("id", filter=Q(accepted=True)),
            flagged=Count("id", filter=~Q(review_flags=[]) | _FLAGGED_LATER),
        )
    }
    warned = {number for warning in warnings for number in warning.get("pages") or ()}
    kinds = {
        number: _kind(source, *counts.get(number, (0, 0)), number in warned)
        for number, source in found.items()
    }
    lists = {kind: [n for n, of in kinds.items() if of == kind] for kind in KINDS}
    return Coverage(
        runs=[
            _run(kind, [number for number, _ in alike])
            for kind, alike in groupby(kinds.items(), key=lambda each: each[1])
        ],
        kinds=[
            (kind, KINDS[kind], len(numbers), pages(numbers))
            for kind, numbers in lists.items()
            if numbers
        ],
        width=min(COLUMNS, max(kinds)) * SQUARE,
        height=-(-max(kinds) // COLUMNS) * SQUARE,
    )


def _kind(source: str, accepted: int, flagged: int, is_warned: bool) -> str:
    if is_warned or source == PageSource.DAMAGED:
        return "warned"
    if flagged:
        return "review"
    if accepted:
        return "accepted"
    return "blank" if source == PageSource.BLANK else "none"


def _run(kind: str, numbers: Sequence[int]) -> PageRun:
    side = SQUARE - 2
    squares = (
        f"M{(n - 1) % COLUMNS * SQUARE} {(n - 1) // COLUMNS * SQUARE}h{side}v{side}h-{side}z"
        for n in numbers
    )
    return PageRun(
        kind=kind,
        path="".join(squares),
        first=numbers[0],
        title=f"{pages(numbers)}: {counted(len(numbers), 'page')} {KINDS[kind]}",
    )
