"""MedicationStatement: what the text says about the use of a medication, with its dosage."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pipeline.clinical.attributes import MedicationAttributes, Quantity, Timing
from pipeline.exports.fhir import terms
from pipeline.exports.fhir.context import Context, started
from pipeline.exports.fhir.terms import Json, in_words, named, parts, present
from pipeline.exports.rows import EntityRow
from pipeline.models.assertions import Certainty, MedicationStatus, Temporality

_STATUSES = {
    MedicationStatus.ACTIVE: "active",
    MedicationStatus.CHANGED: "active",
    MedicationStatus.STOPPED: "stopped",
    MedicationStatus.ON_HOLD: "on-hold",
    MedicationStatus.PLANNED: "intended",
    MedicationStatus.NOT_STARTED: "not-taken",
    MedicationStatus.ENTERED_IN_ERROR: "entered-in-error",
}
_ELEMENTS = {
    "frequencyMax": "frequency_max", "periodMax": "period_max", "periodUnit": "period_unit",
}  # fmt: skip
"""Elements of FHIR Timing → our names."""
_TAKEN = (MedicationStatus.ACTIVE, MedicationStatus.CHANGED)


def medication(context: Context, entity: EntityRow) -> Json:
    """Return the MedicationStatement of a medication."""
    attributes = MedicationAttributes.model_validate(entity.attributes or {})
    period = present(start=attributes.start, end=attributes.stop) if _is_period(attributes) else {}
    resource = started("MedicationStatement", context, entity) | present(
        status=status_of(entity),
        medicationCodeableConcept=named(
            entity.name, system=entity.code_system, code=entity.code, display=entity.code_display
        ),
        subject=context.patient,
        context=terms.reference(entity.encounter_id),
        effectivePeriod=period,
        reasonCode=[in_words(attributes.indication)] if attributes.indication else None,
        dosage=_dosage(entity, attributes),
    )
    beside = _beside(attributes)
    if not period:
        beside |= {"start": attributes.start, "stop": attributes.stop}
    resource["extension"] += parts("structured", beside)
    return resource


def _is_period(of: MedicationAttributes) -> bool:
    """Return whether the two days are in order, as FHIR per-1 requires.

    `2024` is neither before nor after `2024-03`, so their order is not known.
    """
    if not of.start or not of.stop:
        return True
    size = min(len(of.start), len(of.stop))
    is_earlier = of.start[:size] < of.stop[:size]
    return is_earlier or of.start == of.stop


def status_of(entity: EntityRow) -> str:
    """Return the status: what the text says; `unknown` if nothing decides or two words differ."""
    stated = (entity.attributes or {}).get("status") or entity.status
    if stated == MedicationStatus.ENTERED_IN_ERROR:
        return "entered-in-error"
    if entity.negated and stated in (None, MedicationStatus.NOT_STARTED):
        return "not-taken"
    is_taken = stated in _TAKEN
    if entity.temporality == Temporality.PLANNED and (stated is None or is_taken):
        return "intended"
    is_doubted = (
        entity.negated
        or entity.certainty == Certainty.POSSIBLE
        or entity.temporality == Temporality.HISTORICAL
    )
    if stated is None or (is_taken and is_doubted):
        return "unknown"
    return _STATUSES[MedicationStatus(stated)]


def _dosage(entity: EntityRow, attributes: MedicationAttributes) -> list[Json]:
    printed = " ".join(filter(None, (entity.dose, entity.route, entity.frequency)))
    timing = attributes.timing
    found = present(
        sequence=attributes.step or entity.step,
        text=terms.text_of(printed),
        timing=timing and _timing(timing),
        asNeededBoolean=True if timing and timing.as_needed else None,
        route=_route(attributes),
        doseAndRate=_dose(attributes.dose),
    )
    return [found] if found else []


def _route(attributes: MedicationAttributes) -> Json | None:
    if not attributes.route and not attributes.printed_route:
        return None
    normal = attributes.route
    if not attributes.printed_route:
        return present(coding=[{"display": normal}])
    return present(
        extension=[terms.extension("normal-route", valueString=normal)] if normal else None,
        text=terms.text_of(attributes.printed_route),
    )


def _dose(of: Quantity | None) -> list[Json]:
    """Return the dose. `SimpleQuantity` has no comparator, so a limited dose stays an extension."""
    if of is None or of.number is None or of.comparator:
        return []
    return [{"doseQuantity" if of.high is None else "doseRange": terms.measured(of)}]


def _timing(of: Timing) -> Json:
    """Return the Timing. What its integers cannot hold (1.5 times a day) is an extension."""
    repeat = present(
        count=of.count,
        frequency=_whole(of.frequency),
        frequencyMax=_whole(of.frequency_max),
        period=of.period if of.period_unit else None,
        periodMax=of.period_max if of.period_unit and of.period else None,
        periodUnit=of.period_unit if of.period else None,
        when=list(of.when),
    )
    names = ("frequency", "frequency_max", "period", "period_max", "period_unit")
    held = {_ELEMENTS.get(name, name) for name in repeat}
    beside = {name: getattr(of, name) for name in names if name not in held}
    return present(
        extension=parts("timing", beside),
        repeat=repeat,
        code={"text": terms.text_of(of.printed)},
    )


def _whole(of: Decimal | None) -> int | None:
    return int(of) if of is not None and of == of.to_integral_value() and of > 0 else None


def _beside(attributes: MedicationAttributes) -> dict[str, Any]:
    """Return what MedicationStatement has no element for."""
    dose = attributes.dose
    return {
        "ingredient": attributes.ingredient,
        "status": attributes.status,
        "strength": [terms.measured(each) for each in attributes.strength],
        "daily_dose": terms.measured(attributes.daily_dose),
        "previous_dose": terms.measured(attributes.previous_dose),
        "dose": terms.measured(dose) if dose and not _dose(dose) else None,
    }
