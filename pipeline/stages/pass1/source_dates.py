"""Checks of reported dates against the order of day and month of their source.

This module is pure. A page of one source prints all dates in one order; a reply that reads one date
in the other order is wrong about that date.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from pipeline.core.types import PageText
from pipeline.providers.local.text.date_sources import PrintedDates, SourceOrder, source_orders
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1.review_flags import Flag, flagged


class SourceDates:
    """The printed dates of a record's pages; pages are read only if an entity has a date."""

    def __init__(self, pages: Mapping[int, PageText]) -> None:
        self._pages = pages
        self._printed: dict[int, PrintedDates] = {}

    def doubts(self, entity: FoundEntity, page: int) -> Iterator[str]:
        """Yield the reason to doubt the date of an entity on `page`."""
        if not entity.date or page not in self._pages:
            return
        if page not in self._printed:
            source = self._orders[page]
            self._printed[page] = PrintedDates(self._pages[page].text, source)
        printed = self._printed[page]
        if printed.doubts(entity.date):
            is_open = printed.source.order is None and not printed.source.contradicts
            yield flagged(Flag.DATE_ORDER_UNKNOWN if is_open else Flag.DATE_ORDER_CONTRADICTS)

    @cached_property
    def _orders(self) -> Mapping[int, SourceOrder]:
        return source_orders((number, page.text) for number, page in sorted(self._pages.items()))
