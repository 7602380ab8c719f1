"""Pass 2 holds few entities as objects: those that are being read, and those of a call."""

from __future__ import annotations

import gc
from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from pipeline.models import Entity, ZoneResult
from pipeline.stages.entity_facts import ENCOUNTERS_AT_ONCE, KnownEntity, entities_by_encounter
from pipeline.stages.pass2.zone_facts import ZoneFacts
from pipeline.workers import run_step
from tests.support import records
from tests.support.short_records import short_record

VISITS = ENCOUNTERS_AT_ONCE + 5


def alive(ids: Set[UUID]) -> int:
    """Return how many of these entities exist as objects."""
    gc.collect()
    # `isinstance` asks an object for its class, and so evaluates Django's lazy objects.
    return sum(type(each) is KnownEntity and each.id in ids for each in gc.get_objects())


def are_kept(facts: ZoneFacts, zone: ZoneResult, entities: Sequence[KnownEntity]) -> bool:
    """Return whether a zone's compressed facts are those of the entities."""
    read = facts.of(zone, range(1, 1_000))
    kept = [replace(each, facts=replace(each.facts, key="")) for each in read.values()]
    return kept == list(entities) and [*read] == [each.facts.key for each in read.values()]


@pytest.mark.django_db
def test_entities_are_read_in_portions_and_held_compressed(tmp_path: Path, settings: Any) -> None:
    settings.SKIPPED_PASSES = ("pass1_5", "pass3")
    settings.LEASE_S = settings.CALL_DEADLINE_S = 2400.0
    record = records.submit(short_record(tmp_path / "many.pdf", VISITS)).shell_file_id
    for step in ("pages", "pass05", "pass1", "pass2"):
        run_step.run_step(step)
    zones = {zone.healthcare_encounter_id: zone for zone in ZoneResult.objects.all()}
    ids = set(Entity.objects.filter(shell_file_id=record).values_list("id", flat=True))
    total = len(ids)
    # The collector then skips the million objects of the tests before this one.
    gc.collect()
    gc.freeze()
    before, facts = alive(ids), ZoneFacts()
    held, kept = [], []

    for encounter, entities in entities_by_encounter(record, with_candidates=True):
        facts.add(zones[encounter], {each.id: each for each in entities})
        kept.append(are_kept(facts, zones[encounter], entities))
        held.append(alive(ids) - before)
        del entities

    assert kept == [True] * VISITS
    assert len(zones) == VISITS
    assert total >= 2 * VISITS
    # A portion while the record is read, and only compressed facts afterwards.
    assert max(held) <= total * ENCOUNTERS_AT_ONCE / VISITS
    assert alive(ids) == before
    gc.unfreeze()
