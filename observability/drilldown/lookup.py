"""The look-up of an id, or of the beginning of one. One statement, which reads ids only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import CharField, F, Model, QuerySet, UUIDField, Value
from django.db.models.functions import Cast

from pipeline.models import (
    Encounter,
    Incident,
    Job,
    PendingEncounter,
    ProviderCall,
    RecordBatch,
    RecordListItem,
    Session,
    ShellFile,
)
from pipeline.models.work_tables import WorkTable, composed

SHORTEST = 6
"""Least number of hexadecimal digits of a prefix."""
SHOWN = 10
"""Most candidates that the error for an ambiguous prefix names."""


class IdError(Exception):
    """The id is unknown or ambiguous; the message says which."""


@dataclass(frozen=True, kw_only=True)
class Located:
    """The object that an id names."""

    kind: str
    id: UUID
    node_id: UUID
    """The node that shows the object in the drill-down; for an entity, its encounter's node."""
    shell_file_id: UUID | None
    """None for an incident and for a batch of records, which have no single record."""

    @property
    def named(self) -> str:
        """`an incident`, `a batch`."""
        return f"{'an' if self.kind[0] in 'aeiou' else 'a'} {self.kind}"


@dataclass(frozen=True)
class _Place:
    kind: str
    model: type[Model]
    record: str | None
    node: str


_Row = tuple[str, UUID, UUID, UUID | None]

# The registry adds the work items of every pass, their parents and their results.
_PLACES: tuple[_Place, ...] = (
    _Place("record", ShellFile, "id", "id"),
    _Place("job", Job, "shell_file_id", "shell_file_id"),
    _Place("session", Session, "shell_file_id", "shell_file_id"),
    _Place("sighting", PendingEncounter, "discovery_session__shell_file_id", "chunk_id"),
    _Place("encounter", Encounter, "shell_file_id", "id"),
    _Place("list entry", RecordListItem, "shell_file_id", "shell_file_id"),
    _Place("call", ProviderCall, "processing_session__shell_file_id", "id"),
    _Place("incident", Incident, None, "id"),
    _Place("record batch", RecordBatch, None, "id"),
)


def located_models() -> frozenset[type[Model]]:
    """Return the tables whose ids can be looked up; other tables have no page in the console."""
    return frozenset(place.model for place in _places())


@composed
def _places(tables: Sequence[WorkTable]) -> tuple[_Place, ...]:
    own = {place.model: place for table in tables for place in _places_of(table)}
    return (*own.values(), *(place for place in _PLACES if place.model not in own))


def _places_of(table: WorkTable) -> Iterator[_Place]:
    """Return the places of the work items of a pass, of their parents and of their results."""
    record = "shell_file_id"
    yield _Place(table.noun, table.model, table.record, "id")
    if parent := table.parent:
        node = f"{parent.encounter}_id" if parent.encounter else record
        yield _Place(parent.noun, parent.model, record, node)
    if results := table.results:
        own = _item_of(results, table)
        node = own or (f"{table.encounter}_id" if table.encounter else record)
        yield _Place(str(results._meta.verbose_name), results, record, node)


def _item_of(results: type[Model], table: WorkTable) -> str | None:
    """Return the column by which every result names its work item; None if a result may not."""
    keys = (field for field in results._meta.fields if field.related_model is table.model)
    return next((field.attname for field in keys if not field.null), None)


def locate(text: str) -> Located:
    """Find the object of an id or of a unique prefix of at least six digits. Raises IdError."""
    first, last = _bounds(text)
    found = _candidates(first, last)
    if not found:
        raise IdError(f"No object has the id {text}.")
    if len(found) > 1:
        names = ", ".join(f"{each.kind} {each.id}" for each in found[:SHOWN])
        more = ", …" if len(found) > SHOWN else ""
        raise IdError(f"Several ids begin with {text}: {names}{more}.")
    return found[0]


def _bounds(text: str) -> tuple[UUID, UUID]:
    digits = text.strip().lower().replace("-", "")
    if not re.fullmatch(r"[0-9a-f]{1,32}", digits):
        raise IdError("An id is hexadecimal, such as 0b02ca07-dce8-4ca2-9850-8a2edbe5b7e8.")
    if len(digits) < SHORTEST:
        raise IdError(f"Enter at least {SHORTEST} digits of the id.")
    # A range of keys uses the index of the primary key; a pattern on the key's text does not.
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def _candidates(first: UUID, last: UUID) -> list[Located]:
    parts = [_rows(place, first, last) for place in _places()]
    rows = parts[0].union(*parts[1:], all=True)[: SHOWN + 1]
    return [
        Located(kind=kind, id=own, node_id=node, shell_file_id=record)
        for kind, own, node, record in rows
    ]


def _rows(place: _Place, first: UUID, last: UUID) -> QuerySet[Model, _Row]:
    rows: QuerySet[Model, _Row] = (
        place.model._default_manager.filter(pk__gte=first, pk__lte=last)
        .annotate(
            found_kind=Cast(Value(place.kind), CharField()),
            found_id=F("pk"),
            found_node=Cast(F(place.node), UUIDField()),
            found_record=Cast(F(place.record) if place.record else Value(None), UUIDField()),
        )
        .values_list("found_kind", "found_id", "found_node", "found_record")
        .order_by()
    )
    return rows
