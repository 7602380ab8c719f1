"""The confidence of a quote covers all its words, also across a page break."""

from __future__ import annotations

from pipeline.core.types import Span
from pipeline.stages.pass1.entity_rows import ocr_confidence


def test_digits_on_the_second_page_of_a_quote_are_judged_by_their_own_word() -> None:
    quote = "takes daily metformin\n500 mg twice"
    spans = [Span(1, 40, 61), Span(2, 0, 12)]
    words = {
        1: [(40, 45, 95.0), (46, 51, 96.0), (52, 61, 94.0)],
        2: [(0, 3, 30.0), (4, 6, 97.0), (7, 12, 98.0), (13, 20, 5.0)],
    }

    assert ocr_confidence(spans, words, quote) == (30.0, 30.0)


def test_words_without_digits_do_not_speak_for_a_number() -> None:
    quote = "weight 80\nkg today"
    spans = [Span(1, 0, 9), Span(2, 0, 8)]
    words = {1: [(0, 6, 40.0), (7, 9, 99.0)], 2: [(0, 2, 20.0), (3, 8, 97.0)]}

    assert ocr_confidence(spans, words, quote) == (20.0, 99.0)
