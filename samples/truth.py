"""The truth beside each sample record: the report of a perfect reader.

Pages are 1-based, dates ISO 8601, quotes verbatim from the page. `samples/README.md` explains each
field.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

HERE = Path(__file__).parent

Category = Literal[
    "medication",
    "condition",
    "symptom",
    "vital",
    "lab",
    "allergy",
    "immunization",
    "procedure",
]
Assertion = Literal["present", "negated", "historical", "hypothetical", "family"]
Status = Literal[
    "active", "stopped", "on_hold", "planned", "not_started", "changed", "entered_in_error"
]
EncounterType = Literal[
    "office_visit",
    "emergency",
    "inpatient",
    "outpatient",
    "laboratory",
    "imaging",
    "procedure",
    "consultation",
    "telehealth",
    "immunization",
]


class _Truth(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ClinicalTruth(_Truth):
    """What Passes 1.5 and 2 must say about an entity; `samples/README.md` explains the notation."""

    attributes: dict[str, Any] = {}
    """Values that must be read, in the terms of `pipeline.clinical.attributes`."""
    allowed: dict[str, Any] = {}
    """Values that may be absent; a value that is present must be equal."""
    codes: list[str | None] = [None]
    """Accepted codes as `SYSTEM|code`; None means no code."""
    optional_codes: list[str] = []
    """Codes of systems that an installation may have loaded (UNII)."""


class EntityTruth(_Truth):
    """One clinical fact and the words on the page that state it."""

    category: Category
    quote: str = Field(min_length=1)
    page: int = Field(ge=1)
    line: str
    """The whole printed line of the quote; it distinguishes two equal quotes of a page."""
    name: str = Field(min_length=1)
    value: str | None = None
    unit: str | None = None
    flag: str | None = None
    range: str | None = None
    strength: str | None = None
    """What the product contains."""
    dose: str | None = None
    """What is taken each time."""
    previous_dose: str | None = None
    route: str | None = None
    frequency: str | None = None
    status: Status | None = None
    step: int | None = Field(default=None, ge=1)
    """1-based position in a taper or a split dose."""
    reaction: str | None = None
    assertion: Assertion = "present"
    clinical: ClinicalTruth | None = None


class SpanTruth(_Truth):
    """The place of an encounter on one page: its first and last printed line."""

    page: int = Field(ge=1)
    first_line_text: str
    last_line_text: str


class EncounterTruth(_Truth):
    """One visit, stay or report."""

    index: int = Field(ge=0)
    type: EncounterType
    facility: str
    date_start: dt.date
    date_end: dt.date | None
    pages: list[int]
    spans: list[SpanTruth]
    patient_mismatch: bool
    nkda: bool
    entities: list[EntityTruth]


class ListedTruth(_Truth):
    """One entry of a list across encounters."""

    name: str
    encounters: list[int]
    """Indexes of the encounters that support the entry."""
    values: int | None = None
    """Lab series only: the number of results."""


class ContradictionTruth(_Truth):
    """Statements of one encounter that exclude each other."""

    list: Literal["problem", "medication", "allergy"]
    name: str
    encounter: int
    reason: str


class ListsTruth(_Truth):
    """The lists of the record across its encounters."""

    problems: list[ListedTruth]
    medications: list[ListedTruth]
    allergies: list[ListedTruth]
    lab_series: list[ListedTruth]
    optional: list[str]
    """Findings that a reader may list as problems or not."""
    apart: list[tuple[str, str]]
    """Names that no entry may join."""
    contradictions: list[ContradictionTruth]
    """Contradictions that must be shown; others are allowed."""
    consistent: list[ContradictionTruth]
    """Statements that only look like a contradiction; showing one is wrong."""


class NarrativeTruth(_Truth):
    """Facts of the narrative of one encounter; None as encounter means the whole record."""

    encounter: int | None
    facts: list[list[str]]
    """Words that one supported sentence contains together."""
    absent: list[str]
    """Words that no supported sentence contains."""
    not_affirmed: list[str]
    """Terms that occur only beside a negation, a doubt, a condition or a relative."""


class PatientTruth(_Truth):
    """The patient of the record."""

    name: str
    birth_date: dt.date
    identifier: str
    sex: Literal["F", "M"]


class Record(_Truth):
    """The truth of one file."""

    file: str
    pages: int = Field(ge=1)
    text_layer: bool
    patient: PatientTruth
    encounters: list[EncounterTruth]
    unassigned_pages: list[int]
    blank_pages: list[int]
    unsupported_language_pages: list[int]
    rotated_pages: dict[int, int]
    """Scans only: page → clockwise degrees by which the page is turned."""
    page_texts: list[str] | None
    """Scans only: the clean text of each page before the scan."""
    lists: ListsTruth | None = None
    narratives: list[NarrativeTruth] | None = None


def load(name: str) -> Record:
    """Read the truth of the sample `name` (without suffix); raise on any deviation."""
    return Record.model_validate_json((HERE / f"{name}.truth.json").read_text("utf-8"))


def dump(record: Record) -> str:
    """Return `record` as the text of its file; entities omit attributes that are not stated.

    The clinical truth of an entity is one line, so that the file of a long record stays readable.
    """
    content = record.model_dump(mode="json")
    one_line: list[str] = []
    for encounter in content["encounters"]:
        encounter["entities"] = [
            {key: value for key, value in entity.items() if value is not None}
            for entity in encounter["entities"]
        ]
        for entity in encounter["entities"]:
            if clinical := entity.get("clinical"):
                found = {key: value for key, value in clinical.items() if value}
                one_line.append(json.dumps(found, ensure_ascii=False))
                entity["clinical"] = f"<{len(one_line) - 1}>"
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    return re.sub(r'("clinical": )"<(\d+)>"', lambda m: m[1] + one_line[int(m[2])], text)
