"""What the text says about a condition or a symptom, as printed."""

from __future__ import annotations

from pipeline.clinical.condition_reading import read_condition
from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts


def read(facts: EntityFacts, evidence: Evidence) -> dict[str, str]:
    """Return fields of `FoundAttributes`."""
    return read_condition(facts, evidence)
