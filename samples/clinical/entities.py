"""The clinical truth of one entity: structured values and accepted codes."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from samples.clinical import codes, special, values
from samples.clinical.values import Json
from samples.truth import ClinicalTruth, EntityTruth

COMBINED = {
    "sacubitril-valsartan": ("sacubitril-valsartan", "sacubitril / valsartan"),
    "trimethoprim-sulfamethoxazole": (
        "trimethoprim-sulfamethoxazole",
        "trimethoprim / sulfamethoxazole",
        "sulfamethoxazole / trimethoprim",
        "sulfamethoxazole-trimethoprim",
    ),
    "ipratropium-albuterol": ("ipratropium-albuterol", "ipratropium / albuterol"),
    "metoprolol succ": ("metoprolol succinate", "metoprolol succ", "metoprolol"),
    "metoprolol succinate": ("metoprolol succinate", "metoprolol"),
    "metoprolol tartrate": ("metoprolol tartrate", "metoprolol"),
    "vitamin d3": ("vitamin d3", "cholecalciferol", "vitamin d3 (cholecalciferol)"),
    "alendronate": ("alendronate", "alendronic acid"),
}
"""Name of a medication → ingredients of the same meaning."""
CONVERSIONS: dict[str, Callable[[float], tuple[float, str]]] = {
    "temp": lambda f: ((f - 32) * 5 / 9, "Cel"),
    "weight": lambda lb: (lb * 0.45359237, "kg"),
    "height": lambda inch: (inch * 2.54, "cm"),
}
"""Vital sign → exact definition of the metric unit."""


@dataclass(frozen=True)
class SampleSetting:
    """The place of an entity in its record, and what the lines around the entity say."""

    record: str
    encounter: int
    visit: dt.date
    """First day of the encounter."""
    day: dt.date | None
    """The day that the text states for a measurement of this line."""
    indication: str | None
    """The indication that the row of a medication table prints."""


def truth_of(entity: EntityTruth, place: SampleSetting) -> ClinicalTruth:
    """Return the clinical truth of one entity."""
    required, allowed = copy.deepcopy(_READERS[entity.category](entity, place))
    accepted = codes.accepted(entity.category, entity.name, entity.assertion)
    for each in special.of(place.record, place.encounter, entity.name, entity.line):
        if entity.assertion == "negated" and entity.category in ("condition", "symptom"):
            continue
        _merge(required, each.required)
        _merge(allowed, each.allowed)
        if each.icd is not None and entity.assertion not in ("negated", "family"):
            accepted = [code and f"ICD10CM|{code}" for code in each.icd]
    for name in required:
        if not isinstance(required[name], dict) or "one_of" in required[name]:
            allowed.pop(name, None)
    return ClinicalTruth(
        attributes=required,
        allowed=allowed,
        codes=accepted,
        optional_codes=codes.optional_codes(entity.category, entity.name),
    )


def _merge(into: Json, more: Json) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and "one_of" not in value:
            into[key] = {**into.get(key, {}), **copy.deepcopy(value)}
        else:
            into[key] = copy.deepcopy(value)


def _part(name: str, pair: tuple[Json, Json], required: Json, allowed: Json) -> None:
    required[name] = pair[0]
    if pair[1]:
        allowed[name] = pair[1]


def _lab(entity: EntityTruth, place: SampleSetting) -> tuple[Json, Json]:
    required: Json = {}
    allowed: Json = {"effective": f"{place.day}"} if place.day else {}
    value = entity.value or ""
    if values.number(value) is None:
        required["value_text"] = value
    else:
        _part("value", values.quantity(value, entity.unit), required, allowed)
        if found := values.converted(value, codes.LABS.get(entity.name.casefold())):
            allowed["converted"] = found
    if entity.range:
        required["reference_range"] = values.reference_range(entity.range)
        if flag := values.flag(value, required["reference_range"]):
            # A value `<1.0` lies somewhere below 1.0; a range from 0.0 then contains the value.
            (allowed if value[0] in "<>" else required)["computed_flag"] = flag
    if entity.flag:
        required["printed_flag"] = entity.flag
    return required, allowed


def _vital(entity: EntityTruth, place: SampleSetting) -> tuple[Json, Json]:
    required: Json = {}
    allowed: Json = {"effective": f"{place.day}"} if place.day else {}
    value = entity.value or ""
    if entity.name.casefold() in ("bp", "blood pressure"):
        parts = [values.quantity(part, entity.unit) for part in value.split("/")]
        required["components"] = [part for part, _ in parts]
        allowed["value"] = {"unit": parts[0][0]["unit"]}
        return required, allowed
    if "/" in value:
        allowed["value"] = {"number": value.partition("/")[0], "unit": "{score}"}
        return required, allowed
    _part("value", values.quantity(value, entity.unit), required, allowed)
    if entity.unit is None:
        allowed["value"] = {"unit": values.one_of(values.UNITS["/min"])}
    if convert := CONVERSIONS.get(entity.name.casefold()):
        amount, unit = convert(float(value))
        allowed["converted"] = {"number": f"{amount:.3f}", "unit": unit}
    return required, allowed


def _medication(entity: EntityTruth, place: SampleSetting) -> tuple[Json, Json]:
    key = entity.name.casefold()
    required: Json = {"ingredient": values.one_of(COMBINED.get(key, (key,)))}
    allowed: Json = {}
    if entity.strength:
        required["strength"] = [values.dose(entity.strength)[0]]
    if entity.dose:
        _part("dose", values.dose(entity.dose), required, allowed)
    if entity.previous_dose:
        _part("previous_dose", values.dose(entity.previous_dose), required, allowed)
    if entity.route:
        required["route"] = values.one_of(values.ROUTES[entity.route])
    if entity.frequency:
        _part("timing", values.TIMINGS[entity.frequency], required, allowed)
        if entity.dose and (total := values.daily(required["dose"], required["timing"])):
            required["daily_dose"] = total
            if unit := allowed.get("dose"):
                allowed["daily_dose"] = unit
    if entity.status:
        required["status"] = entity.status
    elif entity.assertion == "negated":
        allowed["status"] = {"one_of": ["not_started", "stopped"]}
    else:
        allowed["status"] = "active"
    if entity.step:
        required["step"] = entity.step
    if place.indication:
        required["indication"] = place.indication
    return required, allowed


def _condition(entity: EntityTruth, place: SampleSetting) -> tuple[Json, Json]:
    if entity.assertion == "negated":
        return {"verification_status": "refuted"}, {}
    if entity.assertion == "hypothetical":
        doubt = ["unconfirmed", "provisional", "differential"]
        return {}, {"verification_status": {"one_of": doubt}}
    if entity.assertion == "family":
        return {}, {"verification_status": "confirmed"}
    over = {"one_of": ["inactive", "resolved", "remission"]}
    status = over if entity.assertion == "historical" else "active"
    return {}, {"clinical_status": status, "verification_status": "confirmed"}


def _allergy(entity: EntityTruth, place: SampleSetting) -> tuple[Json, Json]:
    required: Json = {"substance": entity.name}
    if entity.reaction:
        required["reaction"] = entity.reaction
    return required, {"clinical_status": "active", "verification_status": "confirmed"}


def _immunization(entity: EntityTruth, place: SampleSetting) -> tuple[Json, Json]:
    return {"product": entity.name, "status": "completed"}, {}


def _procedure(entity: EntityTruth, place: SampleSetting) -> tuple[Json, Json]:
    if entity.assertion == "negated":
        return {"status": "not-done"}, {}
    if entity.assertion == "hypothetical":
        return {}, {"status": {"one_of": ["preparation", "unknown"]}}
    allowed: Json = {"status": "completed"}
    if entity.assertion == "present":
        allowed["performed"] = f"{place.visit}"
    return {}, allowed


_READERS: dict[str, Callable[[EntityTruth, SampleSetting], tuple[Json, Json]]] = {
    "allergy": _allergy,
    "condition": _condition,
    "immunization": _immunization,
    "lab": _lab,
    "medication": _medication,
    "procedure": _procedure,
    "symptom": _condition,
    "vital": _vital,
}
