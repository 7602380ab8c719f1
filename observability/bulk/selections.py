"""A filter in a URL, and the same one as it is kept. Imports the pipeline's Selection and Crowd."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from observability.periods import asked_for, moment
from pipeline.errors import ErrorCode, UserError
from pipeline.preview import Selection
from pipeline.preview.crowds import Crowd
from pipeline.states import JobStatus, Step
from pipeline.words import WORDS, Word, duration

IDS = ("record", "job", "encounter", "batch", "incident")
SHORTEST_STALE_S = 60.0
"""A reset of what was touched later would meet workers that have just lost their lease."""


def selection(asked: Mapping[str, str], now: datetime) -> Selection:
    """Read a selection; `window` counts back from now, and nothing that fails later joins it.

    Raises UserError where it names nothing that can be retried.
    """
    try:
        given: dict[str, Any] = {name: UUID(asked[name]) for name in IDS if asked.get(name)}
        if code := asked.get("error_code"):
            given["error_code"] = ErrorCode(code)
        if step := asked.get("step"):
            given["step"] = Step(step)
        # An id names rows that exist; a time would only hide some of them.
        if "error_code" in given:
            given["model"] = asked.get("model") or None
            if asked.get("window") or asked.get("since"):
                given["since"] = asked_for(asked, now).since
            given["until"] = moment(asked["until"]) if asked.get("until") else now
        return Selection(**given)
    except (ValueError, TypeError):
        raise UserError("this filter names nothing that can be retried") from None


def as_fields(chosen: Selection) -> dict[str, str]:
    """Return a selection as the fields that `selection` reads."""
    names = (*IDS, "error_code", "step", "model")
    found: dict[str, Any] = {name: getattr(chosen, name) for name in names}
    fields = {name: str(value) for name, value in found.items() if value is not None}
    for name in ("since", "until"):
        if (at := getattr(chosen, name)) is not None:
            fields[name] = at.isoformat()
    return fields


def crowd(verb: str, asked: Mapping[str, str], now: datetime) -> Crowd:
    """Read which jobs a verb about many is for; `is` is the word of a status.

    Raises UserError where it names none.
    """
    try:
        given: dict[str, Any] = {
            name: UUID(asked[name]) for name in ("job", "incident") if asked.get(name)
        }
        if word := asked.get("is"):
            given["status"] = _STATUSES[Word(word)]
        if step := asked.get("step"):
            given["step"] = Step(step)
        if code := asked.get("error_code"):
            given["error_code"] = ErrorCode(code).value
        if older := asked.get("older"):
            given["older_s"] = max(SHORTEST_STALE_S, float(older))
        given["until"] = moment(asked["until"]) if asked.get("until") else now
    except (ValueError, TypeError, KeyError):
        raise UserError("this filter names no jobs") from None
    return Crowd(verb=verb, **given)


def crowd_fields(chosen: Crowd) -> dict[str, str]:
    """Return a crowd as the fields that `crowd` reads."""
    given = {
        "job": chosen.job,
        "incident": chosen.incident,
        "is": WORDS[chosen.status] if chosen.status else None,
        "step": chosen.step,
        "error_code": chosen.error_code,
        "older": f"{chosen.older_s:g}" if chosen.verb == "reset" else None,
        "until": chosen.until.isoformat() if chosen.until else None,
    }
    return {name: str(value) for name, value in given.items() if value is not None}


_STATUSES = {
    WORDS[status]: status for status in (JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.PARKED)
}


def in_words(fields: Mapping[str, str]) -> str:
    """Say a selection to people: `API_5XX, pass1, since 02:41`."""
    said = [f"{name} {fields[name][:8]}" for name in IDS if name in fields]
    said += [fields[name] for name in ("is", "error_code", "step", "model") if name in fields]
    if "older" in fields:
        said.append(f"untouched for {duration(float(fields['older']))}")
    for name in ("since", "until"):
        if name in fields:
            said.append(f"{name} {datetime.fromisoformat(fields[name]):%Y-%m-%d %H:%M:%S}")
    return ", ".join(said) or "all"
