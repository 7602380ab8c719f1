"""The words for a laboratory result or a vital sign inside a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.narrative.known import stated_flags
from pipeline.clinical.narrative.undoubted import undoubted
from pipeline.providers.local.narrative import english

_ORDER = ("critical", "high", "low", "abnormal")


def flag(each: EntityFacts) -> str:
    """Return what the entity states about its value; empty without an abnormal flag."""
    if "flag_differs" in each.flags:
        return ""
    flags = stated_flags(undoubted(each))
    return next((word for word in _ORDER if word in flags), "")


def result(each: EntityFacts) -> str:
    """Return name, value and unit, with flag, range and own date."""
    text = f"{english.inside(each.name)} {english.quantity(each.value or '', each.unit)}"
    beside = [flag(each)] if each.category == "lab" and flag(each) else []
    if beside and each.reference_range:
        beside.append(f"reference range {each.reference_range}")
    if beside:
        text += f" ({', '.join(beside)})"
    if each.entity_date and (
        each.temporality == "historical" or each.entity_date != each.encounter_date
    ):
        text += f" on {english.day(each.entity_date)}"
    return text


def excess(each: EntityFacts) -> float:
    """Return how many times a value is over its upper limit, or under its lower limit.

    A result without numbers has 1, so that results keep the order of the page.
    """
    value, limits = each.attributes.get("value"), each.attributes.get("reference_range")
    if not isinstance(value, Mapping) or not isinstance(limits, Mapping):
        return 1.0
    number, low, high = (
        _positive(part) for part in (value.get("number"), limits.get("low"), limits.get("high"))
    )
    if number is None:
        return 1.0
    return max(number / high if high else 1.0, low / number if low else 1.0)


def _positive(printed: object) -> float | None:
    try:
        number = float(str(printed))
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None
