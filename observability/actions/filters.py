"""The filter of a bulk operation: parsed from a URL, and written back in the form to store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from observability.listing.time_window import asked_for, moment
from observability.models import BulkItem
from pipeline.core.errors import ErrorCode, UserError, UserErrorCode
from pipeline.core.labels import WORDS, StatusWord, duration
from pipeline.core.states import JobStatus, Step
from pipeline.models import Job
from pipeline.operations.preview import Selection
from pipeline.operations.preview.bulk_selection import BulkSelection

IDS = ("record", "job", "encounter", "item", "incident")
SHORTEST_STALE_S = 60.0
"""A later limit would reset jobs of workers that have only just lost their lease."""
FAILED = frozenset({JobStatus.FAILED, JobStatus.DEAD})
"""The states of a failed job."""
_STATUSES = {
    WORDS[status]: status for status in (JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.PARKED)
}
LONGEST_STALE_S = 30 * 86_400.0


def selection(asked: Mapping[str, str], now: datetime) -> Selection:
    """Parse a selection; `window` counts back from now, and later failures never match.

    Raises UserError if the filter names nothing that can be retried.
    """
    try:
        given: dict[str, Any] = {name: UUID(asked[name]) for name in IDS if asked.get(name)}
        if code := asked.get("error_code"):
            given["error_code"] = ErrorCode(code)
        if step := asked.get("step"):
            given["step"] = Step(step)
        if operation := asked.get("operation"):
            given["jobs"] = failed_again(UUID(operation))
        # An id names existing rows; a time limit could only hide some of them.
        if "error_code" in given:
            given["model"] = asked.get("model") or None
            if asked.get("window") or asked.get("since"):
                given["since"] = asked_for(asked, now).since
            given["until"] = moment(asked["until"]) if asked.get("until") else now
        return Selection(**given)
    except (ValueError, TypeError):
        raise UserError(
            "this filter names nothing that can be retried", code=UserErrorCode.VALUE_INVALID
        ) from None


def failed_again(operation_id: UUID) -> tuple[UUID, ...]:
    """Return the jobs of a bulk operation that have failed again or were skipped."""
    items = BulkItem.objects.filter(
        operation_id=operation_id, state__in=[BulkItem.DONE, BulkItem.FAILED]
    )
    failed = Job.objects.filter(status__in=FAILED, id__in=items.values("job_id"))
    return tuple(failed.order_by("created_at", "id").values_list("id", flat=True))


def as_fields(chosen: Selection) -> dict[str, str]:
    """Return a selection as the fields that `selection` parses, without an operation's jobs."""
    names = (*IDS, "error_code", "step", "model")
    found: dict[str, Any] = {name: getattr(chosen, name) for name in names}
    fields = {name: str(value) for name, value in found.items() if value is not None}
    for name in ("since", "until"):
        if (at := getattr(chosen, name)) is not None:
            fields[name] = at.isoformat()
    return fields


def bulk_selection(action: str, asked: Mapping[str, str], now: datetime) -> BulkSelection:
    """Parse the jobs of a bulk action; the field `is` holds a status word.

    Raises UserError if the filter names no jobs.
    """
    try:
        given: dict[str, Any] = {
            name: UUID(asked[name]) for name in ("job", "incident") if asked.get(name)
        }
        if word := asked.get("is"):
            given["status"] = _STATUSES[StatusWord(word)]
        if step := asked.get("step"):
            given["step"] = Step(step)
        if code := asked.get("error_code"):
            given["error_code"] = ErrorCode(code).value
        if older := asked.get("older"):
            given["older_s"] = _age(older)
        given["until"] = moment(asked["until"]) if asked.get("until") else now
    except (ValueError, TypeError, KeyError):
        raise UserError("this filter names no jobs", code=UserErrorCode.VALUE_INVALID) from None
    return BulkSelection(action=action, **given)


def _age(text: str) -> float:
    seconds = float(text)
    if not math.isfinite(seconds) or not 0 <= seconds <= LONGEST_STALE_S:
        raise UserError(
            "give an age of at most 30 days, in seconds", code=UserErrorCode.VALUE_INVALID
        )
    return max(SHORTEST_STALE_S, seconds)


def selection_fields(chosen: BulkSelection) -> dict[str, str]:
    """Return a bulk selection as the fields that `bulk_selection` parses."""
    given = {
        "job": chosen.job,
        "incident": chosen.incident,
        "is": WORDS[chosen.status] if chosen.status else None,
        "step": chosen.step,
        "error_code": chosen.error_code,
        "older": f"{chosen.older_s:g}" if chosen.action == "reset" else None,
        "until": chosen.until.isoformat() if chosen.until else None,
    }
    return {name: str(value) for name, value in given.items() if value is not None}


def in_words(fields: Mapping[str, str]) -> str:
    """Describe a selection for people: `API_5XX, pass1, since 02:41`."""
    said = [f"{name} {fields[name][:8]}" for name in (*IDS, "operation") if name in fields]
    said += [fields[name] for name in ("is", "error_code", "step", "model") if name in fields]
    if "older" in fields:
        said.append(f"untouched for {duration(float(fields['older']))}")
    for name in ("since", "until"):
        if name in fields:
            said.append(f"{name} {datetime.fromisoformat(fields[name]):%Y-%m-%d %H:%M:%S}")
    return ", ".join(said) or "all"
