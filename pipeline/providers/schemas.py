"""The replies that every provider must give, as pydantic models.

Increment `SCHEMA_VERSION` with every change of a field that providers fill: the version is part of
the key of cached extractions. Fields are flat and few, because each field adds states to the
provider's constrained decoder.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

SCHEMA_VERSION = "3"

EncounterType = Literal[
    "office_visit",
    "emergency",
    "inpatient",
    "outpatient",
    "laboratory",
    "imaging",
    "pathology",
    "procedure",
    "consultation",
    "telehealth",
    "immunization",
    "other",
]

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

ZoneType = Literal[
    "header",
    "chief_complaint",
    "history_present_illness",
    "review_of_systems",
    "past_medical_history",
    "family_history",
    "social_history",
    "medications",
    "allergies",
    "immunizations",
    "vitals",
    "physical_exam",
    "labs",
    "imaging",
    "procedures",
    "assessment_plan",
    "hospital_course",
    "discharge",
    "other",
]

MedicationStatus = Literal[
    "active",
    "stopped",
    "on_hold",
    "planned",
    "not_started",
    "changed",
    "entered_in_error",
]
"""What the text says about the use of a medication, in the terms of FHIR MedicationStatement.

`not_started` includes declined, avoided and not taken. `changed` means taken with a new dose.
"""

NOT_TAKEN: frozenset[MedicationStatus] = frozenset(
    {"stopped", "on_hold", "planned", "not_started", "entered_in_error"}
)
"""The states in which the patient does not take the medication."""

Temporality = Literal["current", "historical", "planned"]
Certainty = Literal["certain", "possible", "hypothetical"]
"""`possible`: suspected, probable, not excluded. `hypothetical`: under a condition, as a risk, or
not done yet."""
Experiencer = Literal["patient", "family", "other"]

Page = Annotated[int, Field(ge=1, le=1_000_000)]
Line = Annotated[int, Field(ge=1, le=100_000)]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, str_strip_whitespace=False)

    @field_validator("*", mode="before")
    @classmethod
    def _storable(cls, value: Any) -> Any:
        # PostgreSQL refuses NUL, and UTF-8 cannot encode lone surrogates. Models write both.
        if isinstance(value, str):
            if value.isascii():
                return value.replace("\x00", "")
            return value.replace("\x00", "").encode("utf-8", "replace").decode()
        return value


Rejected = Annotated[int, Field(ge=0, le=1_000_000)]
"""Number of items that broke the schema and were left out; `reply_parsing` counts them."""


class LineSpan(_Reply):
    """Lines of one page, 1-based and inclusive, as numbered in the prompt."""

    page: Page
    first_line: Line = 1
    last_line: Line = 100_000


class FoundEncounter(_Reply):
    """One encounter as seen from one chunk."""

    encounter_type: EncounterType
    spans: list[LineSpan] = Field(min_length=1)
    open_at_start: bool = False
    """The encounter began before this chunk's own pages."""
    open_at_end: bool = False
    """The encounter may continue after this chunk's own pages."""
    date_start: str | None = None
    """Date of service in ISO 8601; None if the pages state no date."""
    date_end: str | None = None
    facility: str | None = None
    clinician: str | None = None
    patient_name: str | None = None
    patient_birth_date: str | None = None
    """ISO 8601."""
    patient_identifier: str | None = None
    """Medical record number as printed."""
    rule: str = ""
    """Why the engine split here: the rule id of the local engine."""


class DiscoveryReply(_Reply):
    """Pass 0.5: the encounters that one chunk of pages shows."""

    item_token: str
    language: str = "en"
    """ISO 639-1 code of the pages' main language."""
    unsupported_pages: list[Page] = Field(default_factory=list)
    """Pages in a language that the engine does not read."""
    encounters: list[FoundEncounter]
    """Required, although the list may be empty: a reply without this field has not answered the
    question."""
    items_rejected: Rejected = 0


class FoundEntity(_Reply):
    """One clinical entity with the text that it came from.

    A model writes the fields in this order: the quote first, then what the quote says.
    """

    quote: str = Field(min_length=1, max_length=2_000)
    """Verbatim from the page. In a structured row the quote reaches from the name to the last
    part."""
    page: Page
    category: Category
    start: int | None = Field(default=None, ge=0)
    """Offset of the quote in the page's text, if the engine knows the offset."""
    name: str = Field(min_length=1, max_length=500)
    """The entity's name as printed (`lisinopril`, `Hemoglobin`), or its normal form."""
    value: str | None = None
    """Vital or lab value as printed (`118/76`, `7.2`, `<0.01`)."""
    unit: str | None = None
    reference_range: str | None = None
    abnormal_flag: str | None = None
    strength: str | None = None
    """What the product contains, as printed (`500 mg` of `amoxicillin 500 mg capsule`)."""
    dose: str | None = None
    """What is taken each time, as printed (`20 mg`, `two tablets`)."""
    previous_dose: str | None = None
    """The dose before a change, as printed."""
    route: str | None = None
    frequency: str | None = None
    status: MedicationStatus | None = None
    step: int | None = Field(default=None, ge=1, le=100)
    """1-based position in a taper or a split dose; None for a single dose."""
    date: str | None = None
    """ISO 8601, if the entity carries its own date."""
    reaction: str | None = None
    negated: bool | None = None
    """None means not assessed, here and in the next three fields. Never write False, `current`,
    `certain` or `patient` for an unassessed entity."""
    temporality: Temporality | None = None
    certainty: Certainty | None = None
    experiencer: Experiencer | None = None
    zone: ZoneType | None = None
    engine_confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    """How sure the rule or the model is, from 0 to 1."""
    rule: str = ""
    """The local engine's rule id; empty for a model."""


class FoundZone(_Reply):
    """A section of the record."""

    zone_type: ZoneType
    page_start: Page
    page_end: Page
    heading: str | None = None
    """The section's heading, verbatim, if the section has a heading."""


class EntityReply(_Reply):
    """Pass 1: the entities of one batch."""

    item_token: str
    language: str = "en"
    unsupported_pages: list[Page] = Field(default_factory=list)
    no_known_allergies: bool | None = None
    """True only if the text says so (NKDA)."""
    entities: list[FoundEntity]
    """Required, although the list may be empty."""
    zones: list[FoundZone] = Field(default_factory=list)
    items_rejected: Rejected = 0


class FoundAttributes(_Reply):
    """Pass 2: what the evidence of one entity says, as printed; nothing is computed.

    A field that does not fit the category of the entity is None. medproc structures the values
    (`clinical.attributes`), so that each engine is read by the same rules.
    """

    id: str = Field(min_length=1, max_length=20)
    """The key of the entity in the prompt."""
    code: str | None = None
    """`system|code` of one candidate in the prompt, or None."""
    ingredient: str | None = None
    """The active substance of a medication, as the page or the candidate names it."""
    strength: str | None = None
    dose: str | None = None
    route: str | None = None
    frequency: str | None = None
    start: str | None = None
    """As printed; the start of a medication, the onset of a condition, the day of a procedure or
    an immunization."""
    stop: str | None = None
    """As printed; the end of a medication or the abatement of a condition."""
    status: str | None = None
    """Medication: a value of `MedicationStatus`. Condition and allergy: a clinical status of FHIR.
    Immunization and procedure: a status of FHIR."""
    verification: str | None = None
    """Verification status of FHIR, for a condition or an allergy."""
    severity: str | None = None
    """`mild`, `moderate` or `severe`."""
    indication: str | None = None
    """Why a medication is taken, as printed."""
    body_site: str | None = None
    laterality: str | None = None
    value: str | None = None
    unit: str | None = None
    reference_range: str | None = None
    abnormal_flag: str | None = None
    substance: str | None = None
    reaction: str | None = None
    product: str | None = None
    dose_number: str | None = None
    """As printed (`2 of 3`, `second dose`, `booster`)."""


class EnrichmentReply(_Reply):
    """Pass 2: the attributes of the entities of one zone."""

    item_token: str
    entities: list[FoundAttributes]
    """Required; each entity of the prompt once."""
    items_rejected: Rejected = 0


class WrittenSentence(_Reply):
    """One sentence of a narrative, with the keys of the entities that it states."""

    text: str = Field(min_length=1, max_length=1_000)
    ids: list[str]
    """Keys of the entities in the prompt; a sentence without keys is not supported."""


class NarrativeReply(_Reply):
    """Pass 3: the narrative of one encounter or of one record."""

    item_token: str
    sentences: list[WrittenSentence]
    """Required, although the list may be empty."""
    items_rejected: Rejected = 0
