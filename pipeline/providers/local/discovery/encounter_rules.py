"""The rules that decide whether a head continues an encounter or begins another.

Only values that both sides state can split an encounter. A hospital stay contains the notes of its
days. The functions are pure.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

from pipeline.core.identity import Identity, compare
from pipeline.core.identity.facilities import same_facility
from pipeline.providers.local.discovery.document_heads import DocumentHead
from pipeline.providers.local.discovery.labels import Weight
from pipeline.providers.schemas import EncounterType

_OPEN_STAY = timedelta(days=10)
"""The most days between a stay's last note and its next, if no discharge date is stated."""
_NEXT_NOTE = timedelta(days=3)
"""The most days between two notes of a stay, if no admission date is stated."""
_BEDSIDE = frozenset({"note", "inpatient", "procedure", "consultation", None})
"""Kinds of document that belong to a stay. A laboratory or radiology report is an encounter of its
own."""
_VISITS = frozenset(
    [
        "office_visit",
        "emergency",
        "inpatient",
        "outpatient",
        "consultation",
        "telehealth",
        "procedure",
        "other",
    ]
)


class Open:
    """The facts known about an encounter while its pages are read."""

    def __init__(self, head: DocumentHead) -> None:
        self.head = replace(head)
        self.type: EncounterType = head.encounter_type
        self.last_day = head.day or head.admitted
        self.encounters = {_encounter_mark(head)} - {None}

    @property
    def day(self) -> date | None:
        """The day on which the encounter began."""
        return self.head.admitted or self.head.day

    @property
    def patient(self) -> Identity:
        """The patient of the encounter, as far as stated."""
        return who(self.head)

    def inherit(self, before: Open) -> None:
        """Copy the statements of the document's head: a bare date begins no document."""
        for name in ("name", "born", "number", "facility", "clinician"):
            setattr(self.head, name, getattr(before.head, name))
        if self.type == "other" or before.type in ("laboratory", "imaging", "pathology"):
            self.type = before.type

    def take_patient(self, head: DocumentHead) -> None:
        """Add an incomplete head's statements about the patient and the author."""
        mine = self.head
        mine.name = mine.name or head.name
        mine.born = mine.born or head.born
        mine.number = mine.number or head.number
        mine.clinician = mine.clinician or head.clinician

    def take(self, head: DocumentHead) -> None:
        """Add the statements of another head of the same encounter."""
        mine = self.head
        self.take_patient(head)
        mine.facility = mine.facility or head.facility
        mine.discharged = mine.discharged or head.discharged
        if self.type == "inpatient" or mine.day is None:
            mine.admitted = mine.admitted or head.admitted
        if mine.day is None and mine.admitted is None:
            mine.day, mine.time, mine.weight = head.day, head.time, head.weight
        if self.type == "other":
            self.type = head.encounter_type
        days = [day for day in (self.last_day, head.day, head.admitted) if day]
        self.last_day = max(days, default=None)
        self.encounters |= {_encounter_mark(head)} - {None}

    def is_same(self, head: DocumentHead) -> bool:
        """Return whether a later head belongs to this encounter, despite documents between."""
        if compare(self.patient, who(head)).disagrees:
            return False
        facility = self.head.facility and head.facility
        if facility and not same_facility(self.head.facility or "", head.facility or ""):
            return False
        if self.encounters & {_encounter_mark(head)}:
            return True
        agree = compare(self.patient, who(head)).agrees
        day = head.admitted or head.day
        return bool(
            agree and facility and day and day == self.day and head.encounter_type == self.type
        )


def judge(known: Open, head: DocumentHead) -> str:
    """Return the rule by which `head` begins another encounter; "" if the encounter continues."""
    if compare(known.patient, who(head)).disagrees:
        return "patient"
    mine = known.head
    if (
        mine.facility
        and head.facility
        and head.letterhead
        and not same_facility(mine.facility, head.facility)
    ):
        return "facility"
    if known.encounters & {_encounter_mark(head)}:
        return ""
    if mine.admitted and head.admitted:
        return "" if mine.admitted == head.admitted else "service_date"
    if known.day is None:
        dated = head.day or head.admitted
        return "head" if dated and (head.letterhead or head.titled) else ""
    if _in_stay(known, head):
        return ""
    if head.admitted and known.type != "inpatient":
        return "document_kind" if known.day == head.admitted else "service_date"
    if _other_day(known, head):
        return "service_date"
    if _other_kind(known, head):
        return "document_kind"
    return ""


def who(head: DocumentHead) -> Identity:
    """Return the patient that a head names."""
    return Identity(name=head.name, birth_date=head.born, identifier=head.number)


def _in_stay(known: Open, head: DocumentHead) -> bool:
    if known.type != "inpatient" or head.kind not in _BEDSIDE:
        return False
    if head.day is None:
        return True
    admitted, discharged = known.head.admitted, known.head.discharged
    if admitted is not None:
        last = (
            discharged + timedelta(days=1)
            if discharged
            else (known.last_day or admitted) + _OPEN_STAY
        )
        hospital = discharged is not None or head.kind is not None
        return hospital and admitted <= head.day <= last
    if known.last_day is None:
        return head.kind is not None
    return head.kind is not None and known.last_day <= head.day <= known.last_day + _NEXT_NOTE


def _other_day(known: Open, head: DocumentHead) -> bool:
    if head.day is None or known.day is None or head.day == known.day:
        return False
    if head.day == known.head.day:
        return False
    if head.weight is Weight.BARE and not (head.titled or head.letterhead):
        return False
    cited = head.weight is not None and head.weight <= Weight.SPECIMEN
    return not (cited and head.lone and known.type not in ("laboratory", "imaging", "pathology"))


def _other_kind(known: Open, head: DocumentHead) -> bool:
    kind = head.encounter_type
    if not (head.titled or head.letterhead) or "other" in (kind, known.type) or kind == known.type:
        return False
    if head.kind == "note":
        return known.type not in _VISITS
    report = {"laboratory", "imaging", "pathology", "immunization"}
    if head.kind is None:
        return kind in report and (head.day is not None or known.type not in report)
    return True


def _encounter_mark(head: DocumentHead) -> tuple[date, str] | None:
    if head.weight is Weight.ENCOUNTER and head.day is not None:
        return (head.day, head.time)
    return None
