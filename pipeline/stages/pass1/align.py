"""The positions of quotes on the pages; an entity whose quote is not on a page is not accepted.

This module is pure. A number never matches a different number. The same mention never gets the
same place twice. The text of other encounters is never searched.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice

from pipeline.core.types import PageText, Span
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1.quote_search import Fold, cuts_no_word, find
from pipeline.stages.pass1.reply_order import Doubt, QuotedMention, chosen_places, doubts


class AlignmentOutcome(StrEnum):
    """The result of the search for a quote."""

    ALIGNED = "aligned"
    RELOCATED = "relocated"
    """Found on another page of the batch than the reply said; kept and marked."""
    CONTEXT = "context"
    """Found only in text shown as context; dropped, because the neighbouring batch reports it."""
    REPEATED = "repeated"
    """Every place of the quote is already taken by the same mention; dropped."""
    UNALIGNED = "unaligned"
    """Found on no page; kept, but never accepted."""


class QuoteMatch(StrEnum):
    """How literally the quote was found."""

    EXACT = "exact"
    LAYOUT = "layout"
    """Equal except for white space, line breaks, hyphenation, case and typographic variants."""
    CONFUSABLE = "confusable"
    """Equal except for letters that scanners confuse; the numbers are identical."""


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """The position of a quote, and how certain the position is."""

    outcome: AlignmentOutcome
    match: QuoteMatch | None = None
    spans: tuple[Span, ...] = ()
    """One span, or two if the quote continues on the next page."""
    text: str = field(default="", repr=False)
    """The page's own text at the spans, which is stored as the quote."""
    score: float = 0.0
    """0.0–1.0; one factor of the entity's confidence."""

    @property
    def span(self) -> Span | None:
        """The first span; None if the quote was not found."""
        return self.spans[0] if self.spans else None

    @property
    def kept(self) -> bool:
        """Whether the caller stores it: aligned, relocated or unaligned."""
        return self.outcome in (
            AlignmentOutcome.ALIGNED,
            AlignmentOutcome.RELOCATED,
            AlignmentOutcome.UNALIGNED,
        )


@dataclass(frozen=True, kw_only=True)
class Aligned:
    """An entity with its position."""

    entity: FoundEntity = field(repr=False)
    alignment: Alignment
    batch_index: int = 0
    doubt: Doubt = field(default_factory=Doubt)
    """What the order of the reply leaves open about the place."""


Claim = tuple[str, str, Span]
"""Category, words and position of a mention that already has this position.

Each mention adds two claims: one with its name, and one with its name and attributes.
"""


_SCORE = {QuoteMatch.EXACT: 1.0, QuoteMatch.LAYOUT: 0.95, QuoteMatch.CONFUSABLE: 0.8}
_FOLDS: tuple[tuple[QuoteMatch, Fold | None], ...] = (
    (QuoteMatch.EXACT, None),
    (QuoteMatch.LAYOUT, Fold.LAYOUT),
    (QuoteMatch.LAYOUT, Fold.JOINED),
    (QuoteMatch.CONFUSABLE, Fold.CONFUSABLE),
)
"""The tolerances of the search, the most literal first."""
_RELOCATED = 0.9
_OVER_PAGES = 0.95
_MAX_PLACES = 500
"""The most places of one quote that are compared: a mark of one letter occurs everywhere."""
_EDGE_LINES = 4
"""Running headers and footers that may separate the two halves of a quote."""


def align(
    entity: FoundEntity,
    own: Sequence[Span],
    pages: Mapping[int, PageText],
    taken: set[Claim],
    *,
    context: Sequence[Span] = (),
) -> Alignment:
    """Find the position of one entity's quote and add it to `taken`.

    Search in this order: at the hint, on the named page, over the end of that page, in the context,
    on the other pages of the batch. At each place try exact, then layout, then confusable.
    `own` are the batch's spans, `context` the spans of its context slices.
    """
    found = _at_hint(entity, own, pages, taken)
    if found is None:
        if _hinted(entity, context, pages):
            return Alignment(outcome=AlignmentOutcome.CONTEXT)
        here = [span for span in sorted(own) if span.page == entity.page]
        elsewhere = sorted(
            (span for span in own if span.page != entity.page),
            key=lambda span: (abs(span.page - entity.page), span),
        )
        shown = [span for span in sorted(context) if span.page == entity.page]
        found, repeated = _in_order(entity, here, pages, taken)
        found = found or _over_pages(entity, here, own, context, pages, taken)
        if found is None and not repeated:
            if next(_places(entity, shown, pages), None):
                return Alignment(outcome=AlignmentOutcome.CONTEXT)
            found, repeated = _in_order(entity, elsewhere, pages, taken)
            if found is not None:
                found = replace(
                    found, outcome=AlignmentOutcome.RELOCATED, score=found.score * _RELOCATED
                )
        if found is None and not repeated and next(_places(entity, context, pages), None):
            return Alignment(outcome=AlignmentOutcome.CONTEXT)
        if found is None:
            return Alignment(
                outcome=AlignmentOutcome.REPEATED if repeated else AlignmentOutcome.UNALIGNED
            )
    taken.update(_claims(entity, found.spans[0]))
    return found


def align_all(
    entities: Sequence[FoundEntity],
    own: Sequence[Span],
    pages: Mapping[int, PageText],
    *,
    context: Sequence[Span] = (),
    batch_index: int = 0,
) -> tuple[Aligned, ...]:
    """Align a batch's entities: exact hints first, then in the order of the reply.

    A quote that occurs in several places gets the place between the places of its neighbours.
    `own` are the batch's spans, `context` the spans of its context slices.
    """
    taken: set[Claim] = set()
    found: dict[int, Alignment] = {}

    def place(number: int, alignment: Alignment) -> None:
        found[number] = alignment
        taken.update(_claims(entities[number], alignment.spans[0]))

    for number, entity in enumerate(entities):
        if (hinted := _at_hint(entity, own, pages, taken)) is not None:
            place(number, hinted)
    if len(found) < len(entities):
        unsure = _place_by_order(entities, found, place, own, pages, taken, context)
    else:
        unsure = [Doubt()] * len(entities)
    return tuple(
        Aligned(
            entity=entity, alignment=found[number], batch_index=batch_index, doubt=unsure[number]
        )
        for number, entity in enumerate(entities)
    )


def _place_by_order(
    entities: Sequence[FoundEntity],
    found: dict[int, Alignment],
    place: Callable[[int, Alignment], None],
    own: Sequence[Span],
    pages: Mapping[int, PageText],
    taken: set[Claim],
    context: Sequence[Span],
) -> list[Doubt]:
    """Place the entities without a hint, and say what the order leaves open about each entity."""
    options = [
        _options(entity, found.get(number), own, pages) for number, entity in enumerate(entities)
    ]
    mentions = [mention for mention, _ in options]
    chosen = chosen_places(mentions)
    for number, span in enumerate(chosen):
        match = options[number][1]
        if span is None or match is None or number in found:
            continue
        if _claims(entities[number], span)[1] not in taken:
            place(number, _on_page(entities[number], match, span, pages))
    for number, entity in enumerate(entities):
        if number not in found:
            found[number] = align(entity, own, pages, taken, context=context)
    return doubts(mentions, chosen, [found[number].span for number in range(len(entities))])


def merge(batches: Sequence[Sequence[Aligned]]) -> tuple[Aligned, ...]:
    """Join the batches of one encounter, in the order of the text, without duplicates.

    Only kept entities are included. Entities of two batches with the same category and overlapping
    spans are one entity; the longer wins, then the earlier batch. Unaligned entities come last on
    their page.
    """
    kept = [aligned for batch in batches for aligned in batch if aligned.alignment.kept]
    won: defaultdict[int, defaultdict[int, list[Aligned]]] = defaultdict(lambda: defaultdict(list))
    """By page and batch: entities of one batch are never doubles, and most pages have one batch."""
    doubles: set[int] = set()
    for aligned in sorted(kept, key=lambda a: (-_length(a), a.batch_index)):
        on = {span.page for span in aligned.alignment.spans}
        others = (
            other
            for page in on
            for batch, group in won[page].items()
            if batch != aligned.batch_index
            for other in group
        )
        if any(_double(aligned, other) for other in others):
            doubles.add(id(aligned))
            continue
        for page in on:
            won[page][aligned.batch_index].append(aligned)
    return tuple(sorted((a for a in kept if id(a) not in doubles), key=_place))


def _at_hint(
    entity: FoundEntity, own: Sequence[Span], pages: Mapping[int, PageText], taken: set[Claim]
) -> Alignment | None:
    span = _hinted(entity, own, pages)
    if span is None or _claims(entity, span)[1] in taken:
        return None
    return _aligned(QuoteMatch.EXACT, (span,), pages)


def _hinted(
    entity: FoundEntity, inside: Sequence[Span], pages: Mapping[int, PageText]
) -> Span | None:
    """Return the span at the hint if the quote is literally there and inside `inside`."""
    page = pages.get(entity.page)
    if entity.start is None or page is None or not entity.quote.strip():
        return None
    span = Span(entity.page, entity.start, entity.start + len(entity.quote))
    exact = page.text.startswith(entity.quote, entity.start)
    within = any(span.overlap(s) == len(span) for s in inside)
    return span if exact and within and cuts_no_word(page.text, span.start, span.end) else None


def _options(
    entity: FoundEntity,
    hinted: Alignment | None,
    own: Sequence[Span],
    pages: Mapping[int, PageText],
) -> tuple[QuotedMention, QuoteMatch | None]:
    """Return the places of a quote that was found most literally, and how it was found."""
    # A quote of the bare name means one dose; a quote with the doses may mean several.
    is_bare = entity.quote.casefold().split() == entity.name.casefold().split()
    sameness = (entity.category, entity.name.casefold(), () if is_bare else _attributes(entity))
    if hinted is not None:
        return QuotedMention(sameness=sameness, quote=entity.quote, places=hinted.spans[:1]), None
    here = [span for span in own if span.page == entity.page]
    away = [span for span in own if span.page != entity.page]
    for match, fold in _FOLDS:
        places = _first_places(fold, entity, here, pages)
        if whole := tuple(place for place in places if not _is_part_of_ratio(place, pages)):
            places = whole
        if places:
            others = _first_places(fold, entity, away, pages)
            return QuotedMention(
                sameness=sameness, quote=entity.quote, places=places, others=others
            ), match
    for match, fold in _FOLDS:
        places = _first_places(fold, entity, away, pages)
        if places:
            return QuotedMention(sameness=sameness, quote=entity.quote, places=places), match
    return QuotedMention(sameness=sameness, quote=entity.quote, places=()), None


def _is_part_of_ratio(span: Span, pages: Mapping[int, PageText]) -> bool:
    """Return whether a place is one figure of two (`76` of `118/76`)."""
    text = pages[span.page].text
    return bool(
        re.search(r"\d/\Z", text[max(0, span.start - 2) : span.start])
        or re.match(r"/\d", text[span.end : span.end + 2])
    )


def _on_page(
    entity: FoundEntity, match: QuoteMatch, span: Span, pages: Mapping[int, PageText]
) -> Alignment:
    """Return the alignment at a place; another page than the named page is marked."""
    found = _aligned(match, (span,), pages)
    if span.page == entity.page:
        return found
    return replace(found, outcome=AlignmentOutcome.RELOCATED, score=found.score * _RELOCATED)


def _in_order(
    entity: FoundEntity, spans: Sequence[Span], pages: Mapping[int, PageText], taken: set[Claim]
) -> tuple[Alignment | None, bool]:
    """Return the first free place, and whether all places that exist are taken.

    A place that another dose of the same drug has taken is used if no place is free.
    """
    shared: Alignment | None = None
    repeated = False
    for match, span in _places(entity, spans, pages):
        same_name, same_mention = _claims(entity, span)
        if same_name not in taken:
            return _aligned(match, (span,), pages), False
        if shared is None and same_mention not in taken:
            shared = _aligned(match, (span,), pages)
        repeated = True
    return (shared, False) if shared is not None else (None, repeated)


def _places(
    entity: FoundEntity, spans: Iterable[Span], pages: Mapping[int, PageText]
) -> Iterator[tuple[QuoteMatch, Span]]:
    """Yield the places of the quote: exact places first, then layout, then confusable."""
    ordered = list(spans)
    for match, fold in _FOLDS:
        for span in _places_at(fold, entity, ordered, pages):
            yield match, span


def _places_at(
    fold: Fold | None, entity: FoundEntity, spans: Iterable[Span], pages: Mapping[int, PageText]
) -> Iterator[Span]:
    for span in spans:
        text = pages[span.page].text
        for start, end in find(entity.quote, text, span.start, span.end, fold):
            yield Span(span.page, start, end)


def _first_places(
    fold: Fold | None, entity: FoundEntity, spans: Iterable[Span], pages: Mapping[int, PageText]
) -> tuple[Span, ...]:
    return tuple(islice(_places_at(fold, entity, spans, pages), _MAX_PLACES))


def _over_pages(
    entity: FoundEntity,
    here: Sequence[Span],
    own: Sequence[Span],
    context: Sequence[Span],
    pages: Mapping[int, PageText],
    taken: set[Claim],
) -> Alignment | None:
    """Find a quote that begins at the end of its page and continues on the next page."""
    if not here or len(entity.quote.split()) < 2:
        return None
    first = here[-1]
    second = next((s for s in sorted([*own, *context]) if s.page > first.page), None)
    if second is None or not _next_page(first.page, second.page, pages):
        return None
    head, tail = pages[first.page].text, pages[second.page].text
    reach = 2 * len(entity.quote) + 20
    begin_word, end_word = (entity.quote.casefold().split()[at] for at in (0, -1))
    if (
        begin_word not in head[first.start : first.end].casefold()
        or end_word not in tail[second.start : second.end].casefold()
    ):
        return None
    for end in _trimmed_ends(head, first.start, first.end):
        start = max(first.start, end - reach)
        for begin in _trimmed_starts(tail, second.start, second.end):
            stop = min(second.end, begin + reach)
            joined = head[start:end] + "\n" + tail[begin:stop]
            edge = end - start
            for at, to in find(entity.quote, joined, 0, len(joined), Fold.LAYOUT, once=True):
                if not at < edge < to - 1:
                    continue
                one = Span(first.page, start + at, end)
                other = Span(second.page, begin, begin + to - edge - 1)
                if _claims(entity, one)[1] not in taken:
                    found = _aligned(QuoteMatch.LAYOUT, (one, other), pages)
                    return replace(found, score=found.score * _OVER_PAGES)
    return None


def _next_page(page: int, later: int, pages: Mapping[int, PageText]) -> bool:
    between = range(page + 1, min(later, page + 10))
    return later <= page + 10 and all(n in pages and pages[n].is_blank for n in between)


def _trimmed_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Yield ends of a page's text, with none to four of its last lines left out."""
    for _ in range(_EDGE_LINES + 1):
        end = start + len(text[start:end].rstrip())
        if end <= start:
            return
        yield end
        end = max(start, text.rfind("\n", start, end))


def _trimmed_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Yield starts of a page's text, with none to four of its first lines left out."""
    for _ in range(_EDGE_LINES + 1):
        start = end - len(text[start:end].lstrip())
        if start >= end:
            return
        yield start
        at = text.find("\n", start, end)
        if at < 0:
            return
        start = at + 1


def _aligned(
    match: QuoteMatch, spans: tuple[Span, ...], pages: Mapping[int, PageText]
) -> Alignment:
    return Alignment(
        outcome=AlignmentOutcome.ALIGNED,
        match=match,
        spans=spans,
        text="\n".join(pages[s.page].text[s.start : s.end] for s in spans),
        score=_SCORE[match],
    )


def _claims(entity: FoundEntity, span: Span) -> tuple[Claim, Claim]:
    """Return the claims of a name and of a mention on a place."""
    name = entity.name.casefold()
    attributes = "\0".join("".join(a.casefold().split()) if a else "" for a in _attributes(entity))
    return (
        (entity.category, name, span),
        (entity.category, f"{name}\0{attributes}", span),
    )


def _attributes(entity: FoundEntity) -> tuple[str | None, ...]:
    """Return what makes two entities with the same quote different."""
    step = str(entity.step) if entity.step else None
    return (entity.value, entity.strength, entity.dose, entity.frequency, step)


def _length(aligned: Aligned) -> int:
    return sum(len(span) for span in aligned.alignment.spans)


def _double(one: Aligned, other: Aligned) -> bool:
    return (
        one.batch_index != other.batch_index
        and one.entity.category == other.entity.category
        and any(a.overlap(b) for a in one.alignment.spans for b in other.alignment.spans)
        and not _contradict(one.entity, other.entity)
    )


def _contradict(one: FoundEntity, other: FoundEntity) -> bool:
    """Return whether two mentions of one drug or test state different values, doses or steps.

    An attribute that one of the two lacks decides nothing: a quote may be cut at a page's end.
    """
    return one.name.casefold() == other.name.casefold() and any(
        a and b and a.casefold().split() != b.casefold().split()
        for a, b in zip(_attributes(one), _attributes(other), strict=True)
    )


def _place(aligned: Aligned) -> tuple[int, bool, int, int]:
    span = aligned.alignment.span
    if span is None:
        return (aligned.entity.page, True, 0, aligned.batch_index)
    return (span.page, False, span.start, aligned.batch_index)
