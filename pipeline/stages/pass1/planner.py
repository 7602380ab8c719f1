"""The batches of an encounter's pages, planned once before the first call.

This module is pure and deterministic. Every span is covered once and in order, and no batch
exceeds a bound (requirement 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from pipeline.core.types import PageSlice, PageText, Span
from pipeline.providers.prompts import estimate_tokens
from pipeline.stages.pass1.boundaries import Safety, judge, running_lines, section_open_after


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The size limits of a batch; pages count from its first to its last, both included."""

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
    """A contiguous run of pages of one encounter, and that encounter's text on these pages."""

    index: int
    """0-based within the encounter."""
    spans: tuple[Span, ...]
    first_page: int
    last_page: int


@dataclass(frozen=True, kw_only=True)
class _Unit:
    """The smallest unit of a batch: an encounter's text on a page, or a piece of that text."""

    spans: tuple[Span, ...]
    tokens: int
    after: Safety = Safety.SAFE
    """How safely a batch can end after this unit."""

    @property
    def page(self) -> int:
        return self.spans[0].page


def plan(
    spans: Sequence[Span], pages: Mapping[int, PageText], bounds: Bounds | None = None
) -> tuple[PlannedBatch, ...]:
    """Divide one encounter's spans into batches.

    1. Spans are cut into runs of contiguous pages; blank pages inside a run do not break the run.
    2. A batch ends at the first safe boundary at or after the minimum.
    3. At the maximum, or when the tokens are used up, a batch ends at the best boundary so far.
       Without a boundary the batch continues, but never past the ceiling.
    4. A tail shorter than the minimum joins its neighbour if both together fit the maximum.

    Raises ValueError if spans overlap, KeyError if a page is missing.
    """
    bounds = bounds or Bounds()
    batches = [
        group
        for run in _runs(_in_order(spans), pages)
        for group in _divide(_units(run, pages, bounds), bounds)
    ]
    return tuple(
        PlannedBatch(
            index=index,
            spans=_joined(span for unit in group for span in unit.spans),
            first_page=group[0].page,
            last_page=group[-1].page,
        )
        for index, group in enumerate(batches)
    )


def context_for(
    batch: PlannedBatch,
    spans: Sequence[Span],
    pages: Mapping[int, PageText],
    *,
    limit: int = 600,
) -> tuple[tuple[PageSlice, ...], tuple[PageSlice, ...]]:
    """Return the encounter's text before and after a batch, each at most `limit` characters.

    `spans` are all spans of the encounter. Both texts are cut at line starts and marked as
    context; a line longer than `limit` is cut at a space.
    """
    first, last = batch.spans[0], batch.spans[-1]
    before, after = [], []
    for span in sorted(spans):
        head_end = min(span.end, first.start) if span.page == first.page else span.end
        if span.page <= first.page and head_end > span.start:
            before.append(Span(span.page, span.start, head_end))
        tail_start = max(span.start, last.end) if span.page == last.page else span.start
        if span.page >= last.page and tail_start < span.end:
            after.append(Span(span.page, tail_start, span.end))
    return (
        tuple(_slice(_last_lines(s, pages, limit), pages) for s in before[-1:]),
        tuple(_slice(_first_lines(s, pages, limit), pages) for s in after[:1]),
    )


def _in_order(spans: Sequence[Span]) -> list[Span]:
    ordered = sorted(span for span in spans if len(span))
    for one, other in pairwise(ordered):
        if one.overlap(other):
            raise ValueError(f"spans of page {one.page} overlap")
    return ordered


def _runs(spans: list[Span], pages: Mapping[int, PageText]) -> Iterator[list[Span]]:
    run: list[Span] = []
    for span in spans:
        if run and not _contiguous(run[-1].page, span.page, pages):
            yield run
            run = []
        run.append(span)
    if run:
        yield run


def _contiguous(page: int, later: int, pages: Mapping[int, PageText]) -> bool:
    between = range(page + 1, later)
    return len(between) < 50 and all(n in pages and pages[n].is_blank for n in between)


def _units(run: list[Span], pages: Mapping[int, PageText], bounds: Bounds) -> list[_Unit]:
    grouped = [tuple(group) for _, group in groupby(run, key=lambda span: span.page)]
    texts = ["\n".join(_text(span, pages) for span in group) for group in grouped]
    # Boundaries are between pages: nothing is asked about the last page, or about one page.
    running = running_lines(texts) if len(texts) > 1 else frozenset()
    units: list[_Unit] = []
    in_section = False
    for index, group in enumerate(grouped):
        after = Safety.SAFE
        if index + 1 < len(grouped):
            in_section = section_open_after(texts[index], running, was_open=in_section)
            after = judge(texts[index], texts[index + 1], running, in_section=in_section)
        tokens = sum(_tokens(span, pages) for span in group)
        if tokens <= bounds.max_tokens:
            units.append(_Unit(spans=group, tokens=tokens, after=after))
            continue
        pieces = [piece for span in group for piece in _pieces(span, pages, bounds.max_tokens)]
        for number, (piece, safety) in enumerate(pieces, start=1):
            last = number == len(pieces)
            units.append(
                _Unit(
                    spans=(piece,),
                    tokens=_tokens(piece, pages),
                    after=after if last else safety,
                )
            )
    return units


def _pieces(
    span: Span, pages: Mapping[int, PageText], max_tokens: int
) -> Iterator[tuple[Span, Safety]]:
    """Cut one page's text into pieces within the limit: at paragraphs, lines, words, anywhere."""
    text = pages[span.page].text
    room = max_tokens * 4 - 1
    start = span.start
    while span.end - start > room:
        least, most = start + room // 2, start + room
        end, safety = most, Safety.BROKEN
        for mark, kind in (("\n\n", Safety.SECTION), ("\n", Safety.BROKEN), (" ", Safety.BROKEN)):
            at = text.rfind(mark, least, most)
            if at >= 0 and at + len(mark) <= most:
                end, safety = at + len(mark), kind
                break
        yield Span(span.page, start, end), safety
        start = end
    yield Span(span.page, start, span.end), Safety.SECTION


def _divide(units: list[_Unit], bounds: Bounds) -> list[list[_Unit]]:
    batches: list[list[_Unit]] = []
    start = 0
    while start < len(units):
        end = _end_of_batch(units, start, bounds)
        batches.append(units[start:end])
        start = end
    if len(batches) > 1 and _width(batches[-1]) < bounds.min_pages:
        joined = batches[-2] + batches[-1]
        if _width(joined) <= bounds.max_pages and _fits(joined, bounds):
            batches[-2:] = [joined]
    return batches


def _end_of_batch(units: list[_Unit], start: int, bounds: Bounds) -> int:
    """Return the index after the last unit of the batch that begins at `start`."""
    end = start
    for stop in range(start + 1, len(units) + 1):
        group = units[start:stop]
        if _width(group) > bounds.hard_ceiling or not (_fits(group, bounds) or stop == start + 1):
            return _best(units, start, end, bounds, forced=True)
        if _width(group) > bounds.max_pages and end > start:
            best = _best(units, start, end, bounds, forced=False)
            if best:
                return best
        if _width(group) >= bounds.min_pages and group[-1].after is Safety.SAFE:
            return stop
        end = stop
    return len(units)


def _best(units: list[_Unit], start: int, end: int, bounds: Bounds, *, forced: bool) -> int:
    """Return the best end up to `end`; 0 if no end exists and none is forced."""
    candidates = [
        (stop, _width(units[start:stop]))
        for stop in range(start + 1, end + 1)
        if units[stop - 1].after > Safety.BROKEN
    ]
    large = [stop for stop, width in candidates if width >= bounds.min_pages]
    if not large:
        return max((stop for stop, _ in candidates), default=end) if forced else 0

    def worth(stop: int) -> tuple[int, bool, int]:
        rest = units[stop:]
        return (units[stop - 1].after, not rest or _width(rest) >= bounds.min_pages, stop)

    return max(large, key=worth)


def _width(units: Sequence[_Unit]) -> int:
    return units[-1].page - units[0].page + 1


def _fits(units: Sequence[_Unit], bounds: Bounds) -> bool:
    return sum(unit.tokens for unit in units) <= bounds.max_tokens


def _joined(spans: Iterator[Span]) -> tuple[Span, ...]:
    """Join touching pieces of one page."""
    out: list[Span] = []
    for span in spans:
        if out and out[-1].page == span.page and out[-1].end == span.start:
            out[-1] = Span(span.page, out[-1].start, span.end)
        else:
            out.append(span)
    return tuple(out)


def _text(span: Span, pages: Mapping[int, PageText]) -> str:
    return pages[span.page].text[span.start : span.end]


def _tokens(span: Span, pages: Mapping[int, PageText]) -> int:
    return estimate_tokens(_text(span, pages))


def _slice(span: Span, pages: Mapping[int, PageText]) -> PageSlice:
    return PageSlice(page=span.page, start=span.start, text=_text(span, pages), context=True)


def _last_lines(span: Span, pages: Mapping[int, PageText], limit: int) -> Span:
    if len(span) <= limit:
        return span
    text = pages[span.page].text
    least = span.end - limit
    for mark in ("\n", " "):
        at = text.find(mark, least - 1, span.end - 1)
        if at >= 0:
            return Span(span.page, at + 1, span.end)
    return Span(span.page, least, span.end)


def _first_lines(span: Span, pages: Mapping[int, PageText], limit: int) -> Span:
    if len(span) <= limit:
        return span
    text = pages[span.page].text
    most = span.start + limit
    for mark in ("\n", " "):
        at = text.rfind(mark, span.start, most)
        if at > span.start:
            return Span(span.page, span.start, at + 1)
    return Span(span.page, span.start, most)
