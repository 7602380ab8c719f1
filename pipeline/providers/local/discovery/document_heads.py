"""The heads of documents inside a record: letterhead, title and labelled fields together.

A head states the date, the facility, the patient and the kind of a document. A value that the head
does not state is None. The functions are pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from pipeline.clinical.date_forms import DateOrder
from pipeline.providers.local.discovery.labels import Field, Weight, fields_of
from pipeline.providers.local.text.titles import Kind, facility_of, names_place, title_of
from pipeline.providers.schemas import EncounterType

_BY_FACILITY: tuple[tuple[EncounterType, re.Pattern[str]], ...] = (
    ("laboratory", re.compile(r"(?i)laborator|diagnostics|\blabs?\b")),
    ("imaging", re.compile(r"(?i)imaging|radiology")),
    ("emergency", re.compile(r"(?i)emergency|urgent care")),
    ("outpatient", re.compile(r"(?i)rehabilitation|physical therapy")),
)
_BY_LABEL: tuple[tuple[EncounterType, re.Pattern[str]], ...] = (
    ("laboratory", re.compile(r"collect|specimen|drawn|draw")),
    ("imaging", re.compile(r"exam|study|scan")),
    ("emergency", re.compile(r"arriv")),
    ("procedure", re.compile(r"procedure|operation|surgery")),
    ("consultation", re.compile(r"consult")),
    ("office_visit", re.compile(r"service|dos|visit|encounter|seen|appointment")),
)
_DATED = re.compile(r"\d{4}(?:\s+\d{1,2}:\d{2})?")


@dataclass(kw_only=True)
class DocumentHead:
    """The statements of a document's head; None marks a value that the head does not state."""

    name: str | None = field(default=None, repr=False)
    name_label: str = ""
    """A `Name:` alone may belong to a drug or a relative. It counts only beside a number or birth
    date."""
    born: str | None = field(default=None, repr=False)
    number: str | None = field(default=None, repr=False)
    facility: str | None = field(default=None, repr=False)
    letterhead: bool = False
    clinician: str | None = field(default=None, repr=False)
    kind: Kind | None = None
    titled: bool = False
    day: date | None = None
    time: str = ""
    weight: Weight | None = None
    label: str = ""
    opens: bool = False
    """The date's label is the first word of its line."""
    admitted: date | None = None
    discharged: date | None = None

    @property
    def who(self) -> bool:
        """Return whether the head names a patient in any way."""
        return self.name is not None or self.number is not None or self.born is not None

    @property
    def lone(self) -> bool:
        """Return whether the head is only a date inside a document."""
        return not (self.who or self.titled or self.letterhead)

    @property
    def complete(self) -> bool:
        """Return whether the head can begin a document of its own."""
        about = self.day is not None or self.admitted is not None
        headed = self.titled or self.letterhead
        alone = self.opens and self.weight is not None and self.weight >= Weight.SERVICE
        return alone or (about and (self.who or headed)) or (self.who and headed)

    @property
    def encounter_type(self) -> EncounterType:
        """The kind of encounter by the head's title, its facility, or its date's label."""
        if self.kind is not None and self.kind != "note":
            return self.kind
        if self.admitted is not None:
            return "inpatient"
        for found, pattern in _BY_FACILITY:
            if self.facility and pattern.search(self.facility):
                return found
        for found, pattern in _BY_LABEL:
            if self.label and pattern.search(self.label):
                return found
        return "office_visit" if self.kind == "note" else "other"


def read_head(lines: Sequence[str], order: DateOrder | None = None) -> DocumentHead:
    """Read the lines of one head; `order` is the order of day and month of its source.

    The first statement counts. A date with a heavier label wins.
    """
    head = DocumentHead()
    for line in lines:
        fields = fields_of(line, order)
        if not fields:
            _read_unlabelled(head, line)
            continue
        for found in fields:
            _read_field(head, found)
        behind = _DATED.split(line)
        kind = title_of(behind[-1]) if len(behind) > 1 else None
        if kind is not None and head.kind is None:
            head.kind, head.titled = kind, True
    if head.name_label == "name" and head.born is None and head.number is None:
        head.name = None
    return head


def _read_unlabelled(head: DocumentHead, line: str) -> None:
    facility = facility_of(line)
    if facility is not None and not head.letterhead:
        head.letterhead = True
        head.facility = head.facility or facility
        if head.kind is None and re.search(r"(?i)emergency department", facility):
            head.kind = "emergency"
        dashed = re.split(r"\s[-–—]\s", line.strip(), maxsplit=1)
        kind = title_of(dashed[1]) if len(dashed) == 2 else None
    else:
        kind = title_of(line)
    if kind is not None:
        head.titled = True
        if head.kind in (None, "note"):
            head.kind = kind


def _read_field(head: DocumentHead, head_field: Field) -> None:
    if head_field.role == "date" and head_field.day is not None:
        if head.weight is None or head_field.weight > head.weight:
            head.day, head.time, head.weight = head_field.day, head_field.time, head_field.weight
            head.label, head.opens = head_field.label, head_field.opens
    elif head_field.role == "admitted" and head_field.day is not None:
        head.admitted = head.admitted or head_field.day
    elif head_field.role == "discharged" and head_field.day is not None:
        head.discharged = head.discharged or head_field.day
    elif head_field.role == "born" and head_field.day is not None:
        head.born = head.born or head_field.day.isoformat()
    elif head_field.role == "number":
        head.number = head.number or head_field.text
    elif head_field.role == "name":
        if head.name is None or (head.name_label == "name" and head_field.label != "name"):
            head.name, head.name_label = head_field.text, head_field.label
    elif head_field.role == "facility":
        if not head.letterhead:
            head.facility = head_field.text
    elif head_field.role == "clinician":
        if names_place(head_field.text) and not re.search(r"(?i)\bm\.?d\b", head_field.text):
            head.facility = head.facility or head_field.text
        else:
            head.clinician = head.clinician or head_field.text
