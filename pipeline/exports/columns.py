"""The columns of one entity, the same in Parquet, JSON and CSV: one row for each entity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime
from enum import StrEnum
from typing import Any, NamedTuple

import simplejson

from pipeline.exports.rows import EntityRow, RecordRow, is_reviewed


class ColumnKind(StrEnum):
    """The type of a column."""

    TEXT = "text"
    """Words of the page, or words about them."""
    NUMBER_TEXT = "number_text"
    """Words that are often a number; CSV keeps a number as a number."""
    INTEGER = "integer"
    FLOAT = "float"
    BOOLEAN = "boolean"
    DATE = "date"
    LIST = "list"
    """A list of codes."""
    JSON = "json"
    """A JSON object as text."""


class Column(NamedTuple):
    """A column: its name, its type, and its value for an entity."""

    name: str
    kind: ColumnKind
    value: Callable[[RecordRow, EntityRow], Any]


def _own(kind: ColumnKind, *names: str) -> list[Column]:
    """Return columns with the values of the fields of `EntityRow` of the same names."""
    return [Column(name, kind, _getter(name)) for name in names]


def _getter(name: str) -> Callable[[RecordRow, EntityRow], Any]:
    position = EntityRow._fields.index(name)
    return lambda _record, entity: entity[position]


COLUMNS: tuple[Column, ...] = (
    Column("record_id", ColumnKind.TEXT, lambda record, _: str(record.id)),
    Column("generation", ColumnKind.TEXT, lambda record, _: str(record.generation)),
    Column("record_incomplete", ColumnKind.BOOLEAN, lambda record, _: record.is_incomplete),
    Column("reviewed", ColumnKind.BOOLEAN, is_reviewed),
    *_own(ColumnKind.BOOLEAN, "accepted"),
    *_own(ColumnKind.TEXT, "verdict"),
    Column("entity_id", ColumnKind.TEXT, lambda _, entity: str(entity.id)),
    Column("encounter_id", ColumnKind.TEXT, lambda _, entity: str(entity.encounter_id)),
    *_own(ColumnKind.INTEGER, "encounter_index", "entity_index"),
    *_own(ColumnKind.TEXT, "category", "name"),
    *_own(ColumnKind.NUMBER_TEXT, "value"),
    *_own(ColumnKind.TEXT, "unit", "reference_range", "abnormal_flag"),
    *_own(ColumnKind.TEXT, "strength", "dose", "previous_dose", "route", "frequency", "status"),
    *_own(ColumnKind.INTEGER, "step"),
    *_own(ColumnKind.TEXT, "reaction"),
    *_own(ColumnKind.DATE, "entity_date"),
    *_own(ColumnKind.BOOLEAN, "negated"),
    *_own(ColumnKind.TEXT, "temporality", "certainty", "experiencer", "zone_type"),
    *_own(ColumnKind.TEXT, "code_system", "code", "code_display"),
    *_own(ColumnKind.INTEGER, "page_number", "char_start", "char_end", "page_end"),
    *_own(ColumnKind.TEXT, "quote", "alignment"),
    *_own(ColumnKind.LIST, "review_flags", "enrichment_flags"),
    *_own(ColumnKind.TEXT, "engine", "rule", "enrichment_engine"),
    *_own(ColumnKind.FLOAT, "engine_confidence", "ocr_confidence", "confidence"),
    *_own(ColumnKind.JSON, "attributes", "second_reading", "enrichment_second_reading"),
)


def plain_row(record: RecordRow, entity: EntityRow) -> dict[str, Any]:
    """Return the row of an entity as JSON-ready values; objects stay objects."""
    return {column.name: _plain(column.value(record, entity)) for column in COLUMNS}


def json_text(value: Any) -> str | None:
    """Return an object as JSON text with sorted keys; None for None."""
    return None if value is None else str(simplejson.dumps(value, sort_keys=True, default=str))


def values(column: Column, record: RecordRow, rows: list[EntityRow]) -> Iterator[Any]:
    """Yield the values of a column."""
    return (column.value(record, row) for row in rows)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date | datetime) else value
