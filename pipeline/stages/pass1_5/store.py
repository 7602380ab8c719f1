"""The rows of Pass 1.5: what is left to code, and the candidates of a group of encounters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection

from pipeline.clinical.facts import Candidate
from pipeline.codes.search.search import Asked
from pipeline.codes.version import search_version
from pipeline.core.copy_rows import copy_rows
from pipeline.models import CodeCandidate, CodeSystem, Encounter, Entity

EMERGENCY = "emergency"
"""The encounter type at which a patient is treated for the first time."""


@dataclass
class Group:
    """Encounters whose entities are searched together, and written in one transaction."""

    encounter_ids: list[UUID] = field(default_factory=list)
    entities: list[tuple[UUID, UUID, Asked]] = field(default_factory=list)
    """Id of the encounter, id of the entity, query."""


@dataclass(frozen=True)
class LoadedSystem:
    """The codes of one system as one load left them."""

    version: str
    digest: str


def loaded_systems() -> dict[str, LoadedSystem]:
    """Return each loaded code system by its key; a load makes a difference."""
    rows = CodeSystem.objects.values_list("key", "version", "digest")
    return {key: LoadedSystem(version, digest) for key, version, digest in rows}


def groups(shell_file_id: UUID, loaded: Mapping[str, LoadedSystem], size: int) -> Iterator[Group]:
    """Yield the encounters that lack candidates of the loaded versions by this search, in groups.

    A group has at least `size` entities, unless the group is the last one. The entities of one
    group are in memory at a time.
    """
    done = _done(shell_file_id, loaded)
    encounters = Encounter.objects.filter(shell_file_id=shell_file_id).order_by("encounter_index")
    left = [row for row in encounters.values_list("id", "encounter_type") if row[0] not in done]
    group = Group()
    for encounter_id, encounter_type in left:
        group.encounter_ids.append(encounter_id)
        group.entities += _entities(encounter_id, encounter_type)
        if len(group.entities) >= size:
            yield group
            group = Group()
    if group.encounter_ids:
        yield group


def _done(shell_file_id: UUID, loaded: Mapping[str, LoadedSystem]) -> set[UUID]:
    """Return the encounters whose candidates are all of the loaded versions, by this search."""
    found: dict[UUID, bool] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT healthcare_encounter_id, system, system_version, search_version"
            " FROM pass1_5_code_candidates WHERE shell_file_id = %s",
            [shell_file_id],
        )
        search = search_version()
        for encounter_id, system, version, searched_by in cursor:
            present = loaded.get(system)
            is_same = present is not None and present.version == version
            is_present = is_same and searched_by == search
            found[encounter_id] = found.get(encounter_id, True) and is_present
    return {encounter_id for encounter_id, is_done in found.items() if is_done}


def _entities(encounter_id: UUID, encounter_type: str) -> Iterator[tuple[UUID, UUID, Asked]]:
    rows = Entity.objects.filter(healthcare_encounter_id=encounter_id).order_by("entity_index")
    for entity_id, category, name in rows.values_list("id", "category", "name"):
        yield encounter_id, entity_id, Asked(name, category, encounter_type == EMERGENCY)


def write(
    shell_file_id: UUID,
    group: Group,
    found: Mapping[Asked, Sequence[Candidate]],
    loaded: Mapping[str, LoadedSystem],
) -> None:
    """Replace the candidates of a group; call this inside the step's fence."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM pass1_5_code_candidates WHERE healthcare_encounter_id = ANY(%s)",
            [group.encounter_ids],
        )
    rows = _rows(shell_file_id, group, found, loaded)
    copy_rows(CodeCandidate._meta.db_table, _COLUMNS, rows)


def _rows(
    shell_file_id: UUID,
    group: Group,
    found: Mapping[Asked, Sequence[Candidate]],
    loaded: Mapping[str, LoadedSystem],
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of `_COLUMNS` for each candidate."""
    search = search_version()
    for encounter_id, entity_id, asked in group.entities:
        for rank, each in enumerate(found[asked], 1):
            yield (
                shell_file_id,
                encounter_id,
                entity_id,
                rank,
                each.system,
                loaded[each.system].version,
                search,
                each.code,
                each.display,
                each.score,
                each.reason,
                each.term,
            )


_COLUMNS = (
    "shell_file_id",
    "healthcare_encounter_id",
    "entity_id",
    "rank",
    "system",
    "system_version",
    "search_version",
    "code",
    "display",
    "score",
    "reason",
    "term",
)
