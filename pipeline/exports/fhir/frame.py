"""The resources about the record itself: patient, document, encounters, lists, warnings."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.exports.fhir import terms
from pipeline.exports.fhir.context import Context
from pipeline.exports.fhir.provenance import instant
from pipeline.exports.fhir.terms import (
    NAMESPACE,
    Json,
    coding,
    derived_id,
    own,
    present,
    reference,
    tagged,
    text_of,
)
from pipeline.exports.rows import EncounterRow, ListItemRow, RecordRow

_CLASSES = {
    "office_visit": ("AMB", "ambulatory"),
    "outpatient": ("AMB", "ambulatory"),
    "emergency": ("EMER", "emergency"),
    "inpatient": ("IMP", "inpatient encounter"),
    "telehealth": ("VR", "virtual"),
}
"""Encounter type → code of ActEncounterCode (http://hl7.org/fhir/R4/v3/ActEncounterCode/vs.html).
A laboratory or imaging report does not say which class its encounter had."""
_MOST_BYTES = 2**31 - 1
"""The greatest FHIR `unsignedInt`."""
LIST_TITLES = {
    "problem": "Problems",
    "medication": "Medications",
    "allergy": "Allergies",
    "lab_series": "Laboratory series",
}


def patient(record: RecordRow) -> Json:
    """Return the Patient: the pseudonym, and the caller's own reference. medproc knows no name."""
    known = {"pseudonym": record.pseudonym, "reference": record.patient_reference}
    return {
        "resourceType": "Patient",
        "id": str(record.patient_id),
        "identifier": [
            {"system": f"{NAMESPACE}/sid/patient-{kind}", "value": text_of(value)}
            for kind, value in known.items()
            if value
        ],
    }


def document(record: RecordRow) -> Json:
    """Return the DocumentReference of the submitted file, without its name."""
    size = record.size_bytes if record.size_bytes <= _MOST_BYTES else None
    return {
        "resourceType": "DocumentReference",
        "id": str(record.id),
        "masterIdentifier": {"system": "urn:ietf:rfc:3986", "value": terms.urn(record.id)},
        "identifier": [{"system": f"{NAMESPACE}/sid/sha256", "value": record.sha256}],
        "status": "current",
        "subject": reference(record.patient_id),
        "date": instant(record.submitted_at),
        "content": [{"attachment": present(contentType=record.media_type, size=size)}],
    }


def encounter(record: RecordRow, row: EncounterRow) -> Json:
    """Return the Encounter. No text states its status, so the status is `unknown`."""
    known = _CLASSES.get(row.encounter_type)
    system = f"{terms.TERMINOLOGY}/{'v3-ActCode' if known else 'data-absent-reason'}"
    start, end = row.encounter_date_start, row.encounter_date_end
    return present(
        resourceType="Encounter",
        id=str(row.id),
        meta=tagged() if row.entities_published_at else tagged("record-incomplete"),
        # An identifier is unique among all records; the index alone is not.
        identifier=[
            {"system": f"{NAMESPACE}/sid/encounter", "value": f"{record.id}/{row.encounter_index}"}
        ],
        status="unknown",
        class_=coding(system, *(known or ("unknown", None))),
        type=[{"text": row.encounter_type}],
        subject=reference(record.patient_id),
        participant=[{"individual": {"display": text_of(row.clinician_name)}}]
        if row.clinician_name
        else None,
        period=present(
            start=start.isoformat() if start else None, end=end.isoformat() if end else None
        ),
        serviceProvider={"display": text_of(row.facility_name)} if row.facility_name else None,
    )


def outcome(record: RecordRow) -> Json | None:
    """Return the OperationOutcome: what is missing, what is not reviewed, and the warnings."""
    issues = list(_issues(record))
    if not issues:
        return None
    made = derived_id(record.id, "outcome")
    return {"resourceType": "OperationOutcome", "id": str(made), "issue": issues}


def record_list(context: Context, item: ListItemRow) -> Json:
    """Return the List of one entry of the record's lists: the resources that support it."""
    title = LIST_TITLES.get(item.kind, item.kind)
    return present(
        resourceType="List",
        id=str(item.id),
        meta=tagged("contradicted") if item.contradictions else None,
        status="current",
        mode="snapshot",
        title=text_of(item.name),
        code={"coding": [own("list", item.kind, title)]},
        subject=context.patient,
        date=instant(context.record.taken_at),
        entry=[{"item": reference(each)} for each in item.entity_ids],
    )


def issues_of(context: Context, item: ListItemRow) -> Iterator[Json]:
    """Yield a DetectedIssue for each contradiction of a list's entry; nothing is resolved."""
    for number, each in enumerate(item.contradictions):
        yield {
            "resourceType": "DetectedIssue",
            "id": str(derived_id(item.id, f"contradiction/{number}")),
            "status": "preliminary",
            "code": {"coding": [own("contradiction", each["kind"])]},
            "patient": context.patient,
            "implicated": [{"reference": f"urn:uuid:{one}"} for one in each["entity_ids"]],
            "detail": text_of(each["message"]),
        }


def _issues(record: RecordRow) -> Iterator[Json]:
    for notice in record.notices:
        code = "incomplete" if notice == record.incomplete_note else "informational"
        yield {"severity": "warning", "code": code, "details": {"text": notice}}
    for warning, message in zip(record.warnings, record.warnings_in_words, strict=True):
        details = {"coding": [own("warning", warning["code"])], "text": text_of(message)}
        yield {"severity": "warning", "code": "processing", "details": details}
