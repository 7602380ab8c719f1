"""Links from a record back to its list, and to the previous and the next record of the list.

The URL carries the filter as `?in=` and the place of the row as `?at=`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from observability.diagnostics.failures import FailureSource
from observability.listing import records
from observability.listing.pagination import neighbours, place_of
from observability.listing.time_window import asked_for
from observability.views.failures import (
    FailedCallsFilter,
    FailedJobsFilter,
    failed_calls,
    failed_jobs,
)
from pipeline.core.errors import UserError
from pipeline.core.labels import PASS_TITLES
from pipeline.core.states import Step
from pipeline.models import Job, ProviderCall

RECORDS, FAILURES = "records", "failures"
_FIELDS = {
    RECORDS: records.FIELDS,
    FAILURES: ("source", "window", "since", "until", "cause", "step", "model", "state"),
}


@dataclass(frozen=True, kw_only=True)
class ListNavigation:
    """A list, and the links to the previous and the next record."""

    title: str
    url: str
    before: str
    """Empty without a previous record."""
    after: str


def within(name: str, asked: Mapping[str, str]) -> str:
    """Return the filter of a list in the form of `?in=`."""
    fields = {field: asked[field] for field in _FIELDS[name] if asked.get(field)}
    return urlencode({"list": name, **fields})


def list_navigation(asked: Mapping[str, str]) -> ListNavigation | None:
    """Read `?in=` and `?at=`; return None if they name no list."""
    try:
        fields = dict(parse_qsl(asked.get("in", ""), max_num_fields=12))
    except ValueError:
        return None
    name = fields.pop("list", "")
    if name not in _FIELDS:
        return None
    fields = {field: of for field, of in fields.items() if field in _FIELDS[name]}
    try:
        return (_of_records if name == RECORDS else _of_failures)(fields, asked.get("at", ""))
    except UserError:
        return None


def _of_records(fields: Mapping[str, str], place: str) -> ListNavigation:
    chosen = records.chosen(fields)
    before, after = chosen.beside(place)
    said = [fields[field] for field in records.FIELDS if fields.get(field)]
    return ListNavigation(
        title=f"Records{': ' if said else ''}{', '.join(said)}",
        url=f"{reverse('admin:records')}?{urlencode(fields)}",
        before=_to(before, chosen.column, within(RECORDS, fields)),
        after=_to(after, chosen.column, within(RECORDS, fields)),
    )


def _of_failures(fields: Mapping[str, str], place: str) -> ListNavigation:
    period = asked_for(fields, timezone.now())
    query = {**fields, **period.fields}
    rows: QuerySet[Any, Any]
    if fields.get("source") == FailureSource.JOB:
        rows, column = FailedJobsFilter(query, queryset=failed_jobs(period)).qs, "completed_at"
    else:
        rows, column = FailedCallsFilter(query, queryset=failed_calls(period)).qs, "created_at"
    before, after = neighbours(rows, column, place)
    step = fields.get("step", "")
    where = f" in {PASS_TITLES[Step(step)]}" if step in Step.values else ""
    return ListNavigation(
        title=f"Failures: {fields.get('cause') or 'all causes'}{where}",
        url=f"{reverse('admin:failure_members')}?{urlencode(query)}",
        before=_to(before, column, within(FAILURES, query)),
        after=_to(after, column, within(FAILURES, query)),
    )


def _to(row: Job | ProviderCall | None, column: str, inside: str) -> str:
    if row is None:
        return ""
    query = {"in": inside, "at": place_of(row, column)}
    if isinstance(row, Job):
        return f"{reverse('admin:record', args=[row.shell_file_id])}?{urlencode(query)}"
    record_id = row.record_id  # type: ignore[attr-defined]  # annotated by `failed_calls`
    return f"{reverse('admin:record', args=[record_id])}?{urlencode({'node': row.id, **query})}"
