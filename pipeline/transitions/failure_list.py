"""The list of everything that a record lost when its job ended without success.

The list is read from the rows, so that it is complete after every kind of end: a failed encounter,
a deadline, a cancellation, a lost worker or an internal error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pipeline.core.states import Step, WorkStatus
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import WORK_TABLES, WorkTable


@dataclass(frozen=True, kw_only=True)
class LostWork:
    """What a record lost in the pass in which its job ended."""

    entries: list[dict[str, Any]]
    """`error_drill_down.failures`, lowest page first; never empty."""
    encounter_id: UUID | None = None
    """The encounter at which the pass ended: the first with begun work, or else the first."""
    batch_index: int | None = None


def lost_work(
    shell_file_id: UUID, step: Step, code: str, underlying: str | None = None
) -> LostWork:
    """Return the failed and the unfinished work of a pass, with `code` for unfinished work.

    A pass without work items has one entry for the whole record.
    """
    table = WORK_TABLES.get(step)
    items = _open_items(table, shell_file_id) if table else []
    entries = [_item_entry(table, item, code) for item in items] if table else []
    if table and table.encounter:
        entries += _unpublished(table, shell_file_id, items, code)
    if not entries:
        whole = {"pages": None, "error_code": code, "underlying_error": underlying or code}
        entries = [{"encounter_id": None, "batch_index": None, **whole, "attempts": 0}]
    stopped = next((item for item in items if item.started_at), items[0] if items else None)
    return LostWork(
        entries=entries,
        encounter_id=stopped.encounter_id if stopped else _encounter_of(entries[0]),
        batch_index=stopped.number_in_encounter if stopped else None,
    )


def _item_entry(table: WorkTable, item: WorkItem, code: str) -> dict[str, Any]:
    """Return the entry of a work item; `code` is the reason for an item that has not failed."""
    history = item.failure_history
    last = history[-1]["error_code"] if history else code
    has_failed = item.error_code is not None
    of = item.encounter_id
    encounter = {"encounter_id": str(of) if of else None} if table.encounter else {}
    return {
        **encounter,
        table.index: table.number_of(item),
        "pages": [item.page_range_start, item.page_range_end],
        "error_code": item.error_code if has_failed else code,
        "underlying_error": (item.error_context or {}).get("final_underlying_error")
        if has_failed
        else last,
        "attempts": item.attempt_count,
    }


def _open_items(table: WorkTable, shell_file_id: UUID) -> list[WorkItem]:
    rows = table.rows.filter(**{table.record: shell_file_id}).exclude(status=WorkStatus.SUCCEEDED)
    return list(rows.defer(*table.unread).order_by("page_range_start", table.index))


def _unpublished(
    table: WorkTable, shell_file_id: UUID, items: Sequence[WorkItem], code: str
) -> list[dict[str, Any]]:
    """Return encounters that have all their replies, but that are not published."""
    parent = table.encounter_parent
    listed = {item.encounter_id for item in items}
    named: Iterable[tuple[UUID | None, str | None]]
    if parent:
        rows = parent.rows.filter(shell_file_id=shell_file_id).exclude(status=WorkStatus.SUCCEEDED)
        named = rows.order_by("id").values_list(f"{parent.encounter}_id", "error_code")
    else:
        # The publication of an encounter clears the outputs of its items.
        kept = table.rows.filter(
            **{table.record: shell_file_id}, status=WorkStatus.SUCCEEDED, output__isnull=False
        )
        of = kept.order_by("page_range_start", table.index).values_list(
            f"{table.encounter}_id", flat=True
        )
        named = [(encounter_id, None) for encounter_id in dict.fromkeys(of)]
    return [
        {
            "encounter_id": str(encounter_id) if encounter_id else None,
            table.index: None,
            "pages": None,
            "error_code": own or code,
            "underlying_error": own or code,
            "attempts": 0,
        }
        for encounter_id, own in named
        if encounter_id not in listed
    ]


def _encounter_of(entry: dict[str, Any]) -> UUID | None:
    named = entry.get("encounter_id")
    return UUID(named) if named else None
