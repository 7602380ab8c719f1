"""The local answer to the question of Pass 2: the attributes of each entity, as printed."""

from __future__ import annotations

from pipeline.clinical.evidence import Evidence, evidence_of
from pipeline.clinical.facts import EntityFacts
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import EnrichmentReply, FoundAttributes


def enrich(question: Question) -> EnrichmentReply:
    """Report the attributes of every entity of the question, in order."""
    return EnrichmentReply(
        item_token=question.item_token,
        entities=[_read(each, evidence_of(each, question.slices)) for each in question.facts],
    )


def _read(facts: EntityFacts, evidence: Evidence) -> FoundAttributes:
    return FoundAttributes(
        id=facts.key,
        value=facts.value,
        unit=facts.unit,
        reference_range=facts.reference_range,
        abnormal_flag=facts.abnormal_flag,
        strength=facts.strength,
        dose=facts.dose,
        route=facts.route,
        frequency=facts.frequency,
        status=facts.status,
        reaction=facts.reaction,
    )
