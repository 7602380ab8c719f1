"""Immunization and Procedure."""

from __future__ import annotations

from pipeline.clinical.attributes import ImmunizationAttributes, ProcedureAttributes
from pipeline.exports.fhir import terms
from pipeline.exports.fhir.conditions import body_site
from pipeline.exports.fhir.context import Context, day, started
from pipeline.exports.fhir.placement import immunization_status
from pipeline.exports.fhir.terms import Json, named, parts, present
from pipeline.exports.rows import EntityRow
from pipeline.models.assertions import MedicationStatus, Temporality

NO_DATE = "not stated"
"""`occurrence[x]` is required."""


def immunization(context: Context, entity: EntityRow) -> Json:
    """Return the Immunization of a vaccine that was given or refused."""
    attributes = ImmunizationAttributes.model_validate(entity.attributes or {})
    occurrence = day(entity, "occurrence")
    number = attributes.dose_number
    resource = started("Immunization", context, entity) | present(
        status=immunization_status(entity),
        vaccineCode=_code(entity),
        patient=context.patient,
        encounter=terms.reference(entity.encounter_id),
        occurrenceDateTime=occurrence,
        occurrenceString=None if occurrence else NO_DATE,
        protocolApplied=[{"doseNumberPositiveInt": number}] if number else None,
    )
    beside = {"product": attributes.product, "status": attributes.status}
    resource["extension"] += parts("structured", beside)
    return resource


def procedure(context: Context, entity: EntityRow) -> Json:
    """Return the Procedure of a procedure that was done, refused, or is planned."""
    attributes = ProcedureAttributes.model_validate(entity.attributes or {})
    resource = started("Procedure", context, entity) | present(
        status=_status(entity, attributes.status),
        code=_code(entity),
        subject=context.patient,
        encounter=terms.reference(entity.encounter_id),
        performedDateTime=day(entity, "performed"),
        bodySite=body_site(attributes.body_site, attributes.laterality),
    )
    # The resource says `unknown` also for a status that the text leaves out.
    resource["extension"] += parts("structured", {"status": attributes.status})
    return resource


def _code(entity: EntityRow) -> Json:
    return named(
        entity.name, system=entity.code_system, code=entity.code, display=entity.code_display
    )


def _status(entity: EntityRow, structured: str | None) -> str:
    if entity.status == MedicationStatus.ENTERED_IN_ERROR:
        return "entered-in-error"
    if entity.negated:
        return "not-done"
    if entity.temporality == Temporality.PLANNED:
        return "preparation"
    return structured or "unknown"
