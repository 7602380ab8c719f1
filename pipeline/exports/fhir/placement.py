"""What an entity becomes in the bundle: a resource of its category, or a statement.

A reader of FHIR takes each clinical resource as a fact about the patient. So everything that is no
such fact, or that FHIR cannot qualify as the text does, becomes a `Basic` resource: a reader who
does not know medproc's code for statements takes nothing from it.
"""

from __future__ import annotations

from enum import StrEnum

from pipeline.exports.rows import EntityRow
from pipeline.models.assertions import Certainty, Experiencer, MedicationStatus, Temporality


class ResourceKind(StrEnum):
    """The kind of resource that an entity becomes."""

    FINDING = "finding"
    """The resource of the category: Condition, Observation …"""
    FAMILY_HISTORY = "family-history"
    """FamilyMemberHistory."""
    STATEMENT = "statement"
    """Basic: a possible result, a plan, a condition of the text ("if fever returns"), or a fact
    about another person."""
    HELD = "held"
    """Basic: not accepted: the page supports too little of it, or a reviewer rejected it."""


_CONDITIONS = frozenset({"condition", "symptom"})
_MEASUREMENTS = frozenset({"lab", "vital"})


def placement(entity: EntityRow) -> ResourceKind:
    """Return what an entity becomes."""
    if not entity.accepted:
        return ResourceKind.HELD
    if entity.experiencer == Experiencer.OTHER:
        return ResourceKind.STATEMENT
    if entity.experiencer == Experiencer.FAMILY or entity.zone_type == "family_history":
        return (
            ResourceKind.FAMILY_HISTORY if _is_family_condition(entity) else ResourceKind.STATEMENT
        )
    if entity.certainty == Certainty.HYPOTHETICAL:
        return ResourceKind.STATEMENT
    is_finding = _FINDINGS.get(_kind(entity.category))
    return ResourceKind.FINDING if is_finding and is_finding(entity) else ResourceKind.STATEMENT


def immunization_status(entity: EntityRow) -> str | None:
    """Return the status of FHIR Immunization; None for a plan or if the text states none."""
    if entity.status == MedicationStatus.ENTERED_IN_ERROR:
        return "entered-in-error"
    if entity.attributes is not None:
        status = entity.attributes.get("status")
        return None if status == "planned" else status
    if entity.negated:
        return "not-done"
    return "completed" if entity.entity_date else None


def _is_family_condition(entity: EntityRow) -> bool:
    """Return whether the text states for certain that a relative has or had the condition."""
    structured = (entity.attributes or {}).get("verification_status")
    return (
        entity.category in _CONDITIONS
        and entity.status != MedicationStatus.ENTERED_IN_ERROR
        and structured in (None, "confirmed")
        and entity.experiencer in (None, Experiencer.FAMILY)
        and not entity.negated
        and entity.certainty in (None, Certainty.CERTAIN)
        and entity.temporality != Temporality.PLANNED
    )


def _kind(category: str) -> str:
    if category in _CONDITIONS:
        return "condition"
    return "measurement" if category in _MEASUREMENTS else category


def _is_condition(entity: EntityRow) -> bool:
    return entity.temporality != Temporality.PLANNED


def _is_medication(entity: EntityRow) -> bool:
    del entity  # MedicationStatement has a status for plans, doubts and denials.
    return True


def _is_measurement(entity: EntityRow) -> bool:
    """Return whether there is a measurement; Observation can be neither denied nor possible."""
    return (
        not entity.negated
        and entity.certainty in (None, Certainty.CERTAIN)
        and entity.temporality != Temporality.PLANNED
    )


def _is_allergy(entity: EntityRow) -> bool:
    if entity.temporality == Temporality.PLANNED:
        return False
    # `No known allergies` names no substance; the section of the allergies says so.
    return entity.attributes is None or bool(entity.attributes.get("substance"))


def _is_immunization(entity: EntityRow) -> bool:
    if entity.temporality == Temporality.PLANNED or entity.certainty == Certainty.POSSIBLE:
        return False
    return immunization_status(entity) is not None


def _is_procedure(entity: EntityRow) -> bool:
    return entity.certainty != Certainty.POSSIBLE


_FINDINGS = {
    "condition": _is_condition,
    "medication": _is_medication,
    "measurement": _is_measurement,
    "allergy": _is_allergy,
    "immunization": _is_immunization,
    "procedure": _is_procedure,
}
"""Kind of category → whether an entity of the patient is a finding of that kind."""
