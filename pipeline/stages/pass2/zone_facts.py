"""The entities of the zones of one step, compressed between the calls.

A record of a thousand pages has 50,000 entities with eight candidates each. As objects they need
more memory than the rest of the step, and a call needs the entities of one zone only. The executor
thread adds the zones before the first call; call threads read.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from pipeline.clinical.facts import EntityFacts
from pipeline.models import ZoneResult
from pipeline.stages.entity_facts import KnownEntity, keys

LEVEL = 1
"""The fastest compression: the facts of a zone shrink to a fifth."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Packed:
    pages: tuple[int, ...]
    characters: int
    """Of the facts as a prompt shows them."""
    facts: bytes = field(repr=False)
    """Compressed JSON: a list of `EntityFacts.as_json`, in the order of the zone's entity ids."""


class ZoneFacts:
    """The entities of zones, by zone."""

    def __init__(self) -> None:
        self._zones: dict[UUID, _Packed] = {}

    def add(self, zone: ZoneResult, entities: Mapping[UUID, KnownEntity]) -> None:
        """Keep the entities of a zone; `entities` are those of its encounter by id."""
        facts = [entities[each].facts for each in zone.entity_ids]
        text = json.dumps([each.as_json() for each in facts], ensure_ascii=False)
        self._zones[zone.id] = _Packed(
            pages=tuple(sorted({each.page for each in facts})),
            characters=len(text),
            facts=zlib.compress(text.encode("utf-8", "surrogatepass"), LEVEL),
        )

    def pages_of(self, zone: ZoneResult) -> tuple[int, ...]:
        """Return the pages on which a zone has entities, in order."""
        return self._zones[zone.id].pages

    def characters_of(self, zone: ZoneResult) -> int:
        """Return the length of what a prompt says about the entities of a zone."""
        return self._zones[zone.id].characters

    def of(self, zone: ZoneResult, pages: Collection[int]) -> dict[str, KnownEntity]:
        """Return the entities of a zone on some pages, by the keys of their prompt."""
        text = zlib.decompress(self._zones[zone.id].facts).decode("utf-8", "surrogatepass")
        shown = [
            (entity_id, facts)
            for entity_id, facts in zip(zone.entity_ids, json.loads(text), strict=True)
            if facts["page"] in pages
        ]
        return {
            key: KnownEntity(
                id=entity_id,
                encounter_id=zone.healthcare_encounter_id,
                facts=EntityFacts.of_json({**facts, "key": key}),
            )
            for key, (entity_id, facts) in zip(keys(), shown, strict=False)
        }
