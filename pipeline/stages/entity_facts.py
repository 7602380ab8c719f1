"""The entities of a record by encounter, in the order of the text, for Passes 2 and 3."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from itertools import count
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db.models import TextField
from django.db.models.functions import Cast

from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.models import CodeCandidate, Encounter, EnrichedEntity, Entity

CANDIDATES = 8
"""Candidates of each entity that a prompt shows; the shortlist holds up to ten."""
ENCOUNTERS_AT_ONCE = 20
"""Encounters whose entities are read together: a hundred pages of a record of short visits."""

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
    """Attributes as the JSON text of their row, read when they are needed.

    A record of a thousand pages has 50,000 entities. Their attributes need some 400 bytes each as
    text, and 2,000 bytes as dictionaries.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __getitem__(self, name: str) -> Any:
        return _parsed(self._text)[name]

    def __contains__(self, name: object) -> bool:
        return name in _parsed(self._text)

    # The inherited method catches a KeyError for each attribute that is absent.
    def get(self, name: str, default: Any = None) -> Any:
        return _parsed(self._text).get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(_parsed(self._text))

    def __len__(self) -> int:
        return len(_parsed(self._text))


@lru_cache(maxsize=256)
def _parsed(text: str) -> Mapping[str, Any]:
    # The rules read many attributes of one entity one after the other.
    attributes: dict[str, Any] = json.loads(text)
    return MappingProxyType(attributes)


_ENRICHED = ("attributes", "code", "code_display", "flags")
"""Facts that Pass 2 has added."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownEntity:
    """One entity of a published encounter; its facts have no key yet."""

    id: UUID
    encounter_id: UUID
    facts: EntityFacts


EntitiesByEncounter = Mapping[UUID, Sequence[KnownEntity]]


def known_entities(shell_file_id: UUID, *, with_attributes: bool = False) -> EntitiesByEncounter:
    """Return all entities of a record by encounter, in the order of the text."""
    return dict(entities_by_encounter(shell_file_id, with_attributes=with_attributes))


def entities_by_encounter(
    shell_file_id: UUID,
    *,
    with_candidates: bool = False,
    with_attributes: bool = False,
    categories: Collection[str] = (),
) -> Iterator[tuple[UUID, list[KnownEntity]]]:
    """Yield each encounter that has entities, with its entities in the order of the text.

    `categories` limits the entities to some categories; without categories, all are read.

    The entities of at most ENCOUNTERS_AT_ONCE encounters are in memory at a time. There is one
    statement for the encounters; each portion of encounters needs one for the entities, and one for
    each addition.
    """
    encounters = list(
        Encounter.objects.filter(shell_file_id=shell_file_id)
        .order_by("encounter_index")
        .values_list("id", "encounter_date_start", "encounter_type")
    )
    only: dict[str, Any] = {"category__in": list(categories)} if categories else {}
    shared = _Shared()
    for first in range(0, len(encounters), ENCOUNTERS_AT_ONCE):
        portion = encounters[first : first + ENCOUNTERS_AT_ONCE]
        found = _portion(shell_file_id, portion, shared, with_candidates, with_attributes, only)
        for encounter_id, _, _ in portion:
            if encounter_id in found:
                yield encounter_id, found.pop(encounter_id)


def keys() -> Iterator[str]:
    """Yield the keys of the entities of one prompt: `e1`, `e2` and so on."""
    return (f"e{number}" for number in count(1))


def keyed(entities: Sequence[KnownEntity]) -> dict[str, KnownEntity]:
    """Return entities by the keys of one prompt, in order."""
    return {
        key: replace(
            each, facts=replace(each.facts, key=key, attributes=dict(each.facts.attributes))
        )
        for key, each in zip(keys(), entities, strict=False)
    }


class _Shared:
    """Values that many entities have: the entities share one object for each value.

    Fifty thousand entities repeat a few thousand words, and some 1,000 codes.
    """

    def __init__(self) -> None:
        self._words: dict[str, str] = {}
        self._candidates: dict[tuple[str, str, str], Candidate] = {}

    def word(self, text: Any) -> Any:
        """Return the shared object of a text; None and an empty text stay."""
        return self._words.setdefault(text, text) if text else text

    def candidate(self, system: str, code: str, display: str, term: str) -> Candidate:
        """Return a candidate; its score plays no part after Pass 1.5."""
        key = (system, code, term)
        if key not in self._candidates:
            self._candidates[key] = Candidate(
                system=system, code=code, display=display, score=0.0, term=term
            )
        return self._candidates[key]


def _portion(
    shell_file_id: UUID,
    encounters: Sequence[tuple[UUID, date | None, str]],
    shared: _Shared,
    with_candidates: bool,
    with_attributes: bool,
    only: Mapping[str, Any],
) -> dict[UUID, list[KnownEntity]]:
    """Return the entities of some encounters; `only` is a filter of their columns."""
    of = {"shell_file_id": shell_file_id, "healthcare_encounter_id__in": [e[0] for e in encounters]}
    shortlists = _shortlists(of, shared) if with_candidates else {}
    enriched = _enriched({**of, **only}, shared) if with_attributes else {}
    about = {encounter_id: (first_day, kind) for encounter_id, first_day, kind in encounters}
    found: defaultdict[UUID, list[KnownEntity]] = defaultdict(list)
    rows = (
        Entity.objects.filter(**of, **only)
        .order_by("healthcare_encounter_id", "entity_index")
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
    for entity_id, encounter_id, page, start, end, flags, *values in rows.iterator(2_000):
        first_day, kind = about[encounter_id]
        printed: dict[str, Any] = {
            column: shared.word(value) if column in _REPEATED else value
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
    return found


def _shortlists(of: Mapping[str, Any], shared: _Shared) -> dict[UUID, tuple[Candidate, ...]]:
    found: defaultdict[UUID, list[Candidate]] = defaultdict(list)
    rows = (
        CodeCandidate.objects.filter(**of, rank__lte=CANDIDATES)
        .order_by("entity_id", "rank")
        .values_list("entity_id", "system", "code", "display", "term")
    )
    for entity_id, system, code, display, term in rows.iterator(2_000):
        found[entity_id].append(shared.candidate(system, code, display, term))
    return {entity_id: tuple(each) for entity_id, each in found.items()}


def _enriched(of: Mapping[str, Any], shared: _Shared) -> dict[UUID, tuple[Any, ...]]:
    """Return the values of `_ENRICHED` by entity."""
    rows = (
        EnrichedEntity.objects.filter(**of)
        .annotate(text=Cast("attributes", TextField()))
        .values_list("entity_id", "text", "code_system", "code", "code_display", "flags")
    )
    return {
        entity_id: (
            StoredAttributes(text),
            shared.word(f"{system}|{code}") if code else None,
            shared.word(display) or None,
            tuple(flags),
        )
        for entity_id, text, system, code, display, flags in rows.iterator(2_000)
    }
