"""The structured attributes of an enriched entity: one model per category.

Field names and value sets follow FHIR R4B. Units are UCUM codes. A value that the text does not
state is None. `printed` is always the text of the page, so nothing is lost by structuring it.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Comparator = Literal["<", "<=", ">=", ">"]
PartialDate = Annotated[str, Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")]
"""A date as FHIR writes one: year, month or day precision."""
Interpretation = Literal["HH", "H", "N", "L", "LL", "A"]
"""Codes of HL7 v3 ObservationInterpretation that a numeric range can yield, and A for abnormal."""
ClinicalStatus = Literal["active", "recurrence", "relapse", "inactive", "remission", "resolved"]
VerificationStatus = Literal[
    "unconfirmed", "provisional", "differential", "confirmed", "refuted", "entered-in-error"
]
Severity = Literal["mild", "moderate", "severe"]
PeriodUnit = Literal["min", "h", "d", "wk", "mo", "a"]
"""UCUM units of time."""


class _Attributes(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Quantity(_Attributes):
    """A number with its unit; a range has `high` too."""

    printed: str
    number: Decimal | None = None
    high: Decimal | None = None
    """Upper end, if the text states a range (`1-2 tablets`)."""
    comparator: Comparator | None = None
    unit: str | None = None
    """UCUM code; None if the printed unit has no UCUM code or the text has no unit."""
    printed_unit: str | None = None


class Timing(_Attributes):
    """How often something is taken: `frequency` times per `period` `period_unit`."""

    printed: str
    frequency: Decimal | None = None
    frequency_max: Decimal | None = None
    period: Decimal | None = None
    period_max: Decimal | None = None
    period_unit: PeriodUnit | None = None
    when: tuple[str, ...] = ()
    """Codes of FHIR EventTiming (`HS` at bedtime, `MORN`, `AC` before meals …)."""
    as_needed: bool = False
    count: int | None = None
    """Total number of administrations (`once` is 1)."""


class MedicationAttributes(_Attributes):
    """A medication: the product, what is taken, and whether the patient takes it."""

    ingredient: str | None = None
    strength: tuple[Quantity, ...] = ()
    """One quantity per ingredient; a strength per volume has a unit such as `mg/mL`."""
    dose: Quantity | None = None
    """What is taken each time."""
    daily_dose: Quantity | None = None
    """Computed, and only if the daily dose follows from dose, timing and strength."""
    previous_dose: Quantity | None = None
    route: str | None = None
    """Word of the route as `lexicon` normalises it: oral, intravenous, subcutaneous …"""
    printed_route: str | None = None
    timing: Timing | None = None
    start: PartialDate | None = None
    stop: PartialDate | None = None
    status: str | None = None
    """Value of `models.assertions.MedicationStatus`."""
    indication: str | None = None
    step: int | None = None


class ConditionAttributes(_Attributes):
    """A condition or a symptom."""

    clinical_status: ClinicalStatus | None = None
    verification_status: VerificationStatus | None = None
    onset: PartialDate | None = None
    printed_onset: str | None = None
    abatement: PartialDate | None = None
    severity: Severity | None = None
    body_site: str | None = None
    laterality: Literal["left", "right", "bilateral"] | None = None


class Range(_Attributes):
    """A reference range; both ends are inclusive unless a comparator excludes them."""

    printed: str
    low: Decimal | None = None
    high: Decimal | None = None
    low_is_exclusive: bool = False
    high_is_exclusive: bool = False
    text: str | None = None
    """A range that is a word, such as `negative`."""


class LabAttributes(_Attributes):
    """A laboratory result."""

    value: Quantity | None = None
    value_text: str | None = None
    """A result that is a word, a titer or an ordinal (`positive`, `1:64`, `2+`)."""
    converted: Quantity | None = None
    """The value in the other unit system, beside the printed value."""
    reference_range: Range | None = None
    printed_flag: str | None = None
    computed_flag: Interpretation | None = None
    """Recomputed from value and range; None if either is not a number."""
    effective: PartialDate | None = None


class VitalAttributes(_Attributes):
    """A vital sign; blood pressure has two components."""

    value: Quantity | None = None
    components: tuple[Quantity, ...] = ()
    """Systolic, then diastolic, for a blood pressure."""
    converted: Quantity | None = None
    effective: PartialDate | None = None


class AllergyAttributes(_Attributes):
    """An allergy or intolerance."""

    substance: str | None = None
    reaction: str | None = None
    severity: Severity | None = None
    clinical_status: Literal["active", "inactive", "resolved"] | None = None
    verification_status: VerificationStatus | None = None


class ImmunizationAttributes(_Attributes):
    """A vaccine that was given, or was not."""

    product: str | None = None
    occurrence: PartialDate | None = None
    dose_number: int | None = None
    status: Literal["completed", "not-done", "planned", "entered-in-error"] | None = None


class ProcedureAttributes(_Attributes):
    """A procedure."""

    performed: PartialDate | None = None
    status: Literal["completed", "not-done", "preparation", "in-progress", "unknown"] | None = None
    body_site: str | None = None
    laterality: Literal["left", "right", "bilateral"] | None = None


ATTRIBUTES: dict[str, type[_Attributes]] = {
    "medication": MedicationAttributes,
    "condition": ConditionAttributes,
    "symptom": ConditionAttributes,
    "lab": LabAttributes,
    "vital": VitalAttributes,
    "allergy": AllergyAttributes,
    "immunization": ImmunizationAttributes,
    "procedure": ProcedureAttributes,
}
"""The model of each category's attributes."""
