"""What Pass 1 read of a laboratory result or a vital sign, for the answer of Pass 2."""

from __future__ import annotations

from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts

_FIELDS = ("value", "unit", "reference_range", "abnormal_flag")


def read(facts: EntityFacts, evidence: Evidence) -> dict[str, str]:
    """Return the printed attributes of a measurement; Pass 1 has checked them against the page."""
    del evidence
    return {name: text for name in _FIELDS if (text := getattr(facts, name))}
