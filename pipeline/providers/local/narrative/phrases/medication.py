"""The words for a medication inside a sentence."""

from __future__ import annotations

from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.narrative import english


def regimen(each: EntityFacts) -> str:
    """Return name, dose, route and frequency."""
    return " ".join([english.inside(each.name), *_strength(each), *_dose(each)])


def changed(each: EntityFacts) -> str:
    """Return the change of a dose as a clause."""
    name, dose = english.inside(each.name), " ".join(_dose(each))
    if each.previous_dose:
        return f"{name} was changed from {each.previous_dose} to {dose}"
    return f"{name} was changed to {dose}"


def step(each: EntityFacts) -> str:
    """Return one step of a taper; the name belongs to each step."""
    return f"{english.inside(each.name)} {' '.join(_dose(each))}"


def _strength(each: EntityFacts) -> list[str]:
    if not each.strength or each.strength == each.dose:
        return []
    return [f"({each.strength} strength)"] if each.dose else [each.strength]


def _dose(each: EntityFacts) -> list[str]:
    parts = [each.dose] if each.dose else []
    if each.route:
        parts.append(english.route(each.route))
    if each.frequency:
        parts.append(english.frequency(each.frequency))
    return parts
