"""The words for a medication inside a sentence."""

from __future__ import annotations

import re

from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.narrative import english

_ANTICOAGULANT = re.compile(
    r"\b(?:\w+xaban|dabigatran|warfarin|heparin|\w+parin|fondaparinux|argatroban|bivalirudin"
    r"|eliquis|xarelto|pradaxa|coumadin|jantoven|savaysa|lovenox|fragmin|arixtra)\b",
    re.I,
)
"""Stems of the WHO's nonproprietary names (`-xaban`, `-parin`), and United States brands."""


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


def is_anticoagulant(each: EntityFacts) -> bool:
    """Return whether a drug prevents clots: a missed anticoagulant is dangerous at every visit."""
    return _ANTICOAGULANT.search(each.name) is not None
