"""The history of a job, kept in `error_details.history`: appended to, never shortened.

Entries are {at, event, by, reason, step, error_code, ...}; `at` is the database's clock. Reasons
are an operator's own words. They are stored here only, and never logged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.db.models import F, Func, JSONField, Value
from django.db.models.expressions import Combinable

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


class _Noted(Func):
    """`error_details || new keys`, with an entry appended to the history."""

    output_field = JSONField()
    arity = 3
    template = (
        f"(SELECT {noted_sql('kept', 'entry')}"  # noqa: S608 - constants of ours
        " FROM (VALUES (%(expressions)s)) AS of(old, added, entry),"
        " LATERAL (SELECT coalesce(old, '{}') || added AS kept) AS merged)"
    )
