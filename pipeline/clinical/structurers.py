"""The structurer of each category: printed text in, attributes of `clinical.attributes` out.

A category without a row here keeps its printed text in Pass 1 alone.
"""

from __future__ import annotations

from pipeline.clinical.allergies import allergy_attributes
from pipeline.clinical.attributes import ATTRIBUTES
from pipeline.clinical.conditions import condition_attributes
from pipeline.clinical.immunizations import immunization_attributes
from pipeline.clinical.labs import lab_attributes
from pipeline.clinical.medications.structure import medication_attributes
from pipeline.clinical.procedures import procedure_attributes
from pipeline.clinical.structured import Printed, Structured, Structurer
from pipeline.clinical.vitals import vital_attributes

STRUCTURERS: dict[str, Structurer] = {
    "condition": condition_attributes,
    "symptom": condition_attributes,
    "medication": medication_attributes,
    "lab": lab_attributes,
    "vital": vital_attributes,
    "allergy": allergy_attributes,
    "immunization": immunization_attributes,
    "procedure": procedure_attributes,
}
"""Category → its structurer."""


def structured(printed: Printed) -> Structured:
    """Return the attributes of an entity. Raises KeyError for an unknown category."""
    category = printed.facts.category
    structurer = STRUCTURERS.get(category)
    return structurer(printed) if structurer else Structured(attributes=ATTRIBUTES[category]())
