"""Texts as Pass 2 reads them: the local engine's entities, with their evidence and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from pipeline.clinical.evidence import Evidence, evidence_of
from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.core.types import PageSlice
from pipeline.providers.local.engine import detect
from pipeline.providers.local.enrichment.answer import enrich
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import FoundAttributes
from pipeline.stages.pass2.assemble import Enriched, enriched

_TOKEN = "0123456789abcdef"
_SAME = (
    "value", "unit", "reference_range", "abnormal_flag", "strength", "dose", "previous_dose",
    "route", "frequency", "status", "step", "reaction", "negated", "temporality", "certainty",
    "experiencer",
)  # fmt: skip


def slices_of(text: str) -> tuple[PageSlice, ...]:
    """Return a text as the only slice of page 1."""
    return (PageSlice(page=1, start=0, text=text, context=False),)


def facts_of(
    text: str,
    *,
    seen: date | None = None,
    candidates: Mapping[str, Sequence[Candidate]] | None = None,
) -> list[EntityFacts]:
    """Return the entities that the local engine reads in a text.

    `candidates` are the shortlists, by the name of the entity in lower case.
    """
    asked = Question(kind="entities", item_token=_TOKEN, include_zones=True, slices=slices_of(text))
    return [
        EntityFacts(
            key=f"e{number}",
            category=each.category,
            name=each.name,
            quote=each.quote,
            page=1,
            start=each.start,
            end=(each.start or 0) + len(each.quote),
            zone_type=each.zone,
            encounter_date=seen,
            entity_date=_day(each.date),
            candidates=tuple((candidates or {}).get(each.name.lower(), ())),
            **{name: getattr(each, name) for name in _SAME},
        )
        for number, each in enumerate(detect(asked).entities, start=1)
    ]


def evidence_in(
    text: str,
    facts: EntityFacts,
    neighbours: Sequence[EntityFacts],
    *,
    candidates: Sequence[Candidate] = (),
) -> tuple[EntityFacts, Evidence]:
    """Return an entity with a shortlist, and its evidence in a text."""
    found = replace(facts, candidates=tuple(candidates))
    return found, evidence_of(found, slices_of(text), neighbours)


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text and len(text) == 10 else None


def answers_of(text: str, facts: Sequence[EntityFacts]) -> dict[str, FoundAttributes]:
    """Return the local engine's answer about each entity, by key."""
    asked = Question(
        kind="enrichment",
        item_token=_TOKEN,
        include_zones=False,
        slices=slices_of(text),
        facts=tuple(facts),
    )
    return {each.id: each for each in enrich(asked).entities}


def enriched_in(text: str, **options: Any) -> list[tuple[EntityFacts, Enriched]]:
    """Return each entity of a text with what Pass 2 of the local engine publishes."""
    facts = facts_of(text, **options)
    told = answers_of(text, facts)
    return [
        (each, enriched(each, told.get(each.key), None, slices_of(text), neighbours=facts))
        for each in facts
    ]
