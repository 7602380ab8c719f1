"""The history of a job, kept in `error_details.history`: appended to, never shortened.

Entries are {at, event, by, reason, step, error_code, ...}; `at` is the database's clock. Reasons
are an operator's own words. They are stored here only, and never logged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Func, JSONField, Value
from django.db.models.expressions import Combinable

from pipeline.core.errors import ErrorCode

CRASHED = "crashed"
"""The event of a step that lost its process."""
HUNG = "hung"
"""The event of a horse that hung and was ended by its worker; the crash has the same lease_gen."""

NOTED = (
    "jsonb_set(coalesce({details}, '{{}}'), '{{history}}',"
    " coalesce({details}->'history', '[]') || jsonb_build_array({entry}::jsonb"
    " || jsonb_build_object('at', clock_timestamp())))"
)


def noted_sql(details: str, entry: str) -> str:
    """Return SQL for a job's details with one more entry; `entry` names a JSON parameter."""
    return NOTED.format(details=details, entry=entry)


def noted(entry: Mapping[str, Any], **details: Any) -> Combinable:
    """Return an expression for a job's details with `details` replaced and one more entry."""
    return _Noted(
        F("error_details"),
        Value(details, output_field=JSONField()),
        Value(dict(entry), output_field=JSONField()),
    )


def as_json(entry: Mapping[str, Any]) -> str:
    """Return an entry as a JSON parameter, without unknown values."""
    return json.dumps({key: value for key, value in entry.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class Crash:
    """A step that lost its process."""

    at: str
    """ISO time of the recovery."""
    step: str
    worker_id: str | None
    has_hung: bool
    """Whether the worker ended the process because it hung."""

    @property
    def code(self) -> ErrorCode:
        """WORKER_LOST, or DEADLINE_EXCEEDED for a process that gave no sign of life in time."""
        return ErrorCode.DEADLINE_EXCEEDED if self.has_hung else ErrorCode.WORKER_LOST


def crashes(history: Iterable[Mapping[str, Any]]) -> list[Crash]:
    """Return the crashes in a job's history, oldest first."""
    entries = list(history)
    hung = {entry.get("lease_gen") for entry in entries if entry.get("event") == HUNG}
    return [
        Crash(
            at=entry.get("at") or "",
            step=entry.get("step") or "",
            worker_id=entry.get("worker_id"),
            has_hung=entry.get("lease_gen") in hung,
        )
        for entry in entries
        if entry.get("event") == CRASHED
    ]


class _Noted(Func):
    """`error_details || new keys`, with an entry appended to the history."""

    output_field = JSONField()
    arity = 3
    template = (
        f"(SELECT {noted_sql('kept', 'entry')}"  # noqa: S608 - constants of ours
        " FROM (VALUES (%(expressions)s)) AS of(old, added, entry),"
        " LATERAL (SELECT coalesce(old, '{}') || added AS kept) AS merged)"
    )
