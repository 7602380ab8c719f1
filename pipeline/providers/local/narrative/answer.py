"""The local answer to the question of Pass 3: one sentence for each entity."""

from __future__ import annotations

from pipeline.providers.prompts import Question
from pipeline.providers.schemas import NarrativeReply, WrittenSentence


def narrate(question: Question) -> NarrativeReply:
    """Write the narrative of the question's entities, within the limits of the question."""
    limit = question.limits.get("sentences", 12)
    return NarrativeReply(
        item_token=question.item_token,
        sentences=[
            WrittenSentence(text=f"{each.name}.", ids=[each.key]) for each in question.facts[:limit]
        ],
    )
