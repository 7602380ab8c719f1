"""Checks of numbers that are a thousand times larger with the other decimal sign (`1,234`).

This module is pure. A source has one decimal sign. If its numbers prove both signs, a number that
both signs can read needs a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

from pipeline.clinical.numbers import signs_of_page
from pipeline.core.types import PageText
from pipeline.providers.local.text.date_sources import sources_of
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1.review_flags import Flag, flagged

_AMBIGUOUS = re.compile(r"(?<![\d.,])\d{1,3}[.,]\d{3}(?![\d.,])")
_FIELDS = ("value", "strength", "dose", "previous_dose", "reference_range")


class SourceNumbers:
    """The decimal signs of a record's sources; pages are read only if a number is ambiguous."""

    def __init__(self, pages: Mapping[int, PageText]) -> None:
        self._pages = pages

    def doubts(self, entity: FoundEntity, page: int) -> Iterator[str]:
        """Yield a reason for each number of an entity on `page` whose decimal sign is open."""
        for field in _FIELDS:
            text = getattr(entity, field)
            if text and _AMBIGUOUS.search(text) and self._contradicts(page):
                yield flagged(Flag.DECIMAL_SIGN_CONTRADICTS, field)

    def _contradicts(self, page: int) -> bool:
        return len(self._signs.get(self._sources.get(page, ""), set())) > 1

    @cached_property
    def _sources(self) -> Mapping[int, str]:
        return sources_of((number, page.text) for number, page in sorted(self._pages.items()))

    @cached_property
    def _signs(self) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = {}
        for number, page in self._pages.items():
            found.setdefault(self._sources[number], set()).update(signs_of_page(page.text))
        return found
