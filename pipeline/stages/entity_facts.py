"""The entities of a record by encounter, in the order of the text, for Passes 2 and 3."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import TextField
from django.db.models.functions import Cast

from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.models import CodeCandidate, Encounter, EnrichedEntity, Entity

CANDIDATES = 8
"""Candidates of each entity that a prompt shows; the shortlist holds up to ten."""

_COLUMNS = (
    "category", "name", "quote", "value", "unit", "reference_range", "abnormal_flag", "strength",
    "dose", "previous_dose", "route", "frequency", "status", "step", "reaction", "entity_date",
    "negated", "temporality", "certainty", "experiencer", "zone_type", "accepted", "page_end",
)  # fmt: skip
"""Columns of an entity that the facts hold under the same name."""
_REPEATED = frozenset(_COLUMNS) - {
    "quote", "step", "entity_date", "negated", "accepted", "page_end",
}  # fmt: skip
"""Columns of text whose values many entities share."""


class StoredAttributes(Mapping[str, Any]):
    """Attributes as the JSON text of their row, read at each access.

    A record of a thousand pages has 50,000 entities. Their attributes need some 400 bytes each as
    text, and 2,000 bytes as dictionaries.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __getitem__(self, name: str) -> Any:
        return json.loads(self._text)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(json.loads(self._text))

    def __len__(self) -> int:
        return len(json.loads(self._text))


_ENRICHED = ("attributes", "code", "code_display", "flags")
"""Facts that Pass 2 has added."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownEntity:
    """One entity of a published encounter; its facts have no key yet."""

    id: UUID
    encounter_id: UUID
    facts: EntityFacts


EntitiesByEncounter = Mapping[UUID, Sequence[KnownEntity]]


def known_entities(
    shell_file_id: UUID, *, with_candidates: bool = False, with_attributes: bool = False
) -> EntitiesByEncounter:
    """Return all entities of a record by encounter, in the order of the text.

    There is one statement for the encounters, one for the entities, and one for each addition.
    """
    encounters = {
        encounter_id: (first_day, kind)
        for encounter_id, first_day, kind in Encounter.objects.filter(
            shell_file_id=shell_file_id
        ).values_list("id", "encounter_date_start", "encounter_type")
    }
    shortlists = _shortlists(shell_file_id) if with_candidates else {}
    enriched = _enriched(shell_file_id) if with_attributes else {}
    found: defaultdict[UUID, list[KnownEntity]] = defaultdict(list)
    rows = (
        Entity.objects.filter(shell_file_id=shell_file_id)
        .order_by("healthcare_encounter__encounter_index", "entity_index")
        .values_list(
            "id",
            "healthcare_encounter_id",
            "page_number",
            "char_start",
            "char_end",
            "review_flags",
            *_COLUMNS,
        )
    )
    # Fifty thousand entities repeat a few thousand words, so entities share one object per word.
    words: dict[str, str] = {}
    for entity_id, encounter_id, page, start, end, flags, *values in rows.iterator(2_000):
        first_day, kind = encounters[encounter_id]
        printed: dict[str, Any] = {
            column: words.setdefault(value, value) if column in _REPEATED and value else value
            for column, value in zip(_COLUMNS, values, strict=True)
        }
        facts = EntityFacts(
            key="",
            page=page,
            start=start,
            end=end,
            review_flags=tuple(flags),
            encounter_date=first_day,
            encounter_type=kind,
            candidates=shortlists.get(entity_id, ()),
            **printed,
            **dict(zip(_ENRICHED, enriched.pop(entity_id, ()), strict=False)),
        )
        found[encounter_id].append(
            KnownEntity(id=entity_id, encounter_id=encounter_id, facts=facts)
        )
    return dict(found)


def keyed(entities: Sequence[KnownEntity]) -> dict[str, KnownEntity]:
    """Return entities by the keys of one prompt: `e1`, `e2` and so on, in order."""
    return {
        key: replace(
            each, facts=replace(each.facts, key=key, attributes=dict(each.facts.attributes))
        )
        for key, each in ((f"e{number}", each) for number, each in enumerate(entities, start=1))
    }


def _shortlists(shell_file_id: UUID) -> dict[UUID, tuple[Candidate, ...]]:
    # A record of a thousand pages has some 100,000 candidates of some 1,000 codes, so entities
    # share one object per code and term; the score plays no part after Pass 1.5.
    shared: dict[tuple[str, str, str], Candidate] = {}
    found: defaultdict[UUID, list[Candidate]] = defaultdict(list)
    rows = (
        CodeCandidate.objects.filter(shell_file_id=shell_file_id, rank__lte=CANDIDATES)
        .order_by("entity_id", "rank")
        .values_list("entity_id", "system", "code", "display", "term")
    )
    for entity_id, system, code, display, term in rows.iterator(2_000):
        candidate = shared.setdefault(
            (system, code, term),
            Candidate(system=system, code=code, display=display, score=0.0, term=term),
        )
        found[entity_id].append(candidate)
    return {entity_id: tuple(each) for entity_id, each in found.items()}


def _enriched(shell_file_id: UUID) -> dict[UUID, tuple[Any, ...]]:
    """Return the values of `_ENRICHED` by entity; equal codes share one object."""
    rows = (
        EnrichedEntity.objects.filter(shell_file_id=shell_file_id)
        .annotate(text=Cast("attributes", TextField()))
        .values_list("entity_id", "text", "code_system", "code", "code_display", "flags")
    )
    shared: dict[str, str] = {}
    found = {}
    for entity_id, text, system, code, display, flags in rows.iterator(2_000):
        token = f"{system}|{code}" if code else None
        found[entity_id] = (
            StoredAttributes(text),
            shared.setdefault(token, token) if token else None,
            shared.setdefault(display, display) if display else None,
            tuple(flags),
        )
    return found
