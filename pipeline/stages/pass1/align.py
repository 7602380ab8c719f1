"""Where a quote stands in the pages: no entity is accepted that its page does not show.

May import `types` and the reply's schema; pure. A number is never matched to another number, a
place is never given twice to the same mention, and text of another encounter is never searched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pipeline.provider.schemas import FoundEntity
from pipeline.types import PageText, Span


class Outcome(StrEnum):
    """What became of a quote."""

    ALIGNED = "aligned"
    RELOCATED = "relocated"
    """Stands on another own page than the reply said; kept and marked."""
    CONTEXT = "context"
    """Stands only in text shown as context; the neighbour reports it, so it is dropped."""
    REPEATED = "repeated"
    """Every place where it stands is already taken by the same mention; dropped."""
    UNALIGNED = "unaligned"
    """Stands nowhere; kept, never accepted."""


class Match(StrEnum):
    """How literally a quote was found."""

    EXACT = "exact"
    LAYOUT = "layout"
    """But for white space, line breaks, hyphenation, case and typographic variants."""
    CONFUSABLE = "confusable"
    """But for letters that a scanner mistakes for each other; numbers are identical."""


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """Where a quote stands and how sure that is."""

    outcome: Outcome
    match: Match | None = None
    spans: tuple[Span, ...] = ()
    """One, or two where the quote runs over to the next page."""
    text: str = field(default="", repr=False)
    """The page's own text at the spans; this is what is stored as the quote."""
    score: float = 0.0
    """0.0–1.0; a factor of the entity's confidence."""

    @property
    def span(self) -> Span | None:
        """Where it begins; None where it stands nowhere."""
        return self.spans[0] if self.spans else None

    @property
    def kept(self) -> bool:
        """Whether the caller stores it: aligned, relocated or unaligned."""
        return self.outcome in (Outcome.ALIGNED, Outcome.RELOCATED, Outcome.UNALIGNED)


@dataclass(frozen=True, kw_only=True)
class Aligned:
    """An entity with its place."""

    entity: FoundEntity = field(repr=False)
    alignment: Alignment
    batch_index: int = 0


Claim = tuple[str, str, Span]
"""Category, name and place of a mention that has been given that place."""


def align(
    entity: FoundEntity,
    own: Sequence[Span],
    pages: Mapping[int, PageText],
    taken: set[Claim],
    *,
    context: Sequence[Span] = (),
) -> Alignment:
    """Find the place of one entity's quote and enter it into `taken`."""
    raise NotImplementedError


def align_all(
    entities: Sequence[FoundEntity],
    own: Sequence[Span],
    pages: Mapping[int, PageText],
    *,
    context: Sequence[Span] = (),
    batch_index: int = 0,
) -> tuple[Aligned, ...]:
    """Align a batch's entities in the order of the reply, exact hints first.

    `own` are the batch's spans, `context` the spans of its context slices.
    """
    raise NotImplementedError


def merge(batches: Sequence[Sequence[Aligned]]) -> tuple[Aligned, ...]:
    """Join the batches of one encounter, in the order of the text, without doubles.

    Only kept entities go through. Two batches' entities of one category whose spans overlap are
    one; the longer wins, then the earlier batch.
    """
    raise NotImplementedError
