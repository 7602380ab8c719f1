"""The reader turns placed words into text, and checks a text layer before its use."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.documents.reader.page_layout import lay_out
from pipeline.documents.reader.placed_words import PageWord
from pipeline.documents.reader.text_quality import plausible
from pipeline.documents.reader.text_rows import RowToken, clean, reading_turn


def line(text: str, x: float, y: float) -> list[RowToken]:
    """Return a line of tokens from `x`; a character is a hundredth of the page wide."""
    tokens = []
    for word in text.split():
        tokens.append(RowToken(text=word, x0=x, y0=y, x1=x + 0.01 * len(word), y1=y + 0.012))
        x += 0.01 * (len(word) + 1)
    return tokens


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("e\u0301", "é"),
        ("a\x00b", "ab"),
        ("ﬁbrillation", "fibrillation"),
        ("follow\x02up", "follow-up"),
        ("pa\u00adtient\u200b", "patient"),
        ("\U000e0041x", "x"),
        ("\ud800y", "y"),
        ("100 µg", "100µg"),
    ],
)
def test_a_word_loses_what_is_invisible_or_not_storable(raw: str, expected: str) -> None:
    assert clean(raw) == expected


@given(
    st.lists(
        st.tuples(st.text(max_size=8), st.integers(0, 60), st.integers(0, 30), st.booleans()),
        max_size=30,
    )
)
def test_every_word_is_once_at_its_offsets(placed: list[tuple[str, int, int, bool]]) -> None:
    page = [
        PageWord(
            text=raw,
            left=10.0 * x,
            top=12.0 * y,
            right=10.0 * x + 6 * len(raw),
            bottom=12.0 * y + 11,
            baseline=12.0 * y + 9,
            size=10,
            box=(0.1, 0.1, 0.2, 0.2),
            struck=struck,
        )
        for raw, x, y, struck in placed
    ]

    text, words = lay_out(page)

    given_words = {clean(word.text) for word in page if clean(word.text)}
    assert {text[word.start : word.end] for word in words} <= given_words
    assert bool(words) == bool(given_words)
    assert len(words) <= len(page)
    assert text == unicodedata.normalize("NFC", text)
    assert not any(
        unicodedata.category(char) in {"Cc", "Cs"} for char in text if char not in "\n\t"
    )


def test_clinical_prose_and_laboratory_rows_are_plausible() -> None:
    assert plausible("The patient denies chest pain, fever or shortness of breath. " * 3)
    assert plausible("Glucose 110 mg/dL 70-99 H\nSodium 138 mmol/L 135-145")
    assert plausible("يبيبَح مرحبا")


def test_the_output_of_a_font_without_a_map_is_not_plausible() -> None:
    shifted = "".join(chr(ord(c) - 29) for c in "the patient denies chest pain and fever" * 3)

    assert not plausible("")
    assert not plausible("\ue001\ue002\ue003\ue004 \ue005")
    assert not plausible("7KH SDWLHQW GHQLHV FKHVW SDLQ DQG IHYHU " * 4)
    assert not plausible(shifted)


def test_text_that_runs_down_the_page_needs_a_turn() -> None:
    down = [
        [
            RowToken(text="patient", x0=0.8 - 0.1 * row, y0=0.1, x1=0.82 - 0.1 * row, y1=0.3),
            RowToken(text=f"is{row}", x0=0.8 - 0.1 * row, y0=0.4, x1=0.82 - 0.1 * row, y1=0.5),
        ]
        for row in range(3)
    ]
    upright = line("the patient is well", 0.1, 0.1)

    assert reading_turn(down) == 270
    assert reading_turn([row[::-1] for row in down]) == 90
    assert reading_turn([upright]) == 0
    assert reading_turn([upright[::-1]]) == 180


def test_arabic_is_not_upside_down() -> None:
    assert reading_turn([line("مرحبا يا حبيبي العزيز", 0.1, 0.1)[::-1]]) == 0
