"""Structure the statuses, the dates, the severity and the place of a condition or a symptom.

The values are those of FHIR R4B `Condition`. A status that no text states is None: a historical
condition can be inactive or resolved, and only the text decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

from pipeline.clinical.attributes import (
    ClinicalStatus,
    ConditionAttributes,
    Severity,
    VerificationStatus,
)
from pipeline.clinical.condition_reading import is_of_patient
from pipeline.clinical.dates import partial_date
from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.structured import Printed, Structured

_ENDED = ("inactive", "remission", "resolved")
"""FHIR con-4: a condition with an end is inactive, in remission or resolved."""
_PRESENT = ("active", "recurrence", "relapse")
_FIGURED_YEAR = re.compile(r"\d{4}|\d[/.-]\d{2}\b|['’]\d{2}\b")
"""A date that names its year; words such as `3 days ago` stay text."""
_SIDES = {
    **dict.fromkeys(("left", "l", "lt"), "left"),
    **dict.fromkeys(("right", "r", "rt"), "right"),
    **dict.fromkeys(("bilateral", "bilaterally", "both", "b/l"), "bilateral"),
}
_POSSIBLE = ("unconfirmed", "provisional", "differential")


def condition_attributes(printed: Printed) -> Structured:
    """Return the attributes of a condition or symptom.

    A condition of another person keeps its place and its denial: the rest is about the patient.
    """
    values: dict[str, Any] = {
        "body_site": printed.body_site,
        "laterality": _SIDES.get((printed.laterality or "").strip(" .").lower()),
    }
    if not is_of_patient(printed.facts):
        values["verification_status"] = "refuted" if printed.facts.negated else None
        return Structured(attributes=ConditionAttributes.model_validate(values))
    verification, flags = _verification(printed)
    values["verification_status"] = verification
    if verification in ("refuted", "entered-in-error"):
        # FHIR con-5 forbids a clinical status of an error, and a denied condition has none.
        if printed.status:
            flags.append(flagged(EnrichmentFlag.STATUS_CONTRADICTS))
        return _built(values, flags)
    status = _one_of(ClinicalStatus, printed.status)
    values["clinical_status"] = status
    values["severity"] = _one_of(Severity, printed.severity)
    values["printed_onset"] = printed.start
    values["onset"] = _day(printed, printed.start, "onset", flags)
    values["abatement"] = _day(printed, printed.stop, "abatement", flags)
    flags.extend(_contradictions(printed, values))
    return _built(values, flags)


def _built(values: dict[str, Any], flags: list[str]) -> Structured:
    return Structured(
        attributes=ConditionAttributes.model_validate(values), flags=tuple(dict.fromkeys(flags))
    )


def _verification(printed: Printed) -> tuple[str | None, list[str]]:
    """Return the verification status. Pass 1's denial is stronger than any other reading."""
    said = _one_of(VerificationStatus, printed.verification)
    facts = printed.facts
    if said == "entered-in-error" or facts.status == "entered_in_error":
        return "entered-in-error", []
    flag = flagged(EnrichmentFlag.STATUS_CONTRADICTS)
    if facts.negated:
        return "refuted", [flag] if said not in (None, "refuted") else []
    if facts.certainty in ("possible", "hypothetical"):
        if said in _POSSIBLE:
            return said, []
        return "unconfirmed", [flag] if said else []
    if said == "refuted" and (facts.negated is False or facts.certainty == "certain"):
        return said, [flag]
    return said, []


def _contradictions(printed: Printed, values: dict[str, Any]) -> Iterator[str]:
    """Yield a flag if the statuses of the entity exclude each other."""
    status, facts = values["clinical_status"], printed.facts
    flag = flagged(EnrichmentFlag.STATUS_CONTRADICTS)
    if status in _PRESENT and (values["abatement"] or facts.temporality == "historical"):
        yield flag
    if status in ("resolved", "inactive") and facts.temporality == "current":
        yield flag
    if facts.temporality == "planned" or (facts.certainty == "hypothetical" and status):
        yield flag
    onset, end, seen = values["onset"], values["abatement"], facts.encounter_date
    if onset and end and onset[: len(end)] > end[: len(onset)]:
        yield flagged(EnrichmentFlag.DATE_NOT_UNDERSTOOD, "onset")
    if onset and seen and onset > seen.isoformat()[: len(onset)]:
        yield flagged(EnrichmentFlag.DATE_NOT_UNDERSTOOD, "onset")
    if end and seen and end > seen.isoformat()[: len(end)] and status in _ENDED:
        yield flagged(EnrichmentFlag.DATE_NOT_UNDERSTOOD, "abatement")


def _day(printed: Printed, text: str | None, attribute: str, flags: list[str]) -> str | None:
    """Return a printed date with a year; a length of time stays text and has no flag."""
    if not text or not _FIGURED_YEAR.search(text):
        return None
    plain = re.sub(r"^(?:onset(?:[ ]date)?|began|started|beginning|starting)\b[: ]*(?:of|was)?",
                   "", text.strip(), flags=re.I)  # fmt: skip
    day, raised = partial_date(
        plain,
        encounter_date=printed.facts.encounter_date,
        order=printed.order,
        is_past=True,
        attribute=attribute,
    )
    flags.extend(raised)
    return day


def _one_of(values: Any, text: str | None) -> Any:
    low = (text or "").strip(" .").lower()
    return low if low in get_args(values) else None
