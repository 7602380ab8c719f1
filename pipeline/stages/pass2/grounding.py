"""The two readers of a reply of Pass 2: the page, and the local engine.

Each attribute must occur in the entity's evidence; otherwise the value is left out and flagged.
If the local engine reads another value, both readings are kept and flagged. A code is accepted
only if the rules of `code_choice` choose the same code.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.clinical.structured import Printed
from pipeline.providers.local.enrichment.answer import answer_about
from pipeline.providers.local.enrichment.code_choice import CodeChoice
from pipeline.providers.schemas import FoundAttributes
from pipeline.stages.pass2.attribute_checks import is_covered, is_same, is_shown

_NO_TEXT = frozenset({"facts", "decimal_sign", "date_order"})
ATTRIBUTES = tuple(each.name for each in fields(Printed) if each.name not in _NO_TEXT)
"""The attributes of a reply that the page must show."""
_PASS1 = (
    "value", "unit", "reference_range", "abnormal_flag", "strength", "dose", "route", "frequency",
    "reaction",
)  # fmt: skip
"""The attributes that Pass 1 publishes; a reply that leaves one out does not delete it."""
_DENIALS = {
    "verification": frozenset({"refuted", "entered-in-error"}),
    "status": frozenset(
        {"stopped", "on_hold", "not_started", "entered_in_error", "planned", "not-done",
         "resolved", "inactive", "remission"}
    ),
}  # fmt: skip
"""Readings of the local engine that a silent reply does not outweigh."""


@dataclass(frozen=True, kw_only=True)
class Grounded:
    """What holds of a reply, and the reasons for a review."""

    printed: Printed
    code: Candidate | None = None
    flags: tuple[str, ...] = ()
    second_reading: dict[str, Any] = field(default_factory=dict)


def of_pass1(facts: EntityFacts) -> Grounded:
    """Return the printed attributes of Pass 1, which Pass 1 checked against the page."""
    known = {name: getattr(facts, name) for name in _PASS1}
    if facts.category == "medication":
        known["status"] = facts.status
    return Grounded(printed=Printed(facts=facts, **known))


def grounded(
    facts: EntityFacts,
    reply: FoundAttributes,
    second: FoundAttributes | None,
    evidence: Evidence,
    chosen: CodeChoice,
) -> Grounded:
    """Check a reply for one entity against its evidence and against the local engine.

    `chosen` is the code that the rules of `code_choice` choose.
    """
    own = second if second is not None else answer_about(facts, evidence, chosen)
    kept: dict[str, str] = {}
    flags: list[str] = []
    disputed: dict[str, Any] = {}
    for name in ATTRIBUTES:
        said = _text(getattr(reply, name))
        read = _text(getattr(own, name)) or _known(facts, name)
        if said is None:
            if read is not None and name in _PASS1:
                kept[name] = read
            elif read in _DENIALS.get(name, ()) and second is not None:
                disputed[name] = read
                flags.append(flagged(EnrichmentFlag.DISPUTED, name))
            continue
        holds = is_shown(name, reply, facts, evidence) or _is_read(name, said, own, facts)
        if holds:
            kept[name] = said
        else:
            flags.append(flagged(EnrichmentFlag.NOT_GROUNDED, name))
        other = read if read is not None else _in_another_place(name, said, own, facts)
        if other is None and name == "verification" and said.lower() in _DENIALS[name]:
            # Pass 1 read no denial, so one of both readings is wrong.
            flags.append(flagged(EnrichmentFlag.DISPUTED, name))
        if other is not None and not is_same(name, said, read or "", facts):
            disputed[name] = other
            flags.append(flagged(EnrichmentFlag.DISPUTED, name))
    code, reasons = _code(facts, reply, chosen)
    return Grounded(
        printed=Printed(facts=facts, **kept),
        code=code,
        flags=tuple(dict.fromkeys((*flags, *reasons))),
        second_reading=disputed,
    )


def _text(value: Any) -> str | None:
    """Return a value without blanks around it; None for an empty text."""
    return value.strip() or None if isinstance(value, str) else None


def _known(facts: EntityFacts, name: str) -> str | None:
    """Return what Pass 1 published about an attribute, unless Pass 1 doubted it."""
    if name not in _PASS1 and not (name == "status" and facts.category == "medication"):
        return None
    doubted = any(flag.endswith(f":{name}") for flag in facts.review_flags)
    return None if doubted else _text(getattr(facts, name))


def _is_read(name: str, said: str, own: FoundAttributes, facts: EntityFacts) -> bool:
    """Return whether the local engine or Pass 1 reads the same from the page."""
    read = _text(getattr(own, name))
    known = _known(facts, name)
    return any(each is not None and is_covered(name, said, each, facts) for each in (read, known))


_AMOUNTS = ("strength", "dose")


def _in_another_place(name: str, said: str, own: FoundAttributes, facts: EntityFacts) -> str | None:
    """Return where the local engine puts an amount that the reply puts elsewhere.

    `500 mg` on a capsule is its strength. As a dose the same words would be wrong.
    """
    if name not in _AMOUNTS:
        return None
    for other in (*_AMOUNTS, "previous_dose"):
        read = _text(getattr(own, other, None)) or _text(getattr(facts, other))
        if other != name and read is not None and is_same(name, said, read, facts):
            return f"{other}: {read}"
    return None


def _code(
    facts: EntityFacts, reply: FoundAttributes, chosen: CodeChoice
) -> tuple[Candidate | None, tuple[str, ...]]:
    """Return the accepted code of a reply, with the reasons against another code."""
    uncertain = (flagged(EnrichmentFlag.CODE_UNCERTAIN),)
    token = _text(reply.code)
    if token is None:
        return None, uncertain if chosen.is_uncertain else ()
    offered = next((each for each in facts.candidates if each.token == token), None)
    if offered is None:
        return None, (flagged(EnrichmentFlag.CODE_REFUSED),)
    if chosen.code is not None and chosen.code.token == offered.token:
        return offered, ()
    return None, uncertain
