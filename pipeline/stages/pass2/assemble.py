"""From a reply of Pass 2 to the row of an enriched entity.

The functions are pure, judge every engine alike, and raise for no text. A value that the evidence
does not support is left out; a value that a second reader reads differently is flagged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pipeline.clinical.date_forms import DateOrder, orders_in
from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.evidence import evidence_of
from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.clinical.numbers import DecimalSign, signs_of_page
from pipeline.clinical.structurers import structured
from pipeline.core.types import PageSlice
from pipeline.providers.local.enrichment.answer import answer_about
from pipeline.providers.local.enrichment.code_choice import choose
from pipeline.providers.schemas import FoundAttributes
from pipeline.stages.pass2.grounding import grounded, of_pass1


@dataclass(frozen=True, kw_only=True)
class Enriched:
    """The structured attributes of one entity, with its code and the reasons for a review."""

    attributes: dict[str, Any]
    """The model of the category in `clinical.attributes`, without values that are None."""
    code: Candidate | None = None
    """One candidate of the entity's shortlist."""
    flags: tuple[str, ...] = ()
    second_reading: dict[str, Any] | None = None
    """The local engine's reading of disputed attributes: attribute → value."""


def enriched(
    facts: EntityFacts,
    reply: FoundAttributes | None,
    second: FoundAttributes | None,
    slices: Sequence[PageSlice],
    *,
    neighbours: Sequence[EntityFacts] = (),
    reads_again: bool = False,
) -> Enriched:
    """Check a reply against the page and structure what holds.

    `reply` is None if the engine left the entity out; the attributes of Pass 1 remain then.
    `second` is the answer of the local engine, if another engine replied; with `reads_again` the
    local engine answers here, about the evidence that the checks need anyway. `neighbours` are the
    other entities of the prompt: a clause of a neighbour proves nothing about this entity.
    """
    try:
        evidence = evidence_of(facts, slices, neighbours)
        if reply is None:
            found = of_pass1(facts)
        else:
            chosen = choose(facts, evidence)
            if reads_again:
                second = answer_about(facts, evidence, chosen)
            found = grounded(facts, reply, second, evidence, chosen)
        token = found.code.token if found.code else None
        coded = facts if facts.code == token else replace(facts, code=token)
        built = structured(
            replace(
                found.printed,
                facts=coded,
                decimal_sign=_decimal_sign(facts, slices),
                date_order=_date_order(facts, slices),
            )
        )
    except (ValueError, ArithmeticError, LookupError):
        # A text that no rule foresees costs its entity, not the zone.
        return Enriched(attributes={}, flags=(flagged(EnrichmentFlag.NOT_ENRICHED),))
    missing = (flagged(EnrichmentFlag.NOT_ENRICHED),) if reply is None else ()
    return Enriched(
        attributes=built.attributes.model_dump(mode="json", exclude_none=True),
        code=found.code,
        flags=tuple(dict.fromkeys((*missing, *found.flags, *built.flags))),
        second_reading=found.second_reading or None,
    )


def _date_order(facts: EntityFacts, slices: Sequence[PageSlice]) -> str | None:
    """Return the order of day and month on the page of an entity, if the page proves one."""
    texts = (part.text for part in slices if part.page == facts.page)
    orders = frozenset[DateOrder]().union(*map(_orders_in, texts))
    return next(iter(orders)).value if len(orders) == 1 else None


# Every entity of a zone asks about the same text.
@lru_cache(maxsize=64)
def _orders_in(text: str) -> frozenset[DateOrder]:
    return frozenset(orders_in(text))


def _decimal_sign(facts: EntityFacts, slices: Sequence[PageSlice]) -> DecimalSign | None:
    """Return the decimal sign that the page of an entity proves, if the page proves one."""
    texts = (part.text for part in slices if part.page == facts.page)
    signs: frozenset[DecimalSign] = frozenset().union(*map(signs_of_page, texts))
    return next(iter(signs)) if len(signs) == 1 else None
