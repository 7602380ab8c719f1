"""The order of day and month of each source of a record; a source is one letterhead.

All dates of a source decide together. A source whose dates contradict each other has no order, and
its ambiguous dates need a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.clinical.date_forms import (
    DATE_FORM,
    DateOrder,
    date_at,
    is_ambiguous,
    orders_in,
)
from pipeline.providers.local.text.titles import facility_of

_SOURCE_LINES = 6
"""The first lines of a page that can name its letterhead."""
_DATE = re.compile(rf"(?<![\d/.-])(?:{DATE_FORM})", re.I)


@dataclass(frozen=True)
class SourceOrder:
    """The order of day and month that the dates of one source prove."""

    order: DateOrder | None
    contradicts: bool = False
    """Some dates prove one order, and other dates the other order."""


def sources_of(pages: Iterable[tuple[int, str]]) -> dict[int, str]:
    """Return the source of each page; pages come in the order of the record.

    A page without a letterhead continues the source of the page before.
    """
    sources: dict[int, str] = {}
    source = ""
    for number, text in pages:
        top = [line for line in text.split("\n") if line.strip()][:_SOURCE_LINES]
        named = next((name for line in top if (name := facility_of(line))), None)
        source = " ".join(named.casefold().split()) if named else source
        # Parts of one page belong to the letterhead of its first part.
        sources.setdefault(number, source)
    return sources


def source_orders(pages: Iterable[tuple[int, str]]) -> dict[int, SourceOrder]:
    """Return the order of each page, by its letterhead; pages come in the order of the record.

    If the dates of a source prove nothing, the dates of the whole record decide.
    """
    parts = list(pages)
    sources = sources_of(parts)
    found: dict[str, set[DateOrder]] = {}
    for number, text in parts:
        found.setdefault(sources[number], set()).update(orders_in(text))
    whole: set[DateOrder] = set().union(*found.values())
    return {number: _decided(found[name], whole) for number, name in sources.items()}


def _decided(proved: set[DateOrder], whole: set[DateOrder]) -> SourceOrder:
    if len(proved) > 1:
        return SourceOrder(None, contradicts=True)
    decisive = proved or (whole if len(whole) == 1 else set())
    return SourceOrder(next(iter(decisive), None))


class PrintedDates:
    """The dates that a page prints, and whether a reported date is one of these dates."""

    def __init__(self, text: str, source: SourceOrder) -> None:
        self.source = source
        self._sure: set[str] = set()
        self._unsure: set[str] = set()
        for m in _DATE.finditer(text):
            readings = _readings(m.group())
            if not is_ambiguous(m.group()):
                self._sure |= readings.keys()
            else:
                for day, order in readings.items():
                    (self._sure if order is source.order else self._unsure).add(day)

    def doubts(self, day: str) -> bool:
        """Return whether the page prints `day` (ISO 8601) only in an order that nothing proves."""
        return day in self._unsure and day not in self._sure

    def proves(self, day: str) -> bool:
        """Return whether the page prints `day` (ISO 8601) in a form that has one meaning here."""
        return day in self._sure


def _readings(text: str) -> Mapping[str, DateOrder]:
    """Return the days that a printed date can mean, each with its order."""
    found: dict[str, DateOrder] = {}
    for order in DateOrder:
        printed = date_at(text, order=order)
        if printed is not None and printed.day is not None:
            found[printed.day.isoformat()] = order
    return found
