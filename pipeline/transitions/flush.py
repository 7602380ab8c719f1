"""The flush: all results that the executor of a step has collected, written in one statement.

Rows are sent as JSON records, so that a flush of three hundred batches is one statement behind one
fence (measured: 1.0 instead of 6.8 statements per batch). A flush can be repeated: ids come from
us, a repeated INSERT does nothing, and a succeeded row stays as it is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Model

from pipeline.models import Encounter, KeptReply, ProviderCall, ProviderPayload
from pipeline.models.packed_output import PackedOutput
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import ParentTable, WorkTable, table_of
from pipeline.transitions.leases import Lease, fenced
from pipeline.transitions.metric_counts import (
    CALL_COLUMNS,
    COUNTS_OF_CALLS,
    counts_of_flags_sql,
)

Row = dict[str, Any]

_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""NUL in JSON; the group keeps an even number of backslashes before it, which escape each other."""

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


@dataclass(kw_only=True)
class Flush:
    """Rows that are written together; every list holds whole rows as JSON-ready dicts."""

    work: type[WorkItem]
    """The model of `items`; the registry names its table and columns."""
    items: list[Row] = field(default_factory=list)
    """State of work items: `id` and the columns that `row_of` returns."""
    calls: list[Row] = field(default_factory=list)
    payloads: list[Row] = field(default_factory=list)
    kept: list[Row] = field(default_factory=list)
    """Accepted replies that later records can reuse: rows of `KeptReply`."""
    parents: list[Row] = field(default_factory=list)
    """State of the parents of encounters: `id` and the columns of `ParentTable`."""
    results: list[Row] = field(default_factory=list)
    """Results of encounters that are published by this flush: rows of `WorkTable.results`."""

    def __bool__(self) -> bool:
        rows = (self.items, self.calls, self.payloads, self.kept, self.parents, self.results)
        return any(rows)


def row_of(row: WorkItem, *, is_published: bool = False) -> Row:
    """Return the state of a work item as a row of a flush; a published item has no output."""
    state: Row = {"id": str(row.pk)}
    for column in _columns(table_of(type(row))):
        value = getattr(row, column)
        if is_published and column == "output":
            value = None
        if isinstance(value, PackedOutput):
            value = value.unpacked()
        state[column] = value.isoformat() if isinstance(value, datetime) else value
    return state


def write(lease: Lease, flush: Flush) -> None:
    """Write a flush behind its fence, in two statements for any number of rows.

    A succeeded row never goes back to another state. Raises LeaseLostError, and ValueError for
    rows that the statement of this table would drop.
    """
    if not flush:
        return
    table = table_of(flush.work)
    if flush.parents and not table.encounter_parent:
        raise ValueError(f"{table.table} has no parents of encounters")
    if flush.results and not table.results:
        raise ValueError(f"{table.table} has no table of results")
    with fenced(lease), connection.cursor() as cursor:
        cursor.execute(
            _statement(table),
            {
                "items": _json(flush.items),
                "calls": _json(flush.calls),
                "payloads": _json(flush.payloads),
                "kept_replies": _json(flush.kept),
                "parents": _json(_newest(flush.parents)),
                "results": _json(flush.results),
            },
        )


def insert_calls(calls: list[Row]) -> None:
    """Insert calls about a whole record, in one statement; call this inside the step's fence."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH called AS ({_insert(ProviderCall, 'calls')} RETURNING {CALL_COLUMNS})"
            f" {COUNTS_OF_CALLS}",
            {"calls": _json(calls)},
        )


def _columns(table: WorkTable) -> tuple[str, ...]:
    return (*_SHARED, *(column for column, _ in table.counts), *table.error_columns)


def _newest(rows: list[Row]) -> list[Row]:
    # A parent can start and end within one flush. UPDATE … FROM with two source rows for one
    # target uses an arbitrary one of them, so only the newest row is sent.
    return list({row["id"]: row for row in rows}.values())


def _json(rows: list[Row]) -> str:
    text = json.dumps(rows, ensure_ascii=False)
    # Headers and model names can contain characters that PostgreSQL refuses. Without the removal
    # one such row would prevent all other rows of its flush.
    if "\\u0000" in text:
        text = _NUL.sub(r"\1", text)
    return text.encode("utf-8", "replace").decode()


def _assignments(columns: tuple[str, ...]) -> str:
    return ", ".join(f"{c} = r.{c}" for c in columns)


def _insert(model: type[Model], rows: str) -> str:
    options = model._meta
    # The database itself fills created_at, by its clock, and the generated columns.
    names = ", ".join(
        str(f.column)
        for f in options.local_concrete_fields
        if f.column != "created_at" and not f.generated
    )
    table = options.db_table
    return (
        f"INSERT INTO {table} ({names})"  # noqa: S608 - names come from the model
        f" SELECT {names} FROM json_populate_recordset(NULL::{table}, %({rows})s::json)"
        f" ON CONFLICT ({options.pk.column}) DO NOTHING"
    )


# The CTEs of the statement: `items` and `parents` are the sent rows; `moved` and `moved_parents`
# update them; `called`, `kept`, `reusable` and `found` insert calls, raw replies, replies for later
# records, and results; `counted` and `flagged` count the new calls and the flags of new results;
# `published` marks encounters that have just succeeded. All rows belong to
# the job that the fence has locked, so no other lock is necessary.
@cache
def _statement(table: WorkTable) -> str:
    steps = {
        "items": _rows_of("items", table.table),
        # A late flush never takes a success back.
        "moved": f"UPDATE {table.table} w SET {_assignments(_columns(table))} FROM items r"  # noqa: S608 - names come from the models
        " WHERE w.id = r.id AND (w.status <> 'succeeded' OR r.status = 'succeeded')",
        "called": f"{_insert(ProviderCall, 'calls')} RETURNING {CALL_COLUMNS}",
        "counted": COUNTS_OF_CALLS,
        "kept": _insert(ProviderPayload, "payloads"),
        "reusable": _insert(KeptReply, "kept_replies"),
    }
    if parent := table.encounter_parent:
        steps |= _parents(parent)
    if table.results:
        steps["found"] = _insert(table.results, "results")
        if column := _flags_of(table.results):
            steps["found"] += f" RETURNING {column}"
            steps["flagged"] = counts_of_flags_sql(table.step.value, column)
    return f"WITH {', '.join(f'{name} AS ({sql})' for name, sql in steps.items())} SELECT 1"


def _flags_of(results: type[Model]) -> str | None:
    """Return the column with the review flags of a table of results; None if it has none."""
    names = {field.name for field in results._meta.local_concrete_fields}
    return next((name for name in ("review_flags", "flags") if name in names), None)


def _rows_of(rows: str, table: str) -> str:
    return f"SELECT * FROM json_populate_recordset(NULL::{table}, %({rows})s::json)"  # noqa: S608 - names come from the models


def _parents(parent: ParentTable) -> dict[str, str]:
    """Return the CTEs that update the parents of encounters and publish the succeeded ones."""
    steps = {
        "parents": _rows_of("parents", parent.table),
        "moved_parents": f"UPDATE {parent.table} e SET {_assignments(parent.columns)},"  # noqa: S608 - names come from the models
        " updated_at = clock_timestamp() FROM parents r"
        " WHERE e.id = r.id AND (e.status <> 'succeeded' OR r.status = 'succeeded')"
        f" RETURNING e.{parent.encounter}_id AS encounter_id, e.status",
    }
    if parent.publication:
        steps["published"] = (
            f"UPDATE {Encounter._meta.db_table} h SET {parent.publication} = clock_timestamp()"  # noqa: S608 - names come from the models
            " FROM moved_parents m WHERE h.id = m.encounter_id AND m.status = 'succeeded'"
            f" AND h.{parent.publication} IS NULL"
        )
    return steps
