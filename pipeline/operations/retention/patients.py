"""The records of one patient, for an erasure. In doubt the request is refused.

A record belongs to the patient whom its submission named; nothing is matched by a name. Records of
other patients with equal digests are only reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from pipeline.core.errors import ErrorCode, UserError, UserErrorCode
from pipeline.core.identity import compare_digests
from pipeline.models import Patient, ShellFile
from pipeline.models.fields import storable

SHOWN = 20
"""Most records that are reported as similar."""


@dataclass(frozen=True, kw_only=True)
class PatientRecords:
    """The records of a patient."""

    records: tuple[UUID, ...]
    similar: tuple[UUID, ...]
    """Records of other patients whose digests agree with those of this patient."""


def records_of(reference: str) -> PatientRecords:
    """Return the records of the patient with the caller's own reference.

    Raises UserError NOT_FOUND or STATE_CONFLICT.
    """
    patient = Patient.objects.filter(reference=storable(reference).strip()).first()
    if patient is None:
        # Without the reference, which is personal data.
        raise UserError("no patient has this reference", code=UserErrorCode.NOT_FOUND)
    return _records(patient)


def records_beside(record_id: UUID) -> PatientRecords:
    """Return the records of the patient of a record, this record among them.

    Raises UserError NOT_FOUND or STATE_CONFLICT.
    """
    record = ShellFile.objects.select_related("patient").filter(id=record_id).first()
    if record is None:
        raise UserError(f"there is no record {record_id}", code=UserErrorCode.NOT_FOUND)
    return _records(record.patient)


def _records(patient: Patient) -> PatientRecords:
    found = ShellFile.objects.filter(patient=patient).order_by("created_at", "id")
    for record_id, warnings in found.values_list("id", "warnings"):
        if any(each.get("code") == ErrorCode.PATIENT_MISMATCH for each in warnings):
            raise UserError(
                f"record {record_id} has pages that name another patient; erase its records by"
                " their ids, after a look at these pages",
                code=UserErrorCode.STATE_CONFLICT,
            )
    ids = tuple(found.values_list("id", flat=True))
    return PatientRecords(records=ids, similar=_similar(patient))


def _similar(patient: Patient) -> tuple[UUID, ...]:
    """Return the records of other patients that state the same person."""
    own = patient.identity_digests
    if not own:
        return ()
    # Digests agree only if those of the name or of the number are equal.
    equal = Q(pk__in=[])
    for kind in {"name", "mrn"} & own.keys():
        equal |= Q(**{f"identity_digests__{kind}": own[kind]})
    alike = [
        other.id
        for other in Patient.objects.filter(equal).exclude(id=patient.id)
        if other.identity_digests.get("key") == own.get("key")
        and compare_digests(own, other.identity_digests).agrees
    ]
    found = ShellFile.objects.filter(patient_id__in=alike).order_by("created_at", "id")
    return tuple(found.values_list("id", flat=True)[:SHOWN])
