"""The text of an encounter as the prompt shows it, and its entities as they are published.

This module reads OCR words and writes nothing. Every entity is checked against its page again,
whichever engine reported the entity.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from uuid import UUID, uuid4

from pipeline.clinical.page_text.rows import headings_above, quoted_text, row_of
from pipeline.clinical.page_text.spellings import fold
from pipeline.core.types import PageSlice, PageText, Span
from pipeline.core.types import slices as cut
from pipeline.models import AlignmentKind, Batch, EncounterResult, selectors
from pipeline.providers.local.local_reading import SecondReading
from pipeline.providers.schemas import EntityReply, FoundEntity
from pipeline.stages.page_checks.quote_checks import not_in_quote
from pipeline.stages.pass1 import plausibility
from pipeline.stages.pass1.align import (
    Aligned,
    AlignmentOutcome,
    QuoteMatch,
    align_all,
    merge,
)
from pipeline.stages.pass1.disputes import NOT_UNDERSTOOD_RULE, SecondOpinion, opinions
from pipeline.stages.pass1.planner import PlannedBatch, context_for
from pipeline.stages.pass1.review_flags import Flag, flagged, prevents_acceptance
from pipeline.stages.pass1.source_dates import SourceDates
from pipeline.stages.pass1.source_numbers import SourceNumbers
from pipeline.transitions import Lease

LOW_WORD_CONFIDENCE = 80.0
"""A word with a digit below this confidence (0–100) sends its entity to review. On a clean scan
`7.2` was read as `72` with confidence 61; correct digits are rarely below 85."""
OcrWords = Callable[[UUID, set[int]], Mapping[int, list[tuple[int, int, float]]]]
"""Returns start, end and confidence of the OCR words of a record's pages."""
Second = Callable[[int], SecondReading | None]
"""Returns the local engine's reading of a batch by index; None if the engine itself replied."""


@dataclass(frozen=True, kw_only=True)
class EncounterText:
    """An encounter's batches as runs of text, with the context around each batch."""

    batches: tuple[PlannedBatch, ...]
    pages: Mapping[int, PageText]

    @classmethod
    def of(cls, batches: Sequence[Batch], pages: Mapping[int, PageText]) -> EncounterText:
        """Rebuild the stored plan of an encounter."""
        return cls(
            batches=tuple(
                PlannedBatch(
                    index=b.batch_index,
                    spans=tuple(Span(*span) for span in b.spans),
                    first_page=b.page_range_start,
                    last_page=b.page_range_end,
                )
                for b in batches
            ),
            pages=pages,
        )

    def context(self, index: int) -> tuple[tuple[PageSlice, ...], tuple[PageSlice, ...]]:
        """Return the text shown before and after a batch for understanding only."""
        spans = [span for batch in self.batches for span in batch.spans]
        return context_for(self.batches[index], spans, self.pages)

    def pages_of(self, index: int) -> tuple[int, ...]:
        """Return the pages on which a batch has text."""
        return tuple(sorted({span.page for span in self.batches[index].spans}))

    def part(self, index: int, pages: Sequence[int]) -> PlannedBatch:
        """Return the text that a batch has on some of its pages."""
        spans = tuple(span for span in self.batches[index].spans if span.page in set(pages))
        return PlannedBatch(index=index, spans=spans, first_page=pages[0], last_page=pages[-1])

    def slices(self, index: int, pages: Sequence[int] = ()) -> tuple[PageSlice, ...]:
        """Return the slices, in order, that the prompt of a batch or of some of its pages shows."""
        part = self.part(index, pages or self.pages_of(index))
        spans = [span for batch in self.batches for span in batch.spans]
        before, after = context_for(part, spans, self.pages)
        return (*before, *cut(part.spans, self.pages), *after)


def entity_rows(
    lease: Lease,
    result: EncounterResult,
    batches: Sequence[Batch],
    replies: Sequence[EntityReply],
    text: EncounterText,
    pages: Mapping[int, PageText],
    second: Second = lambda index: None,
    ocr_words: OcrWords = selectors.ocr_words,
) -> list[dict[str, Any]]:
    """Return an encounter's entities as rows of a flush, in the order of the text."""
    aligned: list[Sequence[Aligned]] = []
    judged: dict[int, _Judged] = {}
    for batch, reply in zip(text.batches, replies, strict=True):
        before, after = text.context(batch.index)
        found = align_all(
            reply.entities,
            batch.spans,
            pages,
            context=[part.span for part in (*before, *after)],
            batch_index=batch.index,
        )
        aligned.append(found)
        # A reading costs more than all other checks, and without an entity nothing is compared.
        judged.update(_judged(found, second(batch.index) if found else None, pages))
    merged = merge(aligned)
    words = _words(lease, merged, pages, ocr_words)
    sources = (SourceDates(pages), SourceNumbers(pages))
    of_all = {
        "pass1_metrics_id": None,
        "shell_file_id": str(lease.shell_file_id),
        "healthcare_encounter_id": str(result.healthcare_encounter_id),
        "processing_session_id": str(lease.session_id),
        "patient_id": str(result.patient_id),
    }
    return [
        {
            "id": str(uuid4()),
            **of_all,
            "entity_index": index,
            "engine": batches[found.batch_index].ai_model_used or "",
            **_columns(found, text.batches[found.batch_index], words, sources, judged[id(found)]),
        }
        for index, found in enumerate(merged)
    ]


@dataclass(frozen=True, kw_only=True)
class _Judged:
    """What the checks against the page and the second reader found."""

    flags: tuple[str, ...] = ()
    second_reading: Mapping[str, Any] | None = field(default=None, repr=False)


def _judged(
    found: Sequence[Aligned], reading: SecondReading | None, pages: Mapping[int, PageText]
) -> dict[int, _Judged]:
    """Check a batch's entities against the page and the second reading; by id of the entity."""
    heard = [SecondOpinion()] * len(found)
    if reading is not None:
        heard = opinions(
            [each.entity for each in found], [each.alignment.spans for each in found], reading
        )
    names = _names_by_page(found)
    return {
        id(each): _of_checks(each, opinion, reading, pages, names)
        for each, opinion in zip(found, heard, strict=True)
    }


def _of_checks(
    aligned: Aligned,
    opinion: SecondOpinion,
    reading: SecondReading | None,
    pages: Mapping[int, PageText],
    names: Mapping[tuple[int, str], Sequence[tuple[Span, str]]],
) -> _Judged:
    entity, where = aligned.entity, aligned.alignment
    if not where.spans:
        return _Judged()
    own = entity.name.casefold()
    neighbours = [
        span
        for page in {span.page for span in where.spans}
        for span, name in names.get((page, entity.category), ())
        if name != own
    ]
    # The letters that a scanner confused are right in the reply; its numbers are the page's.
    quote = entity.quote if where.match is QuoteMatch.CONFUSABLE else where.text
    shown = quoted_text(quote, where.spans, pages, neighbours)
    missing = dict.fromkeys((*not_in_quote(entity, shown), *opinion.unsupported))
    flags = [flagged(Flag.NOT_IN_QUOTE, attribute) for attribute in missing]
    flags += [flagged(Flag.DISPUTED, attribute) for attribute in opinion.disputed]
    if opinion.is_read_once:
        flags.append(flagged(Flag.READ_ONCE))
    flags += _suspicions(where.spans, pages)
    senses = {_sense(span, entity, reading, pages) for span in aligned.doubt.rivals}
    if aligned.doubt.is_out_of_order or len(senses) > 1:
        flags.append(flagged(Flag.AMBIGUOUS_PLACE))
    return _Judged(flags=tuple(flags), second_reading=opinion.disputed or None)


def _suspicions(spans: Sequence[Span], pages: Mapping[int, PageText]) -> list[str]:
    """Return the flags of the suspect parts that a quote touches."""
    found = {
        flag
        for span in spans
        for flag, start, end in pages[span.page].suspects
        if start < span.end and span.start < end
    }
    return [
        flagged(flag) for flag in (Flag.HIDDEN_TEXT, Flag.ADDRESSES_A_MODEL) if flag.value in found
    ]


def _names_by_page(
    found: Sequence[Aligned],
) -> Mapping[tuple[int, str], Sequence[tuple[Span, str]]]:
    """Return places and names by page and category."""
    names: defaultdict[tuple[int, str], list[tuple[Span, str]]] = defaultdict(list)
    for each in found:
        for span in each.alignment.spans:
            key = (span.page, each.entity.category)
            names[key].append((span, each.entity.name.casefold()))
    return names


def _sense(
    span: Span,
    entity: FoundEntity,
    reading: SecondReading | None,
    pages: Mapping[int, PageText],
) -> Hashable:
    """Return heading, assertion and values of a place: equal for places that say the same."""
    text = pages[span.page].text
    row = row_of(text, span)
    figures = tuple(sorted(re.findall(r"[\d./:<>-]*\d", fold(row))))
    if reading is None:
        return (row, headings_above(text, span))
    is_measured = entity.category in ("vital", "lab", "medication", "immunization")
    return (reading.zone(span), reading.judge(span), figures if is_measured else ())


def _columns(
    aligned: Aligned,
    batch: PlannedBatch,
    words: Mapping[int, list[tuple[int, int, float]]],
    sources: Sequence[SourceDates | SourceNumbers],
    judged: _Judged,
) -> dict[str, Any]:
    entity, where = aligned.entity, aligned.alignment
    spans = where.spans
    ocr, digits = ocr_confidence(spans, words, where.text)
    flags = [flagged(flag) for flag in plausibility.doubts(entity)]
    if (entity.rule or "").endswith(NOT_UNDERSTOOD_RULE):
        flags.append(flagged(Flag.ROW_NOT_UNDERSTOOD))
    if where.outcome is AlignmentOutcome.UNALIGNED:
        flags.append(flagged(Flag.UNALIGNED))
    flags += judged.flags
    if spans:
        flags += (flag for source in sources for flag in source.doubts(entity, spans[0].page))
    if where.outcome is AlignmentOutcome.RELOCATED:
        flags.append(flagged(Flag.RELOCATED))
    if digits is not None and digits < LOW_WORD_CONFIDENCE:
        flags.append(flagged(Flag.LOW_OCR_CONFIDENCE))
    factor = 1.0 if ocr is None else ocr / 100
    return {
        "category": entity.category,
        "name": entity.name,
        "page_number": spans[0].page if spans else _page_named(entity.page, batch),
        "char_start": spans[0].start if spans else None,
        "char_end": spans[-1].end if spans else None,
        "page_end": spans[-1].page if len(spans) > 1 else None,
        "quote": where.text if spans else entity.quote,
        "alignment": _kind(aligned),
        "accepted": not any(map(prevents_acceptance, flags)),
        "value": entity.value,
        "unit": entity.unit,
        "reference_range": entity.reference_range,
        "abnormal_flag": entity.abnormal_flag,
        "strength": entity.strength,
        "dose": entity.dose,
        "previous_dose": entity.previous_dose,
        "route": entity.route,
        "frequency": entity.frequency,
        # Models also give a problem list a status.
        "status": entity.status if entity.category == "medication" else None,
        "step": entity.step,
        "reaction": entity.reaction,
        "entity_date": _iso(entity.date),
        "negated": entity.negated,
        "temporality": entity.temporality,
        "certainty": entity.certainty,
        "experiencer": entity.experiencer,
        "zone_type": entity.zone,
        "rule": entity.rule or None,
        "engine_confidence": entity.engine_confidence,
        "ocr_confidence": ocr,
        "confidence": round(where.score * factor * entity.engine_confidence, 4),
        "review_flags": flags,
        "second_reading": judged.second_reading,
    }


def _page_named(page: int, batch: PlannedBatch) -> int:
    """Return the page that a reply names, or the first page if the batch lacks the named page."""
    return page if any(span.page == page for span in batch.spans) else batch.first_page


def _kind(aligned: Aligned) -> str:
    where = aligned.alignment
    if where.outcome is AlignmentOutcome.UNALIGNED:
        return AlignmentKind.UNALIGNED.value
    if where.outcome is AlignmentOutcome.RELOCATED:
        return AlignmentKind.RELOCATED.value
    return where.match.value if where.match else AlignmentKind.EXACT.value


def _words(
    lease: Lease,
    merged: Sequence[Aligned],
    pages: Mapping[int, PageText],
    ocr_words: OcrWords,
) -> Mapping[int, list[tuple[int, int, float]]]:
    # Query only if OCR was used, so that a text record costs no statement.
    wanted = {
        span.page
        for found in merged
        for span in found.alignment.spans
        if pages[span.page].ocr_confidence is not None
    }
    return ocr_words(lease.shell_file_id, wanted) if wanted else {}


def ocr_confidence(
    spans: Sequence[Span], words: Mapping[int, list[tuple[int, int, float]]], quote: str
) -> tuple[float | None, float | None]:
    """Return the lowest confidence of the quote's words, and of its words with a digit."""
    found: list[float] = []
    digits: list[float] = []
    offset = 0
    for span in spans:
        shown = quote[offset : offset + len(span)]
        # A quote over two pages consists of both texts with a line break between them.
        offset += len(span) + 1
        for start, end, confidence in words.get(span.page, ()):
            if start >= span.end or end <= span.start:
                continue
            found.append(confidence)
            part = shown[max(0, start - span.start) : end - span.start]
            if any(c.isdigit() for c in part):
                digits.append(confidence)
    return (min(found) if found else None, min(digits) if digits else None)


def _iso(text: str | None) -> str | None:
    try:
        return date.fromisoformat(text).isoformat() if text else None
    except ValueError:
        return None
