"""The parts of one encounter and their joint facts.

This module is pure. A group updates its joint facts with each new part and never re-reads the
earlier parts. So a chunk costs the same in a stay of a thousand chunks.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass
from datetime import date
from typing import Generic, TypeVar

from pipeline.core.identity import WeightedStatements
from pipeline.core.types import Span
from pipeline.providers.schemas import EncounterType, FoundEncounter
from pipeline.stages.pass05.encounter_facts import Facts
from pipeline.stages.pass05.types import Edge, Member

T = TypeVar("T")


@dataclass(eq=False)
class EncounterPart:
    """One chunk's part of an encounter, before it belongs to a group."""

    member: Member
    encounter: FoundEncounter
    facts: Facts
    context: tuple[Span, ...]
    claimed: tuple[Span, ...] = ()

    @property
    def chunk(self) -> int:
        """The index of the chunk that reports this part."""
        return self.member.chunk_index

    @property
    def order(self) -> Span:
        """The first span of this part's text."""
        return self.claimed[0]


class _First(Generic[T]):
    """The earliest statement in the text."""

    def __init__(self) -> None:
        self._order: Span | None = None
        self.value: T | None = None

    def see(self, order: Span, value: T | None) -> None:
        if value and (self._order is None or order < self._order):
            self._order, self.value = order, value


class EncounterGroup:
    """The parts of one encounter, in the order of the text."""

    def __init__(self, rank: int, part: EncounterPart) -> None:
        self.rank = rank
        """The position of the group's first part among all parts; joins do not change it."""
        self.parts: list[EncounterPart] = []
        self.dated: set[int] = set()
        """Chunks that state this encounter's date; two groups dated by one chunk never join."""
        self._edges: list[Edge] = []
        self._type: _First[EncounterType] = _First()
        self._start: _First[date] = _First()
        self._ends: list[tuple[Span, date]] = []
        self._facility: _First[str] = _First()
        self._clinician: _First[str] = _First()
        self._patient = WeightedStatements()
        self._facts: Facts | None = None
        self._add(part)

    def take(self, other: EncounterGroup, edge: Edge) -> None:
        """Take over the parts of another group."""
        self._edges += [*other._edges, edge]
        for part in other.parts:
            self._add(part)

    @property
    def facts(self) -> Facts:
        """The joint facts of all parts.

        For each fact the earliest statement counts. The end date is the exception: the last
        statement counts.
        """
        if self._facts is None:
            start = self._start.value
            self._facts = Facts(
                encounter_type=self._type.value or "other",
                date_start=start,
                date_end=next(
                    (e for _, e in reversed(self._ends) if not start or e >= start), None
                ),
                facility=self._facility.value,
                clinician=self._clinician.value,
                patient=self._patient.joined(),
            )
        return self._facts

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The joins between chunks, in the order of their later sides."""
        return tuple(
            sorted(self._edges, key=lambda e: (e.later.chunk_index, e.later.encounter_index))
        )

    def _add(self, part: EncounterPart) -> None:
        facts, order = part.facts, part.order
        insort(self.parts, part, key=lambda p: p.order)
        self._facts = None
        self._type.see(order, None if facts.encounter_type == "other" else facts.encounter_type)
        self._start.see(order, facts.date_start)
        self._facility.see(order, facts.facility)
        self._clinician.see(order, facts.clinician)
        self._patient.add(facts.patient, 1.0)
        if facts.date_start is not None:
            self.dated.add(part.chunk)
        if facts.date_end is not None:
            insort(self._ends, (order, facts.date_end))
