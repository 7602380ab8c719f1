"""The pair: the same entities as Parquet and as JSON, under one generation id.

The JSON holds the record, its encounters, lists and supported sentences too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from io import RawIOBase
from itertools import islice
from typing import Any, BinaryIO, cast

import simplejson
from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema, list_array
from arro3.io import write_parquet

from pipeline.exports.columns import COLUMNS, Column, ColumnKind, json_text, plain_row, values
from pipeline.exports.rows import EntityRow, RecordRow
from pipeline.exports.source import RecordSource

FORMAT_VERSION = "1"
"""Version of the columns of the Parquet file and of the keys of the JSON file."""
PARQUET, JSON = ".parquet", ".json"
"""Endings of the two files."""
_ROWS = 2_000
"""Rows of an Arrow batch, the most that are in memory at once."""
_ROW_GROUP = 20_000
"""Rows of a row group; its encoded pages stay in memory until the group is written."""
_TYPES: dict[ColumnKind, Callable[[], DataType]] = {
    ColumnKind.INTEGER: DataType.int32,
    ColumnKind.FLOAT: DataType.float64,
    ColumnKind.BOOLEAN: DataType.bool,
    ColumnKind.DATE: DataType.date32,
    ColumnKind.LIST: lambda: DataType.list(DataType.utf8()),
}
"""ColumnKind → type of Arrow; every other kind is text."""
_EPOCH = date(1970, 1, 1)


def pair_name(record: RecordRow, suffix: str) -> str:
    """Return the name of one file of a pair."""
    return f"{record.id}.{record.generation}{suffix}"


def write_parquet_file(source: RecordSource, file: BinaryIO) -> None:
    """Write the entities as a Parquet file; the schema's metadata says what the record is.

    Raises the error of the file or of the source. `arro3` would panic on the one and rename the
    other, so both are kept here and raised afterwards.
    """
    guarded = _Guarded(file)
    schema = Schema([Field(column.name, _type(column)) for column in COLUMNS])
    batches = guarded.kept(_batches(source, schema))
    try:
        write_parquet(
            RecordBatchReader.from_batches(schema, cast(Any, batches)),
            cast(Any, guarded),
            compression="zstd(3)",
            key_value_metadata=_about(source.record),
            max_row_group_size=_ROW_GROUP,
        )
    except Exception:
        if guarded.error is None:
            raise
    if guarded.error is not None:
        raise guarded.error


def json_file(source: RecordSource) -> Iterator[str]:
    """Yield the text of the JSON file in pieces."""
    record = source.record
    yield f"{_text(_head(record))[:-1]}"
    parts: dict[str, Iterable[dict[str, Any]]] = {
        "entities": (plain_row(record, each) for each in source.entities()),
        "lists": (each._asdict() for each in source.list_items()),
        "sentences": (each._asdict() for each in source.sentences()),
    }
    for name, rows in parts.items():
        yield f',\n"{name}":['
        separator = "\n"
        for row in rows:
            yield f"{separator}{_text(row)}"
            separator = ",\n"
        yield "]"
    yield "}\n"


def _head(record: RecordRow) -> dict[str, Any]:
    about: dict[str, Any] = dict(_about(record))
    return about | {
        "record_incomplete": record.is_incomplete,
        "reviewed": record.is_review_closed,
        "notices": list(record.notices),
        "patient": {"pseudonym": record.pseudonym, "reference": record.patient_reference},
        "page_count": record.page_count,
        "language": record.language,
        "warnings": list(record.warnings),
        "encounters": [each._asdict() for each in record.encounters],
    }


def _about(record: RecordRow) -> dict[str, str]:
    """Return what both files say of the record; Parquet's metadata holds text only."""
    return {
        "format_version": FORMAT_VERSION,
        "generation": str(record.generation),
        "record_id": str(record.id),
        "taken_at": record.taken_at.isoformat(),
        "notice": " ".join(record.notices),
    }


class _Guarded(RawIOBase):
    """A file and a source whose errors never reach the writer of Parquet."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self._file = file
        self.error: Exception | None = None

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write, or do nothing after an error."""
        if self.error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self.error = error
        return len(data)

    def kept(self, rows: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        """Yield the rows; an error ends them."""
        try:
            yield from rows
        except Exception as error:  # noqa: BLE001 - raised again after the writer has returned
            self.error = error


def _batches(source: RecordSource, schema: Schema) -> Iterator[RecordBatch]:
    entities = source.entities()
    while rows := list(islice(entities, _ROWS)):
        arrays = [_array(column, source.record, rows) for column in COLUMNS]
        yield RecordBatch(arrays, schema=schema)


def _type(column: Column) -> DataType:
    return _TYPES.get(column.kind, DataType.utf8)()


def _array(column: Column, record: RecordRow, rows: list[EntityRow]) -> Array:
    of = values(column, record, rows)
    if column.kind is ColumnKind.DATE:
        days = [(day - _EPOCH).days if day else None for day in of]
        return Array(cast(Any, days), type=DataType.int32()).cast(DataType.date32())
    if column.kind is ColumnKind.LIST:
        return _lists([each or () for each in of])
    if column.kind is ColumnKind.JSON:
        return Array(cast(Any, [json_text(each) for each in of]), type=DataType.utf8())
    return Array(cast(Any, list(of)), type=_type(column))


def _lists(of: list[Any]) -> Array:
    offsets = [0]
    for each in of:
        offsets.append(offsets[-1] + len(each))
    flat = Array(cast(Any, [code for each in of for code in each]), type=DataType.utf8())
    return list_array(Array(cast(Any, offsets), type=DataType.int32()), flat)


def _text(of: dict[str, Any]) -> str:
    return str(simplejson.dumps(of, ensure_ascii=False, separators=(",", ":"), default=str))
