"""The evidence of an entity: the row and the passage that contain its quote.

An attribute of Pass 2 must occur in this text. The text comes from the slices of a prompt, so the
local engine and the checks of a model's reply read the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.clinical.facts import EntityFacts
from pipeline.core.types import PageSlice


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The text around one entity."""

    quote: str = field(repr=False)
    row: str = field(default="", repr=False)
    """The printed lines that the quote touches."""
    passage: str = field(default="", repr=False)
    """The lines around the row, up to the next blank line above and below."""
    start_in_passage: int = 0
    """Offset of the quote in `passage`."""


def evidence_of(
    facts: EntityFacts, slices: Sequence[PageSlice], neighbours: Sequence[EntityFacts] = ()
) -> Evidence:
    """Return the evidence of an entity; only the quote, if no slice contains the entity."""
    for part in slices:
        if part.page != facts.page or facts.start is None or facts.end is None:
            continue
        begin = facts.start - part.start
        end = facts.end - part.start if facts.page_end is None else len(part.text)
        if begin < 0 or begin >= len(part.text):
            continue
        row_from = part.text.rfind("\n", 0, begin) + 1
        row_to = _line_end(part.text, max(begin, end - 1))
        passage_from = part.text.rfind("\n\n", 0, begin)
        passage_from = 0 if passage_from < 0 else passage_from + 2
        passage_to = part.text.find("\n\n", row_to)
        return Evidence(
            quote=facts.quote,
            row=part.text[row_from:row_to],
            passage=part.text[passage_from : passage_to if passage_to >= 0 else len(part.text)],
            start_in_passage=begin - passage_from,
        )
    return Evidence(quote=facts.quote)


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end
