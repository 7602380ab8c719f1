"""Builds the lists of a record from its entities.

The result does not depend on the order of the input. Time grows with n log n.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pipeline.clinical.record_lists import allergies, lab_series, medications, problems
from pipeline.clinical.record_lists.allergies import NoDrugAllergies
from pipeline.clinical.record_lists.exclusions import Notes, excluded_pairs
from pipeline.clinical.record_lists.items import (
    Contradiction,
    ContradictionKind,
    ListedFact,
    ListItem,
    ListKind,
    contradiction,
)
from pipeline.clinical.record_lists.statements import (
    KINDS,
    ListStatement,
    is_historical,
    statement_of,
)
from pipeline.clinical.record_lists.subjects import group, normalised, subjects
from pipeline.clinical.record_lists.summaries import name_of

_ICD = "ICD10CM"


def record_lists(
    facts: Sequence[ListedFact],
    notes: Notes | None = None,
    no_drug_allergies: NoDrugAllergies | None = None,
) -> list[ListItem]:
    """Return the entries of all lists: problems, medications, allergies, lab series.

    Only accepted entities of the patient support an entry. A denied fact never makes an entry, but
    it supports a contradiction. Entities with flags of Pass 2 are listed with their flags. `notes`
    has the Excludes1 notes of the codes, without the system. `no_drug_allergies` names the
    encounters that state `no known drug allergies`.
    """
    stated = [(fact, said) for fact in facts if (said := statement_of(fact)) is not None]
    of_kind: dict[ListKind, dict[ListedFact, ListStatement]] = {kind: {} for kind in ListKind}
    for fact, said in stated:
        of_kind[KINDS[fact.facts.category]][fact] = said
    affirmed_drugs = [
        fact
        for fact, said in of_kind[ListKind.MEDICATION].items()
        if said is ListStatement.AFFIRMED
    ]
    taken = allergies.taken_by_substance(affirmed_drugs)
    found: list[ListItem] = []
    for kind in ListKind:
        items = [
            item
            for members in group(subjects(of_kind[kind])).values()
            if (item := _item(kind, members, of_kind[kind], taken, no_drug_allergies)) is not None
        ]
        if kind is ListKind.PROBLEM and notes:
            items = _with_excluded_codes(items, of_kind[kind], notes)
        facts_of = {fact.entity_id: fact for fact in of_kind[kind]}
        # Two series of one name and one code keep the order of the record.
        found += sorted(
            items,
            key=lambda item: (
                normalised(item.name),
                item.code or "",
                facts_of[item.entity_ids[0]].position,
            ),
        )
    return found


def _item(
    kind: ListKind,
    members: Sequence[ListedFact],
    said: dict[ListedFact, ListStatement],
    taken: dict[str, list[ListedFact]],
    no_drug_allergies: NoDrugAllergies | None,
) -> ListItem | None:
    affirmed = [each for each in members if said[each] is ListStatement.AFFIRMED]
    denied = [each for each in members if said[each] is ListStatement.DENIED]
    if not affirmed:
        return None
    name = name_of(affirmed)
    contradictions: list[Contradiction] = []
    summary: dict[str, Any]
    if kind is ListKind.PROBLEM:
        summary = problems.summary(affirmed, denied)
        contradictions = problems.contradictions(name, affirmed, denied)
    elif kind is ListKind.MEDICATION:
        summary = medications.summary(affirmed, denied)
        contradictions = medications.contradictions(name, affirmed, denied)
    elif kind is ListKind.ALLERGY:
        summary = allergies.summary(affirmed, denied)
        contradictions = allergies.contradictions(name, affirmed, denied, taken)
        if no_drug_allergies is not None:
            contradictions += allergies.without_allergies(name, affirmed, no_drug_allergies)
    else:
        summary = lab_series.summary(affirmed)
    return ListItem(
        kind=kind,
        name=name,
        code=_code_of(affirmed),
        summary=summary,
        entity_ids=tuple(each.entity_id for each in affirmed),
        encounter_ids=tuple(dict.fromkeys(each.encounter_id for each in affirmed)),
        contradictions=tuple(sorted(contradictions, key=_order_of_contradictions)),
    )


def _code_of(members: Sequence[ListedFact]) -> str | None:
    codes = {each.facts.code for each in members if each.facts.code}
    return next(iter(codes)) if len(codes) == 1 else None


def _order_of_contradictions(each: Contradiction) -> tuple[str, str, tuple[str, ...]]:
    return each.kind.value, each.message, tuple(str(entity) for entity in each.entity_ids)


def _with_excluded_codes(
    items: Sequence[ListItem], said: dict[ListedFact, ListStatement], notes: Notes
) -> list[ListItem]:
    """Return the problems with a contradiction for each excluded pair of codes of one encounter.

    A past problem is not coded beside a present one, so only present problems are compared.
    """
    places: dict[UUID, dict[str, list[ListedFact]]] = defaultdict(lambda: defaultdict(list))
    for fact, statement in said.items():
        system, _, code = (fact.facts.code or "").partition("|")
        if statement is ListStatement.AFFIRMED and system == _ICD and not is_historical(fact):
            places[fact.encounter_id][code].append(fact)
    found: dict[UUID, list[Contradiction]] = defaultdict(list)
    for codes in places.values():
        for one, other in excluded_pairs(list(codes), notes):
            members = [*codes[one], *codes[other]]
            names = " and ".join(name_of(codes[code]) for code in (one, other))
            message = f"{names}: {one} and {other} exclude each other"
            new = contradiction(ContradictionKind.CODES_EXCLUDED, message, members)
            for each in members:
                found[each.entity_id].append(new)
    return [_extended(item, found) for item in items]


def _extended(item: ListItem, found: dict[UUID, list[Contradiction]]) -> ListItem:
    new = dict.fromkeys(each for entity in item.entity_ids for each in found.get(entity, ()))
    if not new:
        return item
    both = sorted((*item.contradictions, *new), key=_order_of_contradictions)
    return ListItem(
        kind=item.kind,
        name=item.name,
        code=item.code,
        summary=item.summary,
        entity_ids=item.entity_ids,
        encounter_ids=item.encounter_ids,
        contradictions=tuple(both),
    )
