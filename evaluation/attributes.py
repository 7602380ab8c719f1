"""Counts of read attributes: wrong and unflagged, flagged, missed, right.

"Wrong and unflagged" is the defect that the project must not have. A missed attribute is better
than a flagged attribute, and a flagged attribute is better than a wrong one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

ATTRIBUTES = (
    "name",
    "value",
    "unit",
    "range",
    "flag",
    "dose",
    "strength",
    "previous dose",
    "frequency",
    "route",
    "status",
    "step",
    "reaction",
    "negation",
    "temporality",
    "certainty",
    "experiencer",
    "date",
)
"""The attributes in the order of the table."""
CATEGORIES = (
    "lab",
    "vital",
    "medication",
    "allergy",
    "immunization",
    "condition",
    "symptom",
    "procedure",
    "encounter",
    "record",
)
COLUMNS = {
    "name": "name",
    "value": "value",
    "unit": "unit",
    "reference_range": "range",
    "abnormal_flag": "flag",
    "dose": "dose",
    "strength": "strength",
    "previous_dose": "previous dose",
    "frequency": "frequency",
    "route": "route",
    "status": "status",
    "step": "step",
    "reaction": "reaction",
    "negated": "negation",
    "temporality": "temporality",
    "historical": "temporality",
    "certainty": "certainty",
    "hypothetical": "certainty",
    "experiencer": "experiencer",
    "family": "experiencer",
    "entity_date": "date",
}
"""Column of a published entity, or key of an expectation → attribute."""


class AttributeOutcome(StrEnum):
    """How one attribute was read."""

    WRONG = "wrong and unflagged"
    FLAGGED = "flagged"
    MISSED = "missed"
    RIGHT = "right"


@dataclass(frozen=True, kw_only=True)
class AttributeScore:
    """One line of the table."""

    category: str
    attribute: str
    counts: Counter[AttributeOutcome]

    @property
    def total(self) -> int:
        """The number of judged attributes."""
        return self.counts.total()

    def share(self, outcome: AttributeOutcome) -> float:
        """Return the share of an outcome, from 0 to 1."""
        return self.counts[outcome] / self.total if self.total else 0.0

    def as_json(self) -> dict[str, object]:
        """Return counts and shares."""
        return {
            "category": self.category,
            "attribute": self.attribute,
            **{outcome.name.lower(): self.counts[outcome] for outcome in AttributeOutcome},
            "total": self.total,
            "wrong_per_1000": round(1_000 * self.share(AttributeOutcome.WRONG), 2),
        }


@dataclass
class Tally:
    """The counts of many attributes."""

    counts: dict[tuple[str, str], Counter[AttributeOutcome]] = field(default_factory=dict)

    def add(self, category: str, attribute: str, outcome: AttributeOutcome) -> None:
        """Count one attribute."""
        self.counts.setdefault((category, attribute), Counter())[outcome] += 1

    def __iadd__(self, other: Tally) -> Tally:
        for key, counts in other.counts.items():
            self.counts.setdefault(key, Counter()).update(counts)
        return self

    def scores(self) -> list[AttributeScore]:
        """Return one line per category and attribute, then the sum of all."""
        ordered = sorted(self.counts, key=_place)
        lines = [
            AttributeScore(category=category, attribute=attribute, counts=self.counts[key])
            for key in ordered
            for category, attribute in [key]
        ]
        if lines:
            total: Counter[AttributeOutcome] = Counter()
            for line in lines:
                total.update(line.counts)
            lines.append(AttributeScore(category="all", attribute="", counts=total))
        return lines


def _place(key: tuple[str, str]) -> tuple[int, int, str]:
    category, attribute = key
    return (_index(CATEGORIES, category), _index(ATTRIBUTES, attribute), attribute)


def _index(names: Iterable[str], name: str) -> int:
    known = list(names)
    return known.index(name) if name in known else len(known)
