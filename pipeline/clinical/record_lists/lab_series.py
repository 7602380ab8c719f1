"""One series per analyte: its results in the order of their days, in groups of one unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.clinical.record_lists import summaries
from pipeline.clinical.record_lists.items import ListedFact
from pipeline.clinical.record_lists.subjects import unit_of


def summary(results: Sequence[ListedFact]) -> dict[str, Any]:
    """Return the groups of a series. Results of two units never share a group.

    A result without a day comes last in its group. `value` keeps the printed text of a result that
    is no number.
    """
    groups: dict[str, list[ListedFact]] = {}
    for each in results:
        groups.setdefault(unit_of(each) or "", []).append(each)
    return summaries.without_empty(
        {
            **summaries.common(results),
            "groups": [
                {"unit": unit or None, "values": [_value(each) for each in _in_time(members)]}
                for unit, members in sorted(groups.items())
            ],
        }
    )


def day_of(fact: ListedFact) -> str | None:
    """Return the day of a result: the stated day, otherwise the day of the encounter.

    An earlier result without a day of its own has no day: the encounter's day would be wrong. A
    result of a stay has none either, because nothing says on which day of the stay.
    """
    effective = fact.attribute("effective")
    if effective:
        return str(effective)
    if fact.facts.entity_date is None and fact.facts.temporality == "historical":
        return None
    return fact.stated_day.isoformat() if fact.stated_day else None


def _in_time(members: Sequence[ListedFact]) -> list[ListedFact]:
    return sorted(members, key=lambda each: (day_of(each) or _first_day(each), each.position))


def _first_day(fact: ListedFact) -> str:
    """Return the first day of the stay of a result; a result without any day comes last."""
    is_earlier = fact.facts.temporality == "historical" or fact.day is None
    return "9999" if is_earlier else f"{fact.day}"


def _stay(fact: ListedFact) -> str | None:
    """Return the days of the stay of a result without a day of its own."""
    if day_of(fact) or fact.facts.temporality == "historical" or fact.encounter_end is None:
        return None
    return f"{fact.facts.encounter_date} to {fact.encounter_end}"


def _value(fact: ListedFact) -> dict[str, Any]:
    flags = list(summaries.flags_of(fact))
    return summaries.without_empty(
        {
            "date": day_of(fact),
            "stay": _stay(fact),
            "entity_id": str(fact.entity_id),
            "number": fact.attribute("value", "number"),
            "comparator": fact.attribute("value", "comparator"),
            "text": fact.attribute("value_text"),
            "printed": fact.facts.value,
            "flag": fact.attribute("computed_flag") or fact.attribute("printed_flag"),
            "flags": flags,
        }
    )
