"""Observation: laboratory results and vital signs.

A number keeps its digits. The unit has its UCUM code if the printed unit has one. A bound of a
reference range that excludes itself stays text and extension, because FHIR's bounds are inclusive.
"""

from __future__ import annotations

from typing import Any

from pipeline.clinical.attributes import LabAttributes, Quantity, Range, VitalAttributes
from pipeline.exports.fhir import terms
from pipeline.exports.fhir.context import Context, day, started
from pipeline.exports.fhir.terms import Json, concept, in_words, named, parts, present, text_of
from pipeline.exports.rows import EntityRow, is_reviewed
from pipeline.models.assertions import MedicationStatus

_CATEGORY = f"{terms.TERMINOLOGY}/observation-category"
_CATEGORIES = {"lab": "laboratory", "vital": "vital-signs"}
_PRESSURES = (("8480-6", "Systolic blood pressure"), ("8462-4", "Diastolic blood pressure"))
"""LOINC codes of the components, http://hl7.org/fhir/R4/bp.html; `codes/loaders/data` repeats
them with their licence."""
_BLOOD_PRESSURE = "85354-9"
_NO_NUMBER: dict[str, Any] = {"number": None, "high": None, "comparator": None}
COMPUTED = "computed from the value and its reference range"
"""The text of an interpretation that medproc computed; a printed flag has its own text."""


def observation(context: Context, entity: EntityRow) -> Json:
    """Return the Observation of a laboratory result or a vital sign."""
    attributes = _attributes(entity)
    resource = started("Observation", context, entity) | present(
        status=_status(context, entity),
        category=[concept(_CATEGORY, _CATEGORIES[entity.category])],
        code=named(
            entity.name, system=entity.code_system, code=entity.code, display=entity.code_display
        ),
        subject=context.patient,
        encounter=terms.reference(entity.encounter_id),
        effectiveDateTime=day(entity, "effective"),
    )
    resource |= _value(entity, attributes)
    if isinstance(attributes, LabAttributes):
        resource |= present(
            interpretation=_interpretation(attributes),
            referenceRange=_reference_range(attributes.reference_range, attributes.value),
        )
    if attributes is not None:
        resource["extension"] += parts("structured", _beside(attributes))
    return resource


def value_of(of: Quantity) -> Json:
    """Return `valueQuantity`, `valueRange` or, if the number is not understood, `valueString`."""
    if of.number is None:
        return {"valueString": text_of(of.printed)}
    return {"valueQuantity" if of.high is None else "valueRange": terms.measured(of)}


def _attributes(entity: EntityRow) -> LabAttributes | VitalAttributes | None:
    if entity.attributes is None:
        return None
    model = LabAttributes if entity.category == "lab" else VitalAttributes
    return model.model_validate(entity.attributes)


def _status(context: Context, entity: EntityRow) -> str:
    if entity.status == MedicationStatus.ENTERED_IN_ERROR:
        return "entered-in-error"
    # FHIR: `preliminary` is unverified, `final` is complete and verified by an authorized person.
    return "final" if is_reviewed(context.record, entity) else "preliminary"


def _value(entity: EntityRow, attributes: LabAttributes | VitalAttributes | None) -> Json:
    if isinstance(attributes, VitalAttributes) and len(attributes.components) == len(_PRESSURES):
        return {"component": _components(entity, attributes.components)}
    if attributes is not None and attributes.value is not None:
        return value_of(attributes.value)
    if isinstance(attributes, LabAttributes) and attributes.value_text:
        return {"valueString": text_of(attributes.value_text)}
    printed = " ".join(filter(None, (entity.value, entity.unit)))
    if printed:
        return {"valueString": text_of(printed)}
    return {"dataAbsentReason": concept(f"{terms.TERMINOLOGY}/data-absent-reason", "unknown")}


def _components(entity: EntityRow, of: tuple[Quantity, ...]) -> list[Json]:
    is_coded = entity.code == _BLOOD_PRESSURE
    return [
        {
            "code": named(
                name,
                system="LOINC" if is_coded else None,
                code=code if is_coded else None,
                display=name,
            ),
            **value_of(each),
        }
        for each, (code, name) in zip(of, _PRESSURES, strict=True)
    ]


def _interpretation(attributes: LabAttributes) -> list[Json]:
    found = [in_words(attributes.printed_flag)]
    if attributes.computed_flag:
        system = f"{terms.TERMINOLOGY}/v3-ObservationInterpretation"
        found.append(concept(system, attributes.computed_flag, COMPUTED))
    return [each for each in found if each]


def _reference_range(of: Range | None, value: Quantity | None) -> list[Json]:
    if of is None:
        return []
    unit = terms.quantity(value.model_copy(update=_NO_NUMBER)) if value else {}
    bounds = {
        "low": None if of.low_is_exclusive else of.low,
        "high": None if of.high_is_exclusive else of.high,
    }
    exclusive: dict[str, Any] = {
        "low": of.low if of.low_is_exclusive else None,
        "high": of.high if of.high_is_exclusive else None,
        "text": of.text,
    }
    values = {name: {"value": bound, **unit} for name, bound in bounds.items() if bound is not None}
    return [
        present(extension=parts("exclusive-bound", exclusive), **values, text=text_of(of.printed))
    ]


def _beside(attributes: LabAttributes | VitalAttributes) -> dict[str, Any]:
    """Return what Observation has no element for."""
    value, converted = attributes.value, attributes.converted
    if converted is not None:
        # The printed unit is the unit of the value, not of the converted number.
        converted = converted.model_copy(update={"printed_unit": None})
    components = attributes.components if isinstance(attributes, VitalAttributes) else ()
    return {
        "converted": terms.measured(converted),
        "value": terms.measured(value) if value and value.number is None else None,
        "components": [
            terms.measured(each)
            for each in components
            if each.number is None or len(components) != len(_PRESSURES)
        ],
    }
