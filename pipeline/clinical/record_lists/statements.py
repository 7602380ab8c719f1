"""What an entity states for the lists: an affirmed fact of the patient, a denied fact, or nothing.

An entity that is not accepted, or that is about another person, states nothing. A possible or
hypothetical fact states nothing either: a list says only what the text says for certain.
"""

from __future__ import annotations

from enum import Enum

from pipeline.clinical.condition_reading import is_of_patient
from pipeline.clinical.record_lists.items import ListedFact, ListKind

KINDS: dict[str, ListKind] = {
    "condition": ListKind.PROBLEM,
    "medication": ListKind.MEDICATION,
    "allergy": ListKind.ALLERGY,
    "lab": ListKind.LAB_SERIES,
}
"""Category → its list. Symptoms, vital signs, immunizations and procedures have no list."""
_DENIED = ("refuted", "entered-in-error")
_DOUBTED = ("unconfirmed", "provisional", "differential")
_NEVER_TAKEN = ("not_started", "entered_in_error")


class ListStatement(Enum):
    """What an entity says about its subject."""

    AFFIRMED = "affirmed"
    DENIED = "denied"


def statement_of(fact: ListedFact) -> ListStatement | None:
    """Return what the entity states, or None if the entity supports no list."""
    facts = fact.facts
    if facts.category not in KINDS or not facts.accepted or not is_of_patient(facts):
        return None
    verification = fact.attribute("verification_status")
    if facts.category == "medication" and medication_status(fact) == "entered_in_error":
        return None
    if facts.certainty not in (None, "certain") or verification in _DOUBTED:
        return None
    if verification == "entered-in-error":
        return None
    if facts.category == "medication" and medication_status(fact) in ("stopped", "on_hold"):
        # The text denies that the patient takes the drug now, not that the patient took the drug.
        return ListStatement.AFFIRMED
    if facts.negated or verification in _DENIED:
        return ListStatement.DENIED
    if facts.category == "medication":
        never = medication_status(fact) in _NEVER_TAKEN
        return ListStatement.DENIED if never else ListStatement.AFFIRMED
    if facts.temporality == "planned":
        return None
    return ListStatement.AFFIRMED


def is_historical(fact: ListedFact) -> bool:
    """Return whether the text places the fact before the encounter."""
    return fact.facts.temporality == "historical"


def medication_status(fact: ListedFact) -> str | None:
    """Return the status of a medication, from Pass 2 or else from Pass 1."""
    status = fact.attribute("status") or fact.facts.status
    return str(status) if status else None


def clinical_status(fact: ListedFact) -> str | None:
    """Return the clinical status that the text states, or None."""
    status = fact.attribute("clinical_status")
    return str(status) if status else None
