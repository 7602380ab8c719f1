"""Condition for conditions and symptoms, and FamilyMemberHistory for those of a relative."""

from __future__ import annotations

from typing import Any

from pipeline.clinical.attributes import ConditionAttributes
from pipeline.exports.fhir import terms
from pipeline.exports.fhir.context import Context, started
from pipeline.exports.fhir.terms import Json, concept, in_words, named, parts, present
from pipeline.exports.rows import EntityRow
from pipeline.models.assertions import Certainty, MedicationStatus, Temporality

_CLINICAL = f"{terms.TERMINOLOGY}/condition-clinical"
_VERIFICATION = f"{terms.TERMINOLOGY}/condition-ver-status"
_NO_CLINICAL_STATUS = ("refuted", "entered-in-error")
"""FHIR con-5 forbids a clinical status of an error, and a denied condition has none."""
_PRESENT = ("active", "recurrence", "relapse")
_ENDED = ("inactive", "remission", "resolved")


def condition(context: Context, entity: EntityRow) -> Json:
    """Return the Condition of a condition or symptom of the patient."""
    attributes = _attributes(entity)
    verification = verification_of(entity, attributes.verification_status)
    status = _clinical_status(entity, attributes, verification)
    resource = started("Condition", context, entity) | present(
        clinicalStatus=status,
        verificationStatus=verified(_VERIFICATION, verification, attributes.verification_status),
        category=[{"text": "symptom"}] if entity.category == "symptom" else None,
        severity=in_words(attributes.severity),
        code=_code(entity),
        bodySite=body_site(attributes.body_site, attributes.laterality),
        subject=context.patient,
        encounter=terms.reference(entity.encounter_id),
        onsetDateTime=attributes.onset,
        onsetString=None if attributes.onset else _text(attributes.printed_onset),
        abatementDateTime=attributes.abatement if _has_ended(status) else None,
    )
    resource["extension"] += parts("structured", _beside(attributes, verification, status))
    return resource


def family_history(context: Context, entity: EntityRow) -> Json:
    """Return the FamilyMemberHistory of a condition of a relative."""
    attributes = _attributes(entity)
    resource = started("FamilyMemberHistory", context, entity) | present(
        status="partial",  # One condition, not all that is known about the relative.
        patient=context.patient,
        # The entity does not say which relative; the quote of the Provenance does.
        relationship=concept(f"{terms.TERMINOLOGY}/v3-RoleCode", "FAMMEMB", "relative"),
        condition=[{"code": _code(entity)}],
    )
    resource["extension"] += parts(
        "structured",
        {
            "body_site": attributes.body_site,
            "laterality": attributes.laterality,
            "verification_status": attributes.verification_status,
        },
    )
    return resource


def verification_of(entity: EntityRow, structured: str | None) -> str | None:
    """Return the verification status: that of Pass 2, else what the assertion of Pass 1 says."""
    if entity.status == MedicationStatus.ENTERED_IN_ERROR:
        return "entered-in-error"
    if entity.negated and structured in (None, "confirmed", "provisional", "differential"):
        # A denial is never weakened; Pass 2 has flagged the contradiction.
        return "refuted"
    if entity.certainty == Certainty.POSSIBLE and structured in (None, "confirmed"):
        return "unconfirmed"
    return structured


def verified(system: str, status: str | None, structured: str | None) -> Json | None:
    """Return the verification status; its text marks a status that the assertion alone gives."""
    if status is None:
        return None
    words = {"refuted": "denied", "unconfirmed": "possible"}.get(status)
    return concept(system, status, None if status == structured else words)


def other_verification(structured: str | None, status: str | None) -> str | None:
    """Return the status of Pass 2 if the resource has another one."""
    return structured if structured != status else None


def body_site(site: str | None, side: str | None) -> list[Json]:
    """Return the body site in the words of the page, with the side as extension."""
    if not site and not side:
        return []
    where = [terms.extension("laterality", valueCode=side)] if side else []
    return [present(extension=where, text=_text(site) or side)]


def _attributes(entity: EntityRow) -> ConditionAttributes:
    return ConditionAttributes.model_validate(entity.attributes or {})


def _code(entity: EntityRow) -> Json:
    return named(
        entity.name, system=entity.code_system, code=entity.code, display=entity.code_display
    )


def _clinical_status(
    entity: EntityRow, attributes: ConditionAttributes, verification: str | None
) -> Json | None:
    if verification in _NO_CLINICAL_STATUS:
        return None
    is_historical = entity.temporality == Temporality.HISTORICAL
    if is_historical and attributes.clinical_status in _PRESENT:
        return None  # Pass 2 has flagged the contradiction; neither word decides.
    if attributes.clinical_status:
        return concept(_CLINICAL, attributes.clinical_status)
    if is_historical:
        # `inactive` includes `resolved` and `remission` (condition-clinical), and no text decides
        # between them. The text of the concept marks a status that the assertion alone gives.
        return concept(_CLINICAL, "inactive", "historical")
    return None


def _has_ended(status: Json | None) -> bool:
    """Return whether FHIR con-4 allows an end: the clinical status says that there is one."""
    return status is not None and status["coding"][0]["code"] in _ENDED


def _beside(
    attributes: ConditionAttributes, verification: str | None, status: Json | None
) -> dict[str, Any]:
    """Return what Condition has no room for."""
    return {
        # Both are stated and only one of the two has room in `onset[x]`.
        "printed_onset": attributes.printed_onset if attributes.onset else None,
        "clinical_status": attributes.clinical_status if status is None else None,
        "abatement": None if _has_ended(status) else attributes.abatement,
        "verification_status": other_verification(attributes.verification_status, verification),
    }


def _text(text: str | None) -> str | None:
    return text and terms.text_of(text)
