"""The list of problems: the conditions of the patient, with their states and contradictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.clinical.record_lists import summaries
from pipeline.clinical.record_lists.items import (
    Contradiction,
    ContradictionKind,
    ListedFact,
    contradiction,
)
from pipeline.clinical.record_lists.statements import clinical_status, is_historical

_ENDED = ("inactive", "remission", "resolved")


def summary(affirmed: Sequence[ListedFact], denied: Sequence[ListedFact]) -> dict[str, Any]:
    """Return the state of a problem.

    `status` and `severity` come from the latest day that states one, and are None if statements of
    that day differ. `historical` means that every mention places the problem in the past.
    """
    with_status = summaries.latest(each for each in affirmed if clinical_status(each) is not None)
    status = summaries.agreed(with_status, clinical_status)
    severe = summaries.latest(each for each in affirmed if each.attribute("severity"))
    onsets = {each.attribute("onset") for each in affirmed} - {None}
    sites = {each.attribute("body_site") for each in affirmed} - {None}
    return summaries.without_empty(
        {
            **summaries.common(affirmed),
            "historical": all(is_historical(each) for each in affirmed) or None,
            "status": status,
            "status_date": _day(with_status) if status else None,
            "severity": summaries.agreed(severe, lambda each: each.attribute("severity")),
            "onsets": sorted(onsets),
            "laterality": summaries.agreed(affirmed, lambda each: each.attribute("laterality")),
            "body_sites": sorted(sites),
            "denied": len(denied) or None,
        }
    )


def contradictions(
    name: str, affirmed: Sequence[ListedFact], denied: Sequence[ListedFact]
) -> list[Contradiction]:
    """Return statements of one day that exclude each other.

    A past problem may be absent today, so past and present statements never contradict each other.
    """
    found = []
    denials = summaries.by_day(denied)
    for when, members in summaries.by_day(affirmed).items():
        for past in (False, True):
            stated = [each for each in members if is_historical(each) is past]
            against = [each for each in denials.get(when, ()) if is_historical(each) is past]
            if stated and against:
                message = f"{name} is affirmed and denied {summaries.on(when)}"
                kind = ContradictionKind.AFFIRMED_AND_DENIED
                found.append(contradiction(kind, message, [*stated, *against]))
        statuses = {
            each: status for each in members if (status := clinical_status(each)) is not None
        }
        if len({status in _ENDED for status in statuses.values()}) > 1:
            words = " and ".join(sorted(set(statuses.values())))
            message = f"{name} is {words} {summaries.on(when)}"
            found.append(contradiction(ContradictionKind.STATUS_CONFLICT, message, list(statuses)))
    return found


def _day(members: Sequence[ListedFact]) -> str | None:
    day = members[0].day if members else None
    return day.isoformat() if day else None
