"""The zones of an encounter: which entities one call of Pass 2 is about, and which text it shows.

A zone is a run of entities in one section of the text. Without sections, a zone holds the entities
of one batch. This module is pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from pipeline.core.types import PageText, Span
from pipeline.stages.entity_facts import KnownEntity

MAX_ENTITIES = 40
"""Entities of one call. The reply about an entity has up to 150 tokens, so 40 entities stay far
below the output limit."""
MAX_CHARACTERS = 40_000
"""Characters of text of one call: about 10,000 tokens."""
LINES_BEFORE, LINES_AFTER = 4, 1
"""Lines around the entities that belong to the text: a heading or the head of a table."""
OF_BATCH = "batch"
"""Type of a zone whose record has no sections."""


@dataclass(frozen=True, kw_only=True)
class PlannedZone:
    """One zone before it is stored."""

    zone_type: str
    entity_ids: tuple[UUID, ...]
    first_page: int
    last_page: int
    spans: tuple[Span, ...]


def plan_zones(
    entities: Sequence[KnownEntity],
    spans: Sequence[Span],
    batches: Sequence[Sequence[Span]],
    pages: Mapping[int, PageText],
) -> list[PlannedZone]:
    """Return the zones of an encounter in the order of the text.

    `entities` are all entities of the encounter in that order, `spans` is the text of the
    encounter, and `batches` is the text of each batch of Pass 1.
    """
    has_sections = any(each.facts.zone_type for each in entities)

    def section(each: KnownEntity) -> str:
        if has_sections:
            return each.facts.zone_type or "other"
        return f"{OF_BATCH} {_batch_of(each, batches)}"

    return [
        _zone(name.partition(" ")[0], part, spans, pages)
        for name, run in groupby(entities, key=section)
        for part in _parts(list(run), pages)
    ]


def _batch_of(each: KnownEntity, batches: Sequence[Sequence[Span]]) -> int:
    at = each.facts.start or 0
    for index, spans in enumerate(batches):
        if any(s.page == each.facts.page and s.start <= at < max(s.end, 1) for s in spans):
            return index
    return next(
        (i for i, spans in enumerate(batches) if any(s.page == each.facts.page for s in spans)), 0
    )


def _parts(
    run: Sequence[KnownEntity], pages: Mapping[int, PageText]
) -> Iterator[list[KnownEntity]]:
    """Cut a run of entities where it has too many entities or too much text."""
    part: list[KnownEntity] = []
    for each in run:
        if part and (len(part) >= MAX_ENTITIES or _between(part[0], each, pages) > MAX_CHARACTERS):
            yield part
            part = []
        part.append(each)
    if part:
        yield part


def _between(first: KnownEntity, last: KnownEntity, pages: Mapping[int, PageText]) -> int:
    numbers = range(min(first.facts.page, last.facts.page), last.facts.page)
    whole = sum(len(pages[n].text) for n in numbers if n in pages)
    return whole - (first.facts.start or 0) + (last.facts.end or 0)


def _zone(
    zone_type: str,
    entities: Sequence[KnownEntity],
    spans: Sequence[Span],
    pages: Mapping[int, PageText],
) -> PlannedZone:
    windows: dict[int, tuple[int, int]] = {}
    for each in entities:
        for page, start, end in _places(each, pages):
            low, high = windows.get(page, (start, end))
            windows[page] = (min(low, start), max(high, end))
    shown = tuple(
        part
        for page in sorted(windows)
        for part in _clipped(page, *_widened(pages[page].text, *windows[page]), spans)
    )
    numbers = sorted(windows)
    return PlannedZone(
        zone_type=zone_type,
        entity_ids=tuple(each.id for each in entities),
        first_page=numbers[0],
        last_page=numbers[-1],
        spans=shown,
    )


def _places(each: KnownEntity, pages: Mapping[int, PageText]) -> list[tuple[int, int, int]]:
    """Return page, start and end of an entity's quote; an entity without a place has its page."""
    facts = each.facts
    if facts.start is None or facts.end is None:
        return [(facts.page, 0, 0)]
    if facts.page_end is None:
        return [(facts.page, facts.start, facts.end)]
    first = (facts.page, facts.start, len(pages[facts.page].text))
    return [first, (facts.page_end, 0, facts.end)]


def _widened(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the window with the whole lines of its ends, and with some lines around it."""
    for _ in range(LINES_BEFORE + 1):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1 if start else 0
    for _ in range(LINES_AFTER + 1):
        after = text.find("\n", end + 1)
        end = len(text) if after < 0 else after
    return start, end


def _clipped(page: int, start: int, end: int, spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of a window that belong to the encounter."""
    for span in spans:
        low, high = max(start, span.start), min(end, span.end)
        if span.page == page and low < high:
            yield Span(page, low, high)
