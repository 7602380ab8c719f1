"""The words of a list entry: what its summary says, in one line for people.

The keys of the summaries are those of `pipeline.clinical.record_lists`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from observability.phi.attribute_words import unit_words
from pipeline.core.labels import counted

RESULTS_SHOWN = 6
"""Results of a laboratory series that the line names, the newest ones."""
REGIMENS_SHOWN = 4
"""Statements about a medication that the line names, the newest ones."""

Summary = Mapping[str, Any]


def words_of(kind: str, summary: Summary) -> str:
    """Return what an entry says; "" if the entry says nothing beside its name."""
    return _WORDS[kind](summary)


def seen(summary: Summary) -> str:
    """Return the first and the last day of an entry: `2024-03-11 to 2024-07-09`."""
    first, last = summary.get("first_seen"), summary.get("last_seen")
    if not first or first == last:
        return str(first or "")
    return f"{first} to {last}"


def _problem(summary: Summary) -> str:
    parts = [
        summary.get("status"),
        summary.get("severity"),
        summary.get("laterality"),
        "historical" if summary.get("historical") else None,
        f"since {' or '.join(summary['onsets'])}" if summary.get("onsets") else None,
        _denied(summary),
    ]
    return ", ".join(filter(None, parts))


def _medication(summary: Summary) -> str:
    if current := summary.get("current"):
        return _regimen(current)
    # Statements of the latest day differ, so each statement is shown.
    said = tuple(dict.fromkeys(filter(None, map(_regimen, summary.get("regimens", ())))))
    more = f" | {len(said) - REGIMENS_SHOWN} more" if len(said) > REGIMENS_SHOWN else ""
    return " | ".join(said[-REGIMENS_SHOWN:]) + more


def _regimen(said: Summary) -> str:
    strength = ", ".join(filter(None, map(_printed, said.get("strength") or ())))
    parts = [
        f"step {said['step']}:" if said.get("step") else None,
        _printed(said.get("dose")) or (f"strength {strength}" if strength else None),
        said.get("route"),
        _printed(said.get("timing")),
    ]
    taken = " ".join(filter(None, parts))
    marks = [mark for mark in ("historical", "planned") if said.get(mark)]
    status = ", ".join(dict.fromkeys(filter(None, (str(said.get("status") or ""), *marks))))
    status = status.replace("_", " ")
    when = f" on {said['date']}" if said.get("date") and (status or taken) else ""
    return "; ".join(filter(None, (taken, status))) + when


def _allergy(summary: Summary) -> str:
    reactions = [each["reaction"] for each in summary.get("reactions", ()) if each.get("reaction")]
    parts = (", ".join(reactions), summary.get("severity"), summary.get("status"), _denied(summary))
    return "; ".join(filter(None, parts))


def _denied(summary: Summary) -> str | None:
    times = summary.get("denied")
    return f"denied in {counted(times, 'other statement')}" if times else None


def _lab_series(summary: Summary) -> str:
    groups = (
        f"{_results(group['values'])} {unit_words(group.get('unit') or '')}".strip()
        for group in summary.get("groups", ())
    )
    return " | ".join(groups)


def _results(values: Sequence[Summary]) -> str:
    shown = values[-RESULTS_SHOWN:]
    earlier = len(values) - len(shown)
    said = ", ".join(_result(each) for each in shown)
    return f"{counted(earlier, 'earlier result')}, {said}" if earlier else said


def _result(value: Summary) -> str:
    flag = value.get("flag")
    mark = f" {flag}" if flag and flag != "N" else ""
    day = value.get("date") or value.get("stay")
    when = f" ({day})" if day else ""
    return f"{value.get('printed') or value.get('text') or ''}{mark}{when}"


def _printed(part: object) -> str | None:
    return part.get("printed") if isinstance(part, dict) else None


_WORDS: dict[str, Callable[[Summary], str]] = {
    "problem": _problem,
    "medication": _medication,
    "allergy": _allergy,
    "lab_series": _lab_series,
}
