"""A note above a number in a scan: what the boxes of Tesseract's symbols say."""

from __future__ import annotations

from pipeline.documents.reader.raised_ink import without_notes
from pipeline.documents.reader.text_rows import RowToken


def test_symbols_without_height_leave_the_word_whole() -> None:
    token = RowToken(text="12", x0=10, y0=20, x1=30, y1=20, confidence=50.0)
    symbols = [("1", (10, 20, 20, 20)), ("2", (20, 20, 30, 20))]

    assert without_notes(token, {(10, 20, 30, 20): symbols}) == [token]


def test_a_raised_symbol_is_a_note_of_its_own() -> None:
    token = RowToken(text="12a", x0=10, y0=20, x1=36, y1=50, confidence=90.0)
    symbols = [("1", (10, 20, 20, 50)), ("2", (20, 20, 30, 50)), ("a", (30, 20, 36, 30))]

    found = without_notes(token, {(10, 20, 36, 50): symbols})

    assert [(part.text, part.x0, part.x1) for part in found] == [("12", 10, 30), ("ᵃ", 30, 36)]
