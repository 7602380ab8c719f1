"""What a text says: the cues, numbers, dates and words of each name."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.clinical.narrative.items import SentencePart


@dataclass(kw_only=True)
class ToldStatement:
    """What the sentence says about one name."""

    name: SentencePart
    at: int
    """Index of the name in its clause."""
    cues: list[tuple[str, SentencePart]] = field(default_factory=list)
    """The cues that act on the name, each with its kind."""
    parts: list[tuple[SentencePart, str]] = field(default_factory=list)
    """Numbers, dates, timing and words in order, each with the words before the part."""
    dates: list[tuple[SentencePart, str]] = field(default_factory=list)
    """Dates that come before the name."""
    words: list[SentencePart] = field(default_factory=list)
    """Words that must come from the entity."""
    purposes: list[SentencePart] = field(default_factory=list)
    """Conditions that the sentence gives as the purpose of this medication or procedure."""

    def kinds(self, *wanted: str) -> list[SentencePart]:
        """Return the cues of these kinds."""
        return [item for kind, item in self.cues if kind in wanted]


@dataclass(kw_only=True)
class ToldText:
    """All that a text says, and the parts that belong to no name."""

    told: list[ToldStatement] = field(default_factory=list)
    strays: list[SentencePart] = field(default_factory=list)
