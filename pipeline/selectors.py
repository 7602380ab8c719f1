"""Reads that several stages and the console share. Imports models; writes nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import TypedDict, cast
from uuid import UUID

from django.db.models import Count, Q, Sum

from pipeline.models import Page, PageAssignment, PageSource, ProviderCall
from pipeline.states import Step
from pipeline.types import PageText, Span

OCR_MODEL = "tesseract-5.5 tessdata_fast eng"
"""The engine inside the tesserocr wheel and its trained model."""


class CallTotals(TypedDict):
    """What a session's calls add up to."""

    calls: int
    failed: int
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cost_usd: Decimal


def page_texts(shell_file_id: UUID) -> dict[int, PageText]:
    """Return a record's pages by number, without word boxes (3 kB a page)."""
    rows = Page.objects.filter(shell_file_id=shell_file_id).order_by("page_number")
    return {
        number: PageText(number=number, text=text, is_blank=blank, ocr_confidence=confidence)
        for number, text, blank, confidence in rows.values_list(
            "page_number", "text", "is_blank", "ocr_confidence"
        )
    }


def spans_by_encounter(shell_file_id: UUID) -> dict[UUID, list[Span]]:
    """Return the spans of each published encounter of a record, in the order of the text."""
    found: dict[UUID, list[Span]] = defaultdict(list)
    rows = PageAssignment.objects.filter(
        discovery_session__shell_file_id=shell_file_id, healthcare_encounter__isnull=False
    ).order_by("page_number", "start_offset")
    for encounter_id, page, start, end in rows.values_list(
        "healthcare_encounter_id", "page_number", "start_offset", "end_offset"
    ):
        found[encounter_id].append(Span(page, start, end))
    return dict(found)


def ocr_words(shell_file_id: UUID, pages: Iterable[int]) -> dict[int, list[tuple[int, int, float]]]:
    """Return start, end and confidence (0–100) of the OCR words of these pages."""
    rows = Page.objects.filter(
        shell_file_id=shell_file_id, page_number__in=list(pages), source=PageSource.OCR
    )
    return {
        number: [(word[0], word[1], float(word[6])) for word in words or []]
        for number, words in rows.values_list("page_number", "words")
    }


def ocr_page_count(shell_file_id: UUID) -> int:
    """Return how many pages of a record were read by OCR."""
    return Page.objects.filter(shell_file_id=shell_file_id, source=PageSource.OCR).count()


def call_totals(session_id: UUID, step: Step | None = None) -> CallTotals:
    """Return tokens, cost and failures of a session's calls, of one pass or of all."""
    calls = ProviderCall.objects.filter(processing_session_id=session_id)
    if step is not None:
        calls = calls.filter(step=step)
    return cast(
        CallTotals,
        calls.aggregate(
            calls=Count("id"),
            failed=Count("id", filter=~Q(outcome="OK")),
            input_tokens=Sum("input_tokens", default=0),
            output_tokens=Sum("output_tokens", default=0),
            thinking_tokens=Sum("thinking_tokens", default=0),
            cost_usd=Sum("cost_usd", default=0),
        ),
    )
