"""The two readers of a reply of Pass 2: the page, and the local engine.

Each attribute must occur in the entity's evidence; otherwise the value is left out and flagged.
If the local engine reads another value, both readings are kept and flagged.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.clinical.structured import Printed
from pipeline.providers.schemas import FoundAttributes

ATTRIBUTES = tuple(each.name for each in fields(Printed) if each.name != "facts")
"""The attributes of a reply that the page must show."""


@dataclass(frozen=True, kw_only=True)
class Grounded:
    """What holds of a reply, and the reasons for a review."""

    printed: Printed
    code: Candidate | None = None
    flags: tuple[str, ...] = ()
    second_reading: dict[str, Any] = field(default_factory=dict)


def of_pass1(facts: EntityFacts) -> Grounded:
    """Return the printed attributes of Pass 1, which Pass 1 checked against the page."""
    known = {name: getattr(facts, name, None) for name in ATTRIBUTES}
    return Grounded(printed=Printed(facts=facts, **known))


def grounded(
    facts: EntityFacts, reply: FoundAttributes, second: FoundAttributes | None, evidence: Evidence
) -> Grounded:
    """Check a reply for one entity against its evidence and against the local engine."""
    kept: dict[str, str] = {}
    flags: list[str] = []
    for name in ATTRIBUTES:
        value = getattr(reply, name)
        if value is None:
            continue
        if value == getattr(facts, name, None) or _occurs(value, evidence):
            kept[name] = value
        else:
            flags.append(flagged(EnrichmentFlag.NOT_GROUNDED, name))
    code = next((each for each in facts.candidates if each.token == reply.code), None)
    if reply.code and code is None:
        flags.append(flagged(EnrichmentFlag.CODE_REFUSED))
    return Grounded(printed=Printed(facts=facts, **kept), code=code, flags=tuple(flags))


def _occurs(value: str, evidence: Evidence) -> bool:
    words = value.lower().split()
    shown = evidence.row.lower().split()
    return all(word in shown for word in words)
