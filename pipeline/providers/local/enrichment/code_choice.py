"""Choose one code of a shortlist, or none."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import Candidate, EntityFacts


@dataclass(frozen=True)
class Choice:
    """One code of a shortlist, or none."""

    code: Candidate | None = None
    is_uncertain: bool = False
    """Several codes fit equally well."""


def choose(facts: EntityFacts, evidence: Evidence) -> Choice:
    """Return the one code that the text supports."""
    return Choice()
