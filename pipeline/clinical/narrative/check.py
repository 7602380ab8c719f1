"""The check of one sentence against the entities that it cites."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.narrative.reasons import Reason, reason

_FUNCTION_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "the",
        "of",
        "is",
        "was",
        "has",
        "had",
        "with",
        "in",
        "on",
        "at",
        "to",
        "for",
        "by",
        "from",
        "patient",
        "he",
        "she",
        "they",
    ]
)


def check(
    text: str, cited: Sequence[EntityFacts], *, max_words: int | None = None
) -> tuple[str, ...]:
    """Return the reasons why the cited entities do not support a sentence; empty if they do.

    A reason is `code:word` with a code of `Reason`. The function never raises.
    """
    if not cited:
        return (reason(Reason.NOT_CITED),)
    words = re.findall(r"[^\W\d_]+|\d+(?:[.,]\d+)*", text.casefold())
    if max_words is not None and len(text.split()) > max_words:
        return (reason(Reason.LENGTH, len(text.split())),)
    known = " ".join(str(each.as_json()) for each in cited).casefold()
    stated = set(re.findall(r"[^\W\d_]+|\d+(?:[.,]\d+)*", known))
    return tuple(
        reason(Reason.NUMBER if word[0].isdigit() else Reason.WORD, word)
        for word in dict.fromkeys(words)
        if word not in stated and word not in _FUNCTION_WORDS
    )
