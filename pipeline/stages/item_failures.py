"""The failure of a step whose work items have no parent: the first failed item, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.core.errors import ErrorCode
from pipeline.core.labels import counted, ended_with, pages
from pipeline.core.states import WorkStatus
from pipeline.models.work_item import WorkItem
from pipeline.models.work_tables import table_of
from pipeline.transitions import Failure


def failure_of_items(items: Sequence[WorkItem]) -> Failure | None:
    """Return the failure of the first failed item by its pages; None if no item has failed."""
    failed = sorted(
        (item for item in items if item.status == WorkStatus.FAILED),
        key=lambda item: (item.page_range_start, item.number_in_encounter or 0),
    )
    if not failed:
        return None
    first = failed[0]
    table = table_of(type(first))
    where = pages(range(first.page_range_start, first.page_range_end + 1))
    why = ended_with(first.error_code, first.error_message, first.error_context)
    context: dict[str, Any] = first.error_context or {}
    code = ErrorCode(first.error_code or ErrorCode.INTERNAL_ERROR)
    return Failure(
        code=code,
        message=f"{table.noun} {table.number_of(first) + 1} ({where}): {why};"
        f" {len(failed)} of {counted(len(items), table.noun)} failed",
        encounter_id=first.encounter_id,
        batch_index=first.number_in_encounter,
        underlying=ErrorCode(context.get("final_underlying_error", code)),
        attempt_history=context.get("attempt_history", []),
    )
