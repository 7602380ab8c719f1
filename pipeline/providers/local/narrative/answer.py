"""The local answer to the question of Pass 3: a narrative from templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from operator import itemgetter

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.narrative import CitedEntity, check_known, known_of
from pipeline.clinical.narrative.undoubted import undoubted
from pipeline.providers.local.narrative.drafts import SentenceDraft, drafts_of
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import NarrativeReply, WrittenSentence


def narrate(question: Question) -> NarrativeReply:
    """Write the narrative of the question's entities, within the limits of the question.

    A sentence that the check of Pass 3 would refuse is left out.
    """
    limits = question.limits
    made = drafts(question.facts, words=limits.get("words", 40), record=bool(limits.get("record")))
    return NarrativeReply(
        item_token=question.item_token,
        sentences=[
            WrittenSentence(text=draft.text, ids=list(draft.keys))
            for draft in _chosen(made, question.facts, limits.get("sentences", 12))
        ],
    )


def _chosen(
    made: Iterable[SentenceDraft], facts: Sequence[EntityFacts], most: int
) -> list[SentenceDraft]:
    """Return at most `most` supported sentences: all essential facts, then each kind in turn.

    The sentences keep the order in which they were made. Only as many as are needed are checked.
    """
    by_key = {each.key: each for each in facts}
    known = cache(lambda key: known_of(by_key[key]))
    places = sorted(enumerate(made), key=lambda at: (at[1].rank[1], at[1].rank[0]))
    supported = ((place, each) for place, draft in places for each in _supported(draft, known))
    return [draft for _, draft in sorted(islice(supported, most), key=itemgetter(0))]


def _supported(
    draft: SentenceDraft, known: Callable[[str], CitedEntity]
) -> Iterator[SentenceDraft]:
    """Yield the sentence if its entities support it, else its facts in one sentence each."""
    if not check_known(draft.text, [known(key) for key in draft.keys]):
        yield draft
        return
    for part in draft.parts:
        yield from _supported(replace(part, rank=draft.rank), known)


def drafts(facts: Sequence[EntityFacts], *, words: int, record: bool) -> Iterator[SentenceDraft]:
    """Yield the sentences about the accepted entities, the most important sentence first."""
    return drafts_of([undoubted(each) for each in facts if each.accepted], words, record=record)
