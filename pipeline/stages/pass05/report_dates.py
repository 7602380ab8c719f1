"""Dates of encounters whose order of day and month the pages do not prove.

A source prints all dates in one order. If its dates prove both orders, or if a reply reads a date
against the proved order, an ambiguous date of service is left out: no date is better than a wrong
date. This module is pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.core.types import PageText
from pipeline.providers.local.text.date_sources import PrintedDates, source_orders
from pipeline.providers.schemas import FoundEncounter
from pipeline.stages.pass05.types import ChunkReport


def without_open_dates(
    reports: Sequence[ChunkReport], pages: Mapping[int, PageText]
) -> tuple[list[ChunkReport], list[int]]:
    """Return the reports without dates of unproved order, and the ascending pages of the dates."""
    orders = source_orders((number, page.text) for number, page in sorted(pages.items()))
    to_check = {
        number
        for number, source in orders.items()
        if source.contradicts or source.order is not None
    }
    printed: dict[int, PrintedDates] = {}
    found: set[int] = set()

    def doubtful(day: str | None, encounter: FoundEncounter) -> bool:
        if not day:
            return False
        own = sorted({span.page for span in encounter.spans} & to_check & pages.keys())
        for number in own:
            if number not in printed:
                printed[number] = PrintedDates(pages[number].text, orders[number])
        doubting = [number for number in own if printed[number].doubts(day[:10])]
        if not doubting or any(printed[number].proves(day[:10]) for number in own):
            return False
        found.update(doubting)
        return True

    def proved(encounter: FoundEncounter) -> FoundEncounter:
        open_dates = {
            name: None
            for name in ("date_start", "date_end")
            if doubtful(getattr(encounter, name), encounter)
        }
        return encounter.model_copy(update=open_dates) if open_dates else encounter

    changed = [
        replace(each, encounters=tuple(proved(encounter) for encounter in each.encounters))
        for each in reports
    ]
    return changed, sorted(found)
