"""The replies that a provider must give, as pydantic models; the same for every engine.

May import `errors` and `types` only. `SCHEMA_VERSION` is bumped with any change of shape, since it
is part of the key of cached extractions. Fields are flat and few: each adds states to the
provider's constrained decoder.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

SCHEMA_VERSION = "1"

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

Page = Annotated[int, Field(ge=1, le=1_000_000)]
Line = Annotated[int, Field(ge=1, le=100_000)]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, str_strip_whitespace=False)

    @field_validator("*", mode="before")
    @classmethod
    def _storable(cls, value: Any) -> Any:
        # PostgreSQL refuses NUL, and UTF-8 has no lone surrogates; models write both.
        if isinstance(value, str):
            return value.replace("\x00", "").encode("utf-8", "replace").decode()
        return value


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
    """It began before this chunk's own pages."""
    open_at_end: bool = False
    """It may go on after this chunk's own pages."""
    date_start: str | None = None
    """ISO 8601 date of service, or None where none is stated."""
    date_end: str | None = None
    facility: str | None = None
    clinician: str | None = None
    patient_name: str | None = None
    patient_birth_date: str | None = None
    """ISO 8601."""
    patient_identifier: str | None = None
    """Medical record number as printed."""
    rule: str = ""
    """Why it was split here; the local engine's rule id."""


class DiscoveryReply(_Reply):
    """Pass 0.5: the encounters that one chunk of pages shows."""

    item_token: str
    language: str = "en"
    """ISO 639-1 code of the pages' main language."""
    unsupported_pages: list[Page] = Field(default_factory=list)
    """Pages in a language that the engine does not read."""
    encounters: list[FoundEncounter]
    """Required, though it may be empty: a reply that leaves it out has found nothing out."""


class FoundEntity(_Reply):
    """One clinical entity with the text that it came from."""

    category: Category
    page: Page
    quote: str = Field(min_length=1, max_length=2_000)
    """Verbatim from the page; for a structured row, from its name to its last part."""
    start: int | None = Field(default=None, ge=0)
    """Offset of the quote in the page's text, where the engine knows it."""
    name: str = Field(min_length=1, max_length=500)
    """The entity's own words (`lisinopril`, `Hemoglobin`), or its normal form."""
    value: str | None = None
    """Vital or lab value as printed (`118/76`, `7.2`, `<0.01`)."""
    unit: str | None = None
    reference_range: str | None = None
    abnormal_flag: str | None = None
    dose: str | None = None
    """Amount with unit as printed (`20 mg`)."""
    route: str | None = None
    frequency: str | None = None
    date: str | None = None
    """ISO 8601, where the entity carries its own date."""
    reaction: str | None = None
    negated: bool | None = None
    """None: not assessed; never guessed as False."""
    historical: bool | None = None
    hypothetical: bool | None = None
    family: bool | None = None
    zone: ZoneType | None = None
    strength: float = Field(default=1.0, ge=0.0, le=1.0)
    """How sure the rule or model is."""
    rule: str = ""
    """The local engine's rule id; empty for a model."""


class FoundZone(_Reply):
    """A section of the record."""

    zone_type: ZoneType
    page_start: Page
    page_end: Page
    heading: str | None = None
    """The section's heading, verbatim, where it has one."""


class EntityReply(_Reply):
    """Pass 1: the entities of one batch."""

    item_token: str
    language: str = "en"
    unsupported_pages: list[Page] = Field(default_factory=list)
    no_known_allergies: bool | None = None
    """True only where the text says so (NKDA)."""
    entities: list[FoundEntity]
    """Required, though it may be empty."""
    zones: list[FoundZone] = Field(default_factory=list)
