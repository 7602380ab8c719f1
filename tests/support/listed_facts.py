"""Entities as the lists across encounters read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.record_lists.items import ContradictionKind, ListedFact, ListItem

FIRST = date(2024, 3, 11)
_numbers = count(1)


def fact(
    category: str, name: str, *, encounter: int = 0, until: date | None = None, **values: Any
) -> ListedFact:
    """Return an accepted entity of the patient; `attributes` and `code` as after Pass 2."""
    number = next(_numbers)
    facts = EntityFacts(
        key="",
        category=category,
        name=name,
        quote=name,
        page=encounter + 1,
        start=number,
        encounter_date=values.pop("day", FIRST + timedelta(days=encounter)),
        **values,
    )
    return ListedFact(
        facts=facts,
        entity_id=UUID(int=number),
        encounter_id=UUID(int=encounter + 1_000_000),
        encounter_index=encounter,
        encounter_end=until,
    )


def dosed(name: str, number: str, unit: str = "mg", **values: Any) -> ListedFact:
    timing = values.pop("timing", {"frequency": "1", "period": "1", "period_unit": "d"})
    dose = {"printed": f"{number} {unit}", "number": number, "unit": unit, "printed_unit": unit}
    attributes = {"dose": dose, "timing": {"printed": "daily", **timing}, "ingredient": name}
    attributes |= values.pop("attributes", {})
    return fact("medication", name, attributes=attributes, status="active", **values)


def condition(name: str, code: str | None = None, **values: Any) -> ListedFact:
    return fact("condition", name, code=code and f"ICD10CM|{code}", **values)


def lab(name: str, number: str, unit: str | None, **values: Any) -> ListedFact:
    value = {"printed": number, "number": number, "unit": unit}
    attributes = {"value": {k: v for k, v in value.items() if v}}
    return fact("lab", name, value=number, unit=unit, attributes=attributes, **values)


def kinds(items: Sequence[ListItem]) -> list[ContradictionKind]:
    return [each.kind for item in items for each in item.contradictions]
