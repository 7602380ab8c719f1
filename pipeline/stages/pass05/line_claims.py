"""Claims on lines of pages, resolved into spans of characters with one owner each.

This module is pure. Owners are integers that the caller assigns. The smaller owner wins a tie, so
the same claims always give the same result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline.core.types import PageText, Span
from pipeline.providers.schemas import LineSpan


@dataclass(frozen=True)
class Claim:
    """An owner's claim on a run of text."""

    span: Span
    owner: int
    own: bool = True
    """False for a page that was shown as context only: such a claim gets only unclaimed text."""


def spans_from_lines(lines: Sequence[LineSpan], pages: Mapping[int, PageText]) -> tuple[Span, ...]:
    """Turn 1-based inclusive lines into character spans, in page order, and join touching spans.

    A span ends after the line break of its last line. Lines past the end of a page are cut off.
    Pages that are blank or not given are left out.
    """
    found = []
    for claim in lines:
        page = pages.get(claim.page)
        if page is None or page.is_blank:
            continue
        starts = line_starts(page.text)
        if claim.first_line > claim.last_line or claim.first_line > len(starts):
            continue
        end = starts[claim.last_line] if claim.last_line < len(starts) else len(page.text)
        if end > starts[claim.first_line - 1]:
            found.append(Span(claim.page, starts[claim.first_line - 1], end))
    return united(found)


def line_starts(text: str) -> list[int]:
    """Return the offset of every line; the prompt numbers the lines in the same way."""
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    return starts


def united(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Join spans that overlap or touch."""
    out: list[Span] = []
    for span in sorted(spans):
        if out and out[-1].page == span.page and span.start <= out[-1].end:
            out[-1] = Span(span.page, out[-1].start, max(out[-1].end, span.end))
        else:
            out.append(span)
    return tuple(out)


def resolve(claims: Iterable[Claim]) -> tuple[dict[int, tuple[Span, ...]], set[tuple[int, int]]]:
    """Give every character to one owner; return each owner's spans and the pairs that collided.

    A claim on the owner's own page beats a claim on a context page. A narrow claim beats a wide
    claim. A small owner number beats a large number.
    """
    by_page: defaultdict[int, list[Claim]] = defaultdict(list)
    for claim in claims:
        by_page[claim.span.page].append(claim)
    won: defaultdict[int, list[Span]] = defaultdict(list)
    collisions: set[tuple[int, int]] = set()
    for page, wishes in sorted(by_page.items()):
        edges = sorted({edge for c in wishes for edge in (c.span.start, c.span.end)})
        for start, end in pairwise(edges):
            here = [c for c in wishes if c.span.start <= start and end <= c.span.end]
            if not here:
                continue
            best = min(here, key=lambda c: (not c.own, len(c.span), c.owner))
            won[best.owner].append(Span(page, start, end))
            collisions.update(
                (best.owner, c.owner) for c in here if c.own and c.owner != best.owner
            )
    return {owner: united(spans) for owner, spans in won.items()}, collisions


def without_gaps(
    owned: Mapping[str, Sequence[Span]], pages: Mapping[int, PageText]
) -> list[tuple[Span, str | None]]:
    """Return every character of every non-blank page exactly once, with its owner or None.

    White space between spans goes to the owner before it. At the top of a page it goes to the
    owner after it.
    """
    by_page: defaultdict[int, list[tuple[Span, str]]] = defaultdict(list)
    for owner, spans in owned.items():
        for span in spans:
            by_page[span.page].append((span, owner))
    tiles: list[tuple[Span, str | None]] = []
    for number, page in sorted(pages.items()):
        if not page.is_blank and page.text:
            tiles += _tile(page, sorted(by_page[number]))
    return tiles


def _tile(page: PageText, spans: Sequence[tuple[Span, str]]) -> list[tuple[Span, str | None]]:
    tiles: list[tuple[int, int, str | None]] = []
    at = 0
    for span, owner in [*spans, (Span(page.number, len(page.text), len(page.text)), None)]:
        if span.start > at:
            white = not page.text[at : span.start].strip()
            tiles.append((at, span.start, (tiles[-1][2] if tiles else owner) if white else None))
        if len(span):
            tiles.append((span.start, span.end, owner))
        at = span.end
    joined: list[tuple[int, int, str | None]] = []
    for start, end, holder in tiles:
        if joined and joined[-1][2] == holder:
            joined[-1] = (joined[-1][0], end, holder)
        else:
            joined.append((start, end, holder))
    return [(Span(page.number, start, end), holder) for start, end, holder in joined]
