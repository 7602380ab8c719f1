"""Parts of a summary that every list has: names, dates, flags, the latest statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any, TypeVar

from pipeline.clinical.record_lists.items import ListedFact

T = TypeVar("T")


def common(members: Sequence[ListedFact]) -> dict[str, Any]:
    """Return the names, the first and last day, the number of mentions and the flags."""
    days = sorted(each.day for each in members if each.day is not None)
    flags = {flag for each in members for flag in flags_of(each)}
    return {
        "names": sorted({each.facts.name for each in members}),
        "first_seen": days[0].isoformat() if days else None,
        "last_seen": days[-1].isoformat() if days else None,
        "mentions": len(members),
        "flags": sorted(flags),
    }


def flags_of(fact: ListedFact) -> tuple[str, ...]:
    """Return the flags of both passes."""
    return (*fact.facts.review_flags, *fact.facts.flags)


def name_of(members: Sequence[ListedFact]) -> str:
    """Return the most frequent printed name; between equals, the shortest, then the alphabet."""
    counts = Counter(each.facts.name.casefold() for each in members)
    best = min(counts, key=lambda name: (-counts[name], len(name), name))
    return min(each.facts.name for each in members if each.facts.name.casefold() == best)


def latest(members: Iterable[ListedFact]) -> list[ListedFact]:
    """Return the members of the latest day, or of the last encounter if no member has a day."""
    known = list(members)
    dated = [each for each in known if each.day is not None]
    if dated:
        last = max(each.day for each in dated if each.day is not None)
        return [each for each in dated if each.day == last]
    if not known:
        return []
    place = max(each.encounter_index for each in known)
    return [each for each in known if each.encounter_index == place]


def agreed(members: Iterable[ListedFact], read: Callable[[ListedFact], T | None]) -> T | None:
    """Return the value that all members state; None if they differ or state nothing."""
    agreed_value: T | None = None
    for each in members:
        value = read(each)
        if value is None or value == agreed_value:
            continue
        if agreed_value is not None:
            return None
        agreed_value = value
    return agreed_value


def by_day(members: Iterable[ListedFact]) -> dict[Any, list[ListedFact]]:
    """Return the members of each day; members without a day are grouped by their encounter.

    The statements of a stay without days of their own are one group: the reader of the list sees
    that they differ, and decides whether the treatment changed.
    """
    groups: dict[Any, list[ListedFact]] = {}
    for each in members:
        groups.setdefault(each.stated_day or each.encounter_id, []).append(each)
    return groups


def on(when: object) -> str:
    """Return the day for a message."""
    return f"on {when.isoformat()}" if isinstance(when, date) else "in one encounter"


def without_empty(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the summary without parts that say nothing."""
    return {key: value for key, value in summary.items() if value not in (None, [], "", {})}
