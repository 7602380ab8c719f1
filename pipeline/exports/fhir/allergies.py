"""AllergyIntolerance."""

from __future__ import annotations

from pipeline.clinical.attributes import AllergyAttributes
from pipeline.exports.fhir import terms
from pipeline.exports.fhir.conditions import other_verification, verification_of, verified
from pipeline.exports.fhir.context import Context, started
from pipeline.exports.fhir.terms import Json, concept, named, parts, present
from pipeline.exports.rows import EntityRow
from pipeline.models.assertions import Temporality

_CLINICAL = f"{terms.TERMINOLOGY}/allergyintolerance-clinical"
_VERIFICATION = f"{terms.TERMINOLOGY}/allergyintolerance-verification"


def allergy(context: Context, entity: EntityRow) -> Json:
    """Return the AllergyIntolerance of an allergy that is stated or denied."""
    attributes = AllergyAttributes.model_validate(entity.attributes or {})
    verification = verification_of(entity, attributes.verification_status)
    resource = started("AllergyIntolerance", context, entity) | present(
        clinicalStatus=_clinical_status(entity, attributes, verification),
        verificationStatus=verified(_VERIFICATION, verification, attributes.verification_status),
        code=named(
            entity.name, system=entity.code_system, code=entity.code, display=entity.code_display
        ),
        patient=context.patient,
        encounter=terms.reference(entity.encounter_id),
        reaction=_reaction(attributes),
    )
    resource["extension"] += parts("structured", _beside(attributes, verification))
    return resource


def _clinical_status(
    entity: EntityRow, attributes: AllergyAttributes, verification: str | None
) -> Json | None:
    """Return the clinical status, which ait-1 requires of everything but an error."""
    if verification == "entered-in-error":
        return None
    if attributes.clinical_status:
        return concept(_CLINICAL, attributes.clinical_status)
    if verification == "refuted":
        return concept(_CLINICAL, "inactive", "denied")
    if entity.temporality == Temporality.HISTORICAL:
        return concept(_CLINICAL, "inactive", "historical")
    # An allergy that the text states without a word about its end is an allergy now.
    return concept(_CLINICAL, "active", "stated")


def _reaction(attributes: AllergyAttributes) -> list[Json]:
    if not attributes.reaction:
        return []
    manifestation = [{"text": terms.text_of(attributes.reaction)}]
    return [present(manifestation=manifestation, severity=attributes.severity)]


def _beside(attributes: AllergyAttributes, verification: str | None) -> dict[str, str | None]:
    is_error = verification == "entered-in-error"
    return {
        "clinical_status": attributes.clinical_status if is_error else None,
        "verification_status": other_verification(attributes.verification_status, verification),
        "substance": attributes.substance,
        # A severity needs a reaction in FHIR.
        "severity": None if attributes.reaction else attributes.severity,
    }
