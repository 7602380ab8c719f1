"""The stated facts of an encounter, and whether two sets of facts can describe the same encounter.

This module is pure. Impossible dates count as not stated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

from pipeline.core.identity import ComparisonResult, Identity, compare
from pipeline.core.identity.facilities import same_facility
from pipeline.providers.schemas import EncounterType, FoundEncounter


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The key facts of an encounter, or of the part of an encounter that one chunk reports."""

    encounter_type: EncounterType
    date_start: date | None = field(default=None, repr=False)
    date_end: date | None = field(default=None, repr=False)
    facility: str | None = field(default=None, repr=False)
    clinician: str | None = field(default=None, repr=False)
    patient: Identity = field(default_factory=Identity, repr=False)

    @classmethod
    def of(cls, found_encounter: FoundEncounter) -> Facts:
        """Read the facts from a reply."""
        start, end = iso_date(found_encounter.date_start), iso_date(found_encounter.date_end)
        return cls(
            encounter_type=found_encounter.encounter_type,
            date_start=start,
            date_end=None if end and start and end < start else end,
            facility=_clean(found_encounter.facility),
            clinician=_clean(found_encounter.clinician),
            patient=Identity(
                name=_clean(found_encounter.patient_name),
                birth_date=found_encounter.patient_birth_date,
                identifier=_clean(found_encounter.patient_identifier),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class FactsAgreement:
    """The key facts that agree and the ones that disagree; an unstated fact is in neither list."""

    agree: tuple[str, ...]
    disagree: tuple[str, ...]
    patient: ComparisonResult

    @property
    def same_encounter(self) -> bool:
        """Whether all key facts are stated on both sides and equal."""
        return self.agree == ("date", "facility", "type", "patient")


def agreement(a: Facts, b: Facts) -> FactsAgreement:
    """Compare the facts of two parts; `b` comes later in the record."""
    patient = compare(a.patient, b.patient)
    verdicts = {
        "date": _dates(a, b),
        "facility": _facilities(a.facility, b.facility),
        "type": None
        if "other" in (a.encounter_type, b.encounter_type)
        else a.encounter_type == b.encounter_type,
        "patient": True if patient.agrees else False if patient.disagrees else None,
    }
    return FactsAgreement(
        agree=tuple(name for name, verdict in verdicts.items() if verdict is True),
        disagree=tuple(name for name, verdict in verdicts.items() if verdict is False),
        patient=patient,
    )


def iso_date(text: str | None) -> date | None:
    """Parse an ISO 8601 date; return None for anything else, such as 29 February 2023."""
    try:
        return date.fromisoformat(text.strip()[:10]) if text else None
    except ValueError:
        return None


def _facilities(a: str | None, b: str | None) -> bool | None:
    return same_facility(a, b) if a and b else None


def _dates(a: Facts, b: Facts) -> bool | None:
    if a.date_start is None or b.date_start is None:
        return None
    if a.date_start == b.date_start:
        return not (a.date_end and b.date_end and a.date_end != b.date_end)
    if a.encounter_type == b.encounter_type == "inpatient" and b.date_start > a.date_start:
        return None if a.date_end is None or b.date_start <= a.date_end else False
    return False


def _clean(text: str | None) -> str | None:
    return " ".join(text.split()) or None if text else None
