"""Doses and frequencies in a form that two entities can be compared in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from pipeline.clinical.record_lists.items import ListedFact

Amount = tuple[Decimal, Decimal | None, str]
"""Number, upper end, unit."""
Amounts = dict[Amount, list[ListedFact]]
_IN_GRAMS = {"kg": Decimal(1000), "g": Decimal(1), "mg": Decimal("1e-3"), "ug": Decimal("1e-6"),
             "ng": Decimal("1e-9")}  # fmt: skip
_IN_LITRES = {"L": Decimal(1), "dL": Decimal("0.1"), "mL": Decimal("1e-3")}
_PRINTED = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-zµμ]+)")
_SPELLINGS = {"mcg": "ug", "µg": "ug", "μg": "ug", "ml": "mL", "l": "L"}
_IN_HOURS = {
    "min": Decimal(1) / 60,
    "h": Decimal(1),
    "d": Decimal(24),
    "wk": Decimal(168),
    "mo": Decimal(730),
    "a": Decimal(8766),
}
"""Hours of a UCUM unit of time; UCUM's month is a twelfth of its year."""


def amount(fact: ListedFact) -> Amount | None:
    """Return the dose in the base unit of its kind; None without a number.

    A dose without a UCUM unit keeps its printed unit, so `1 tablet` equals `1 tablet` only. A dose
    that Pass 2 did not structure is read from its print if the print is a number with a unit.
    """
    number = decimal(fact.attribute("dose", "number"))
    high = decimal(fact.attribute("dose", "high"))
    unit = fact.attribute("dose", "unit") or fact.attribute("dose", "printed_unit") or ""
    if number is None:
        match = _PRINTED.fullmatch(fact.facts.dose or "")
        if match is None:
            return None
        number, unit = Decimal(match[1]), _SPELLINGS.get(match[2], match[2])
    for base, factors in (("g", _IN_GRAMS), ("L", _IN_LITRES)):
        if unit in factors:
            factor = factors[unit]
            return (number * factor).normalize(), high and (high * factor).normalize(), base
    return number.normalize(), high and high.normalize(), str(unit).casefold()


def comparable(facts: Sequence[ListedFact]) -> list[Amounts]:
    """Return the entities by dose, for each kind of unit.

    `1 tablet` and `20 mg` can be the same dose, so they are never compared.
    """
    kinds: dict[str, Amounts] = {}
    for each in facts:
        if (found := amount(each)) is not None:
            kinds.setdefault(found[2], {}).setdefault(found, []).append(each)
    return list(kinds.values())


def rate(fact: ListedFact) -> tuple[Any, ...] | None:
    """Return how often the medicine is taken, per hour; None if the text does not say."""
    timing = fact.attribute("timing")
    if not isinstance(timing, dict):
        return None
    times, period = decimal(timing.get("frequency")), decimal(timing.get("period"))
    hours = _IN_HOURS.get(str(timing.get("period_unit")))
    if times is None or not period or hours is None:
        return None
    most, longest = decimal(timing.get("frequency_max")), decimal(timing.get("period_max"))
    return (
        (times / (period * hours)).normalize(),
        most and most.normalize(),
        longest and longest.normalize(),
        bool(timing.get("as_needed")),
    )


def printed(fact: ListedFact) -> str:
    """Return the dose for a message."""
    dose = fact.attribute("dose") or {}
    if "number" not in dose:
        return fact.facts.dose or ""
    unit = dose.get("printed_unit") or dose.get("unit") or ""
    number = str(dose.get("number", ""))
    if dose.get("high") is not None:
        number += f"-{dose['high']}"
    return f"{number} {unit}".strip()


def decimal(value: object) -> Decimal | None:
    """Return a finite number of JSON, or None."""
    if value is None or isinstance(value, bool):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
