"""An entity of Pass 1 as the later passes read it, with its evidence and its candidate codes.

The prompts of Passes 2 and 3 carry these values, so a value has one JSON form (`as_json`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from functools import cache
from operator import attrgetter
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """One code that the shortlist offers for an entity."""

    system: str
    """Key of the code system, such as `ICD10CM` (`models.codes.SystemKey`)."""
    code: str
    display: str
    score: float
    """How well the code fits, 0 to 1; the best candidate comes first."""
    reason: str = ""
    """Why the search offers the code; free of document text."""
    term: str = ""
    """The source's own term that fits the text best; empty if no term fits better than the
    display."""

    @property
    def token(self) -> str:
        """The code with its system, as FHIR writes a token: `ICD10CM|I10`."""
        return f"{self.system}|{self.code}"

    def as_json(self) -> dict[str, str]:
        """Return what a prompt shows: code, display, and the term if there is a term."""
        shown = {"code": self.token, "display": self.display}
        return {**shown, "term": self.term} if self.term else shown


@dataclass(frozen=True, kw_only=True, slots=True)
class EntityFacts:
    """One published entity, with the attributes that the page prints.

    `key` names the entity within one prompt. Offsets count in the text of the entity's page.
    """

    key: str
    category: str
    name: str
    quote: str = field(repr=False)
    page: int
    start: int | None = None
    end: int | None = None
    page_end: int | None = None
    value: str | None = None
    unit: str | None = None
    reference_range: str | None = None
    abnormal_flag: str | None = None
    strength: str | None = None
    dose: str | None = None
    previous_dose: str | None = None
    route: str | None = None
    frequency: str | None = None
    status: str | None = None
    step: int | None = None
    reaction: str | None = None
    entity_date: date | None = None
    negated: bool | None = None
    temporality: str | None = None
    certainty: str | None = None
    experiencer: str | None = None
    zone_type: str | None = None
    accepted: bool = True
    review_flags: tuple[str, ...] = ()
    encounter_date: date | None = None
    """First date of the entity's encounter."""
    encounter_type: str | None = None
    candidates: tuple[Candidate, ...] = ()
    """The shortlist of Pass 1.5; the best candidate comes first."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """After Pass 2: the JSON of `clinical.attributes`, without values that are None."""
    code: str | None = None
    """After Pass 2: the chosen code as `system|code`."""
    code_display: str | None = None
    flags: tuple[str, ...] = ()
    """After Pass 2: the flags of `clinical.enrichment_flags`."""

    def as_json(self) -> dict[str, Any]:
        """Return the values that differ from their defaults, ready for JSON."""
        found: dict[str, Any] = {}
        # A step writes thousands of facts before its first call.
        for (name, default), value in zip(_defaults(), _values(self), strict=True):
            if value is default or value == default or (name == "attributes" and not value):
                continue
            if isinstance(value, date):
                value = value.isoformat()
            elif isinstance(value, tuple):
                value = [c.as_json() for c in value] if name == "candidates" else list(value)
            found[name] = value
        return found

    def as_shown(self) -> tuple[Any, ...]:
        """Return what a prompt shows, except the attributes: equal before and after the prompt.

        The values are hashable. A prompt shows no score and no reason of a candidate.
        """
        return (
            *_plain_values(self),
            tuple((each.system, each.code, each.display, each.term) for each in self.candidates),
        )

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> EntityFacts:
        """Return the facts that `as_json` wrote. The candidates have no score and no reason."""
        values = dict(stored)
        for name in ("entity_date", "encounter_date"):
            if name in values:
                values[name] = date.fromisoformat(values[name])
        for name in ("review_flags", "flags"):
            values[name] = tuple(values.get(name, ()))
        values["candidates"] = tuple(
            Candidate(
                system=each["code"].partition("|")[0],
                code=each["code"].partition("|")[2],
                display=each["display"],
                score=0.0,
                term=each.get("term", ""),
            )
            for each in values.get("candidates", ())
        )
        return cls(**values)


@cache
def _defaults() -> tuple[tuple[str, Any], ...]:
    """Return the name and the default of each field of `EntityFacts`."""
    return tuple((each.name, each.default) for each in fields(EntityFacts))


_values = attrgetter(*(each.name for each in fields(EntityFacts)))
"""Returns the values of all fields of `EntityFacts`, in their order."""
_plain_values = attrgetter(
    *(each.name for each in fields(EntityFacts) if each.name not in ("candidates", "attributes"))
)
"""Returns the values of the fields of `EntityFacts` that hold no objects of other classes."""
