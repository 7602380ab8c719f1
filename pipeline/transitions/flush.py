"""The flush: everything that the owner of a provider step has to say, in one statement.

Imports models. Rows travel as JSON records, so that a flush of three hundred batches is still one
statement behind one fence (`design.md` §3: 1.0 statement per batch against 6.8 piecemeal). It is
idempotent: ids are made by us, an INSERT that is repeated does nothing, and a succeeded row stays.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from pipeline.models import Batch, Chunk, Entity, ProviderCall, ProviderPayload
from pipeline.models.work_item import WorkItem
from pipeline.transitions.leases import Lease, fenced

Row = dict[str, Any]

_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""NUL as JSON writes it, and no backslash before a text that only looks so."""

_SHARED = (
    "status",
    "attempt_count",
    "rate_limit_waits",
    "started_at",
    "completed_at",
    "duration_ms",
    "ai_model_used",
    "input_tokens",
    "output_tokens",
    "error_code",
    "error_message",
    "error_context",
    "had_transient_failure",
    "transient_error_history",
    "output",
)
_COLUMNS: dict[type[WorkItem], tuple[str, ...]] = {
    Batch: (*_SHARED, "entities_detected", "zones_detected"),
    Chunk: (*_SHARED, "encounters_detected", "error_details"),
}
ENCOUNTER_COLUMNS = (
    "status",
    "batches_succeeded",
    "batches_failed",
    "total_retries_used",
    "started_at",
    "completed_at",
    "total_duration_ms",
    "total_input_tokens",
    "total_output_tokens",
    "total_entities_detected",
    "total_zones_detected",
    "no_known_allergies",
    "zones",
    "warnings",
    "failure_batch_index",
    "error_code",
    "error_summary",
)


@dataclass(kw_only=True)
class Flush:
    """Rows that belong together; every list holds whole rows as JSON-ready dicts."""

    work: type[WorkItem]
    """Whose rows `items` are: Batch or Chunk."""
    items: list[Row] = field(default_factory=list)
    """State of batches or chunks: `id` and the columns of `_COLUMNS`."""
    calls: list[Row] = field(default_factory=list)
    payloads: list[Row] = field(default_factory=list)
    encounters: list[Row] = field(default_factory=list)
    """State of encounter results: `id` and `ENCOUNTER_COLUMNS`."""
    entities: list[Row] = field(default_factory=list)
    """Entities of encounters that are published by this flush."""

    def __bool__(self) -> bool:
        return bool(self.items or self.calls or self.payloads or self.encounters or self.entities)


def row_of(row: WorkItem) -> Row:
    """Return the state of a batch or chunk as a row of a flush."""
    state: Row = {"id": str(row.pk)}
    for column in _COLUMNS[type(row)]:
        value = getattr(row, column)
        state[column] = value.isoformat() if isinstance(value, datetime) else value
    return state


def write(lease: Lease, flush: Flush) -> None:
    """Write a flush behind its fence: two statements, whatever it holds.

    A row that has succeeded is never taken back to another state. Raises LeaseLostError.
    """
    if not flush:
        return
    with fenced(lease), connection.cursor() as cursor:
        cursor.execute(
            _statement(flush.work),
            {
                "items": _json(flush.items),
                "calls": _json(flush.calls),
                "payloads": _json(flush.payloads),
                "encounters": _json(_newest(flush.encounters)),
                "entities": _json(flush.entities),
            },
        )


def _newest(rows: list[Row]) -> list[Row]:
    # An encounter can begin and settle within one flush; of two source rows for one target,
    # UPDATE … FROM takes either.
    return list({row["id"]: row for row in rows}.values())


def _json(rows: list[Row]) -> str:
    text = json.dumps(rows, ensure_ascii=False)
    # A header or a model's name can carry what PostgreSQL refuses; one such row would keep all
    # others of its flush from being written.
    if "\\u0000" in text:
        text = _NUL.sub(r"\1", text)
    return text.encode("utf-8", "replace").decode()


def _assignments(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{c} = r.{c}" for c in columns)


def _insert(model: type[ProviderCall] | type[ProviderPayload] | type[Entity], rows: str) -> str:
    table, key = model._meta.db_table, model._meta.pk.column
    # created_at is left to its default, the database's clock.
    names = ", ".join(
        str(f.column) for f in model._meta.local_concrete_fields if f.column != "created_at"
    )
    return (
        f"INSERT INTO {table} ({names})"  # noqa: S608 - names come from the model
        f" SELECT {names} FROM json_populate_recordset(NULL::{table}, %({rows})s::json)"
        f" ON CONFLICT ({key}) DO NOTHING"
    )


def _statement(work: type[WorkItem]) -> str:
    table = work._meta.db_table
    return f"""
WITH items AS (
  SELECT * FROM json_populate_recordset(NULL::{table}, %(items)s::json)
), encounters AS (
  SELECT * FROM json_populate_recordset(NULL::pass1_encounter_results, %(encounters)s::json)
), moved_encounters AS (
  UPDATE pass1_encounter_results e SET {_assignments(ENCOUNTER_COLUMNS)},
    updated_at = clock_timestamp()
  FROM encounters r WHERE e.id = r.id AND (e.status <> 'succeeded' OR r.status = 'succeeded')
  RETURNING e.healthcare_encounter_id, e.status
), published AS (
  UPDATE healthcare_encounters h SET entities_published_at = clock_timestamp()
  FROM moved_encounters m WHERE h.id = m.healthcare_encounter_id AND m.status = 'succeeded'
    AND h.entities_published_at IS NULL
), moved AS (
  UPDATE {table} w SET {_assignments(_COLUMNS[work])}
  FROM items r WHERE w.id = r.id AND (w.status <> 'succeeded' OR r.status = 'succeeded')
), called AS (
  {_insert(ProviderCall, "calls")}
), kept AS (
  {_insert(ProviderPayload, "payloads")}
), found AS (
  {_insert(Entity, "entities")}
)
SELECT 1
"""  # noqa: S608 - names of tables and columns come from the models, values are parameters
