"""What the lists are made of (entities in their encounters), and what a list consists of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any
from uuid import UUID

from pipeline.clinical.facts import EntityFacts


class ListKind(StrEnum):
    """The lists, with the values of `models.clinical.RecordListKind`."""

    PROBLEM = "problem"
    MEDICATION = "medication"
    ALLERGY = "allergy"
    LAB_SERIES = "lab_series"


class ContradictionKind(StrEnum):
    """How statements exclude each other."""

    AFFIRMED_AND_DENIED = "affirmed_and_denied"
    STATUS_CONFLICT = "status_conflict"
    """Two statuses on one date: taken and stopped, active and resolved."""
    TWO_DOSES = "two_doses"
    TWO_FREQUENCIES = "two_frequencies"
    ALLERGIC_AND_TOLERATED = "allergic_and_tolerated"
    """An allergy is stated and denied, on any dates."""
    ALLERGIC_AND_TAKEN = "allergic_and_taken"
    """The substance of an allergy is taken on or after the first date of the allergy."""
    CODES_EXCLUDED = "codes_excluded"
    """An Excludes1 note of ICD-10-CM forbids both codes in one encounter."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ListedFact:
    """One entity with its attributes, its code and its encounter.

    Attributes are JSON and have no hash, so equality is identity.
    """

    facts: EntityFacts
    entity_id: UUID
    encounter_id: UUID
    encounter_index: int
    """The position of the encounter in the record."""
    encounter_end: date | None = None
    """Last day of a stay."""

    @property
    def stated_day(self) -> date | None:
        """The day of the statement, or None for a statement of a stay without a day of its own."""
        facts = self.facts
        is_stay = self.encounter_end not in (None, facts.encounter_date)
        return facts.entity_date or (None if is_stay else facts.encounter_date)

    @property
    def day(self) -> date | None:
        """The day of the statement: the entity's own day, otherwise the encounter's first day."""
        return self.facts.entity_date or self.facts.encounter_date

    @property
    def position(self) -> tuple[int, int, int, int, int, str]:
        """The place in the record; sorting by the place never depends on the order of input.

        The steps of a taper can share one quote, so the step counts too.
        """
        start, end = self.facts.start, self.facts.end
        return (
            self.encounter_index,
            self.facts.page,
            -1 if start is None else start,
            -1 if end is None else end,
            self.facts.step or 0,
            str(self.entity_id),
        )

    def attribute(self, *path: str) -> Any:
        """Return the attribute at `path`, or None."""
        found: Any = self.facts.attributes
        for name in path:
            if not isinstance(found, Mapping):
                return None
            found = found.get(name)
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Contradiction:
    """Statements that exclude each other. The message contains clinical text, so it is PHI."""

    kind: ContradictionKind
    message: str = field(repr=False)
    entity_ids: tuple[UUID, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the contradiction, ready for JSON."""
        return {
            "kind": self.kind.value,
            "message": self.message,
            "entity_ids": [str(each) for each in self.entity_ids],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class ListItem:
    """One entry of a list across encounters. PHI."""

    kind: ListKind
    name: str = field(repr=False)
    code: str | None = None
    """`system|code`."""
    summary: dict[str, Any] = field(repr=False)
    entity_ids: tuple[UUID, ...]
    """The entities that support the entry, in the order of the record."""
    encounter_ids: tuple[UUID, ...]
    contradictions: tuple[Contradiction, ...] = ()


def contradiction(
    kind: ContradictionKind, message: str, members: Sequence[ListedFact]
) -> Contradiction:
    """Return a contradiction between `members`, in the order of the record."""
    ordered = sorted(members, key=lambda each: each.position)
    return Contradiction(
        kind=kind, message=message, entity_ids=tuple(each.entity_id for each in ordered)
    )
