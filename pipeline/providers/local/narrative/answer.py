"""The local answer to the question of Pass 3: a narrative from templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.narrative import check
from pipeline.clinical.narrative.undoubted import undoubted
from pipeline.providers.local.narrative.drafts import SentenceDraft, drafts_of
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import NarrativeReply, WrittenSentence


def narrate(question: Question) -> NarrativeReply:
    """Write the narrative of the question's entities, within the limits of the question.

    A sentence that the check of Pass 3 would refuse is left out.
    """
    limits = question.limits
    known = {each.key: each for each in question.facts}
    made = drafts(question.facts, words=limits.get("words", 40), record=bool(limits.get("record")))
    supported = [each for draft in made for each in _supported(draft, known)]
    return NarrativeReply(
        item_token=question.item_token,
        sentences=[
            WrittenSentence(text=draft.text, ids=list(draft.keys))
            for draft in _chosen(supported, limits.get("sentences", 12))
        ],
    )


def _supported(draft: SentenceDraft, known: Mapping[str, EntityFacts]) -> Iterator[SentenceDraft]:
    """Yield the sentence if its entities support it, else its facts in one sentence each."""
    if not check(draft.text, [known[key] for key in draft.keys]):
        yield draft
        return
    for part in draft.parts:
        yield from _supported(replace(part, rank=draft.rank), known)


def _chosen(supported: Sequence[SentenceDraft], most: int) -> list[SentenceDraft]:
    """Return at most `most` sentences: all essential facts, then each other kind in turn."""
    by_turn = sorted(supported, key=lambda draft: (draft.rank[1], draft.rank[0]))
    chosen = {id(draft) for draft in by_turn[:most]}
    return [draft for draft in supported if id(draft) in chosen]


def drafts(facts: Sequence[EntityFacts], *, words: int, record: bool) -> Iterator[SentenceDraft]:
    """Yield the sentences about the accepted entities, the most important sentence first."""
    return drafts_of([undoubted(each) for each in facts if each.accepted], words, record=record)
