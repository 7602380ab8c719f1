"""The list of allergies, with reactions, and with statements that contradict an allergy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pipeline.clinical.record_lists import summaries
from pipeline.clinical.record_lists.items import (
    Contradiction,
    ContradictionKind,
    ListedFact,
    contradiction,
)
from pipeline.clinical.record_lists.medications import TAKEN
from pipeline.clinical.record_lists.statements import is_historical, medication_status
from pipeline.clinical.record_lists.subjects import drug_name, normalised


@dataclass(frozen=True, kw_only=True)
class NoDrugAllergies:
    """The encounters that state `no known drug allergies`, and the allergens that are drugs."""

    days: Sequence[date | None]
    """First day of each such encounter."""
    drugs: frozenset[str]
    """Names of allergens, as `normalised` gives them. `NKDA` says nothing about food or latex."""


def summary(affirmed: Sequence[ListedFact], denied: Sequence[ListedFact]) -> dict[str, Any]:
    """Return the reactions, each with its days, and the severity if all statements agree."""
    reactions: dict[str, list[ListedFact]] = {}
    for each in affirmed:
        if reaction := _reaction(each):
            reactions.setdefault(reaction, []).append(each)
    return summaries.without_empty(
        {
            **summaries.common(affirmed),
            "reactions": [
                {"reaction": name, **_seen(members)} for name, members in sorted(reactions.items())
            ],
            "severity": summaries.agreed(affirmed, lambda each: each.attribute("severity")),
            "status": summaries.agreed(
                summaries.latest(each for each in affirmed if each.attribute("clinical_status")),
                lambda each: each.attribute("clinical_status"),
            ),
            "denied": len(denied) or None,
        }
    )


def contradictions(
    name: str,
    affirmed: Sequence[ListedFact],
    denied: Sequence[ListedFact],
    taken: Mapping[str, Sequence[ListedFact]],
) -> list[Contradiction]:
    """Return denials of the allergy on any day, and medications that contain its substance.

    `taken` has the result of `taken_by_substance`. A drug that was taken before the first day of
    the allergy can be the cause of the allergy, so only later days contradict.
    """
    found = []
    if denied:
        message = f"{name}: an allergy is stated and denied"
        kind = ContradictionKind.ALLERGIC_AND_TOLERATED
        found.append(contradiction(kind, message, [*affirmed, *denied]))
    first = _first_day(affirmed)
    keys = {key for each in affirmed for key in _substances(each)}
    members = {
        each.entity_id: each
        for key in keys
        for each in taken.get(key, ())
        if first is None or each.day is None or each.day >= first
    }
    if members:
        names = " and ".join(sorted({each.facts.name for each in members.values()}))
        message = f"{name}: an allergy is stated, and {names} is taken"
        kind = ContradictionKind.ALLERGIC_AND_TAKEN
        found.append(contradiction(kind, message, [*affirmed, *members.values()]))
    return found


def without_allergies(
    name: str, affirmed: Sequence[ListedFact], stated: NoDrugAllergies
) -> list[Contradiction]:
    """Return statements of no known drug allergies, on or after the first day of the allergy."""
    if not stated.drugs & {key for each in affirmed for key in _substances(each)}:
        return []
    first = _first_day(affirmed)
    days = [day for day in stated.days if first is None or day is None or day >= first]
    if not days:
        return []
    known = sorted({day.isoformat() for day in days if day is not None})
    when = f" on {', '.join(known)}" if known else ""
    message = f"{name}: an allergy is stated, and no known drug allergies{when}"
    return [contradiction(ContradictionKind.ALLERGIC_AND_TOLERATED, message, affirmed)]


def _first_day(facts: Sequence[ListedFact]) -> date | None:
    """Return the first day of some facts; None if one of them has no day."""
    days = [each.day for each in facts]
    return None if None in days else min(day for day in days if day is not None)


def taken_by_substance(medications: Sequence[ListedFact]) -> dict[str, list[ListedFact]]:
    """Return the medications that the patient takes, by code and by name of the substance."""
    found: dict[str, list[ListedFact]] = {}
    for each in medications:
        status = medication_status(each)
        single = each.attribute("timing", "count") is not None
        if is_historical(each) or not (status in TAKEN or (status is None and single)):
            continue
        ingredient = each.attribute("ingredient")
        keys = {drug_name(each.facts.name, ingredient), normalised(ingredient or each.facts.name)}
        if each.facts.code and each.facts.code.startswith("UNII|"):
            keys.add(each.facts.code)
        for key in keys:
            found.setdefault(key, []).append(each)
    return found


def _substances(fact: ListedFact) -> set[str]:
    keys = {normalised(fact.attribute("substance") or fact.facts.name), normalised(fact.facts.name)}
    if fact.facts.code and fact.facts.code.startswith("UNII|"):
        keys.add(fact.facts.code)
    return keys


def _reaction(fact: ListedFact) -> str | None:
    reaction = fact.attribute("reaction") or fact.facts.reaction
    return normalised(str(reaction)) if reaction else None


def _seen(members: Sequence[ListedFact]) -> dict[str, Any]:
    days = sorted({each.day.isoformat() for each in members if each.day})
    return {"dates": days, "entity_ids": [str(each.entity_id) for each in members]}
