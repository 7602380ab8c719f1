"""The entities that rules hand to the engine: spans of the document's text with attributes.

Offsets count in the document's text, not yet on a page.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.providers.schemas import (
    Category,
    Certainty,
    Experiencer,
    MedicationStatus,
    Temporality,
    ZoneType,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One entity before it is placed on its page."""

    category: Category
    start: int
    end: int
    """The end of the last part of a structured row."""
    head_end: int
    """The end of the entity's own words. Assertions are judged around `start..head_end`."""
    name: str
    rule: str
    engine_confidence: float
    """How sure the rule is, from 0 to 1."""
    value: str | None = None
    unit: str | None = None
    reference_range: str | None = None
    abnormal_flag: str | None = None
    strength: str | None = None
    dose: str | None = None
    previous_dose: str | None = None
    route: str | None = None
    frequency: str | None = None
    status: MedicationStatus | None = None
    step: int | None = None
    date: str | None = None
    reaction: str | None = None
    negated: bool | None = None
    temporality: Temporality | None = None
    certainty: Certainty | None = None
    experiencer: Experiencer | None = None
    zone: ZoneType | None = None


def own_words(text: str) -> str:
    """Return words as printed, with one blank in place of each line break."""
    return " ".join(text.split())


def unclear_name(found: Finding, why: str) -> Finding:
    """Return a finding that is not understood: its name and its quote alone."""
    return Finding(
        category=found.category,
        start=found.start,
        end=found.end,
        head_end=found.head_end,
        name=found.name,
        rule=f"{found.category}.{why}.not-understood.v1",
        engine_confidence=0.5,
        zone=found.zone,
    )
