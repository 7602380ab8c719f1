"""The words of a list entry: what its summary says, in one line for people.

The keys of the summaries are those of `pipeline.clinical.record_lists`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipeline.core.labels import counted

RESULTS_SHOWN = 6
"""Results of a laboratory series that the line names, the newest ones."""

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
        "historical" if summary.get("historical") else None,
        f"since {summary['onset']}" if summary.get("onset") else None,
    ]
    return ", ".join(filter(None, parts))


def _medication(summary: Summary) -> str:
    current: Summary = summary.get("current") or {}
    parts = [
        _printed(current.get("dose")),
        current.get("route"),
        _printed(current.get("timing")),
    ]
    said = " ".join(filter(None, parts))
    status = current.get("status")
    when = f" on {current['date']}" if current.get("date") else ""
    return "; ".join(filter(None, (said, f"{status}{when}" if status else "")))


def _allergy(summary: Summary) -> str:
    reactions = [each["reaction"] for each in summary.get("reactions", ()) if each.get("reaction")]
    return "; ".join(filter(None, (", ".join(reactions), summary.get("severity"))))


def _lab_series(summary: Summary) -> str:
    groups = (
        f"{_results(group['values'])} {group.get('unit') or ''}".strip()
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
    when = f" ({value['date']})" if value.get("date") else ""
    return f"{value.get('printed') or value.get('text') or ''}{mark}{when}"


def _printed(part: object) -> str | None:
    return part.get("printed") if isinstance(part, dict) else None


_WORDS: dict[str, Callable[[Summary], str]] = {
    "problem": _problem,
    "medication": _medication,
    "allergy": _allergy,
    "lab_series": _lab_series,
}
