"""One entry of a list of the record: a problem, a medication, an allergy or a lab series. PHI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from observability.phi.flag_words import in_words
from observability.phi.list_words import seen, words_of
from pipeline.models import RecordListItem
from pipeline.models.outdated import StaleResults

LIST_TITLES = {
    "problem": "Problems",
    "medication": "Medications",
    "allergy": "Allergies",
    "lab_series": "Laboratory series",
}
"""The titles of the lists, in the order in which they are shown."""


@dataclass(frozen=True, kw_only=True)
class ListEntry:
    """One entry of a list of the record."""

    id: str
    name: str
    code: str | None
    """`system|code`."""
    display: str
    words: str
    """What the summary says, in one line."""
    seen: str
    """The first and the last day."""
    flags: tuple[str, ...]
    """Reasons for a review of an entity that supports the entry."""
    summary: dict[str, Any]
    encounters: tuple[int, ...]
    """1-based numbers of the supporting encounters."""
    encounter_ids: tuple[str, ...]
    """Their ids, in the same order."""
    contradictions: tuple[str, ...]
    entity_ids: tuple[str, ...]
    is_outdated: bool = False
    """A reviewer has rejected, corrected or moved an entity since; the list is built again when
    the review closes."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """The flags in words."""
        return in_words(self.flags)

    @property
    def is_marked(self) -> bool:
        """Whether a person must look at the entry: a mention has a flag, or has changed since."""
        return bool(self.flags or self.is_outdated)

    @property
    def latest_entity(self) -> str:
        """The last entity in the order of the record."""
        return self.entity_ids[-1]

    @property
    def says_nothing(self) -> bool:
        """Whether the entry says nothing beside its name."""
        return not (self.words or self.contradictions or self.flags)


def entry_of(
    item: RecordListItem,
    indexes: Mapping[UUID, int],
    displays: Mapping[str, str],
    stale: StaleResults,
) -> ListEntry:
    """Return a row as an entry; `indexes` numbers the encounters, `displays` names the codes."""
    encounters = _in_order(item.encounter_ids, indexes)
    code = f"{item.code_system}|{item.code}" if item.code else None
    return ListEntry(
        id=str(item.id),
        name=item.name,
        code=code,
        display=displays.get(code, "") if code else "",
        words=words_of(item.kind, item.summary),
        seen=seen(item.summary),
        flags=tuple(item.summary.get("flags", ())),
        summary=item.summary,
        encounters=tuple(indexes[each] for each in encounters),
        encounter_ids=tuple(map(str, encounters)),
        contradictions=tuple(each["message"] for each in item.contradictions),
        entity_ids=tuple(map(str, item.entity_ids)),
        is_outdated=item.id in stale.list_items,
    )


def list_order(is_contradicted: bool, is_marked: bool) -> tuple[bool, bool]:
    """Return the sort key of an entry: contradicted entries first, then marked ones (`is_marked`).

    The sort is stable, so the others keep the order of the list.
    """
    return not is_contradicted, not is_marked


def _in_order(encounters: Sequence[UUID], indexes: Mapping[UUID, int]) -> list[UUID]:
    return sorted((each for each in encounters if each in indexes), key=indexes.__getitem__)
