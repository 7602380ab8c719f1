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

    An earlier result without a day of its own has no day: the encounter's day would be wrong.
    """
    effective = fact.attribute("effective")
    if effective:
        return str(effective)
    if fact.facts.entity_date is not None:
        return fact.facts.entity_date.isoformat()
    if fact.facts.temporality == "historical" or fact.facts.encounter_date is None:
        return None
    return fact.facts.encounter_date.isoformat()


def _in_time(members: Sequence[ListedFact]) -> list[ListedFact]:
    return sorted(members, key=lambda each: (day_of(each) or "9999", each.position))


def _value(fact: ListedFact) -> dict[str, Any]:
    flags = list(summaries.flags_of(fact))
    return summaries.without_empty(
        {
            "date": day_of(fact),
            "entity_id": str(fact.entity_id),
            "number": fact.attribute("value", "number"),
            "comparator": fact.attribute("value", "comparator"),
            "text": fact.attribute("value_text"),
            "printed": fact.facts.value,
            "flag": fact.attribute("computed_flag") or fact.attribute("printed_flag"),
            "flags": flags,
        }
    )
