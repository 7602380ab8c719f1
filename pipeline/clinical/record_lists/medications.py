"""The list of medications: what the patient takes or took, with doses and contradictions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pipeline.clinical.record_lists import doses, summaries
from pipeline.clinical.record_lists.items import (
    Contradiction,
    ContradictionKind,
    ListedFact,
    contradiction,
)
from pipeline.clinical.record_lists.statements import is_historical, medication_status

TAKEN = ("active", "changed")
NOT_TAKEN = ("stopped", "on_hold", "not_started")


def summary(affirmed: Sequence[ListedFact], denied: Sequence[ListedFact]) -> dict[str, Any]:
    """Return the regimens of a medication in order, and the current one.

    `current` is the statement of the latest day. It is left out if statements of that day differ:
    then the entry has a contradiction, or the day has several single administrations.
    """
    members = sorted([*affirmed, *denied], key=lambda each: each.position)
    standing = summaries.latest(each for each in members if not _is_planned(each))
    distinct = {json.dumps(_statement(each), sort_keys=True) for each in standing}
    indications = {each.attribute("indication") for each in affirmed} - {None}
    ingredients = {each.attribute("ingredient") for each in affirmed} - {None}
    return summaries.without_empty(
        {
            **summaries.common(affirmed),
            "ingredients": sorted(ingredients),
            "current": _dated(standing[0]) if len(distinct) == 1 else None,
            "regimens": [_dated(each) for each in members],
            "indications": sorted(indications),
        }
    )


def contradictions(
    name: str, affirmed: Sequence[ListedFact], denied: Sequence[ListedFact]
) -> list[Contradiction]:
    """Return statements of one day that exclude each other.

    Parts of a taper or split dose, single administrations and plans are no regimens, so they
    contradict nothing.
    """
    found = []
    current = [each for each in affirmed if not is_historical(each) and not _is_planned(each)]
    for when, members in summaries.by_day(current).items():
        regimens = [each for each in members if _is_regimen(each)]
        found += _two(name, when, regimens)
    for when, members in summaries.by_day([*affirmed, *denied]).items():
        taken = [each for each in members if _is_taken(each)]
        not_taken = [each for each in members if _is_not_taken(each, when)]
        if taken and not_taken:
            words = " and ".join(
                sorted({medication_status(each) or "not taken" for each in (*taken, *not_taken)})
            )
            message = f"{name} is {words} {summaries.on(when)}"
            kind = ContradictionKind.STATUS_CONFLICT
            found.append(contradiction(kind, message, [*taken, *not_taken]))
    return found


def _two(name: str, when: object, regimens: Sequence[ListedFact]) -> list[Contradiction]:
    found = []
    for amounts in doses.comparable(regimens):
        if len(amounts) > 1:
            words = " and ".join(doses.printed(members[0]) for members in amounts.values())
            message = f"{name}: {words} {summaries.on(when)}"
            members = [each for same in amounts.values() for each in same]
            found.append(contradiction(ContradictionKind.TWO_DOSES, message, members))
        for same in amounts.values():
            found += _two_frequencies(name, when, same)
    return found


def _two_frequencies(name: str, when: object, members: Sequence[ListedFact]) -> list[Contradiction]:
    rates: dict[object, list[ListedFact]] = {}
    for each in members:
        if (rate := doses.rate(each)) is not None:
            rates.setdefault(rate, []).append(each)
    if len(rates) < 2:
        return []
    words = " and ".join(str(same[0].attribute("timing", "printed")) for same in rates.values())
    message = f"{name}: {words} {summaries.on(when)}"
    stated = [each for same in rates.values() for each in same]
    return [contradiction(ContradictionKind.TWO_FREQUENCIES, message, stated)]


def _is_planned(fact: ListedFact) -> bool:
    return fact.facts.temporality == "planned" or medication_status(fact) == "planned"


def _is_taken(fact: ListedFact) -> bool:
    return not fact.facts.negated and not is_historical(fact) and medication_status(fact) in TAKEN


def _is_not_taken(fact: ListedFact, when: object) -> bool:
    """Return whether the drug is not taken on the day; a stop on another day says nothing."""
    if not fact.facts.negated and medication_status(fact) not in NOT_TAKEN:
        return False
    stop = fact.attribute("stop")
    return stop is None or str(when).startswith(str(stop))


def _is_regimen(fact: ListedFact) -> bool:
    return (
        medication_status(fact) not in NOT_TAKEN
        and fact.facts.step is None
        and fact.attribute("timing", "count") is None
    )


def _statement(fact: ListedFact) -> dict[str, Any]:
    """Return what the entity says about taking the medication, in comparable form."""
    dose = doses.amount(fact)
    rate = doses.rate(fact)
    return {
        "status": medication_status(fact) or ("not_started" if fact.facts.negated else None),
        "dose": None if dose is None else [str(part) for part in dose],
        "rate": None if rate is None else str(rate),
        "route": fact.attribute("route"),
        "step": fact.facts.step,
    }


def _dated(fact: ListedFact) -> dict[str, Any]:
    """Return one statement for the summary."""
    return summaries.without_empty(
        {
            "date": fact.day.isoformat() if fact.day else None,
            "entity_id": str(fact.entity_id),
            "status": medication_status(fact) or ("not_started" if fact.facts.negated else None),
            "dose": fact.attribute("dose") or (fact.facts.dose and {"printed": fact.facts.dose}),
            "strength": fact.attribute("strength"),
            "daily_dose": fact.attribute("daily_dose"),
            "previous_dose": fact.attribute("previous_dose"),
            "route": fact.attribute("route"),
            "timing": fact.attribute("timing"),
            "step": fact.facts.step,
            "start": fact.attribute("start"),
            "stop": fact.attribute("stop"),
            "historical": is_historical(fact) or None,
            "planned": _is_planned(fact) or None,
            "flags": list(summaries.flags_of(fact)),
        }
    )
