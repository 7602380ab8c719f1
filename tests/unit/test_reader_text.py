"""The reader turns placed words into text, and checks a text layer before its use."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.documents.reader.text_quality import plausible
from pipeline.documents.reader.text_rows import (
    RowToken,
    clean,
    compose,
    merge_rows,
    reading_order,
    reading_turn,
)


def line(text: str, x: float, y: float) -> list[RowToken]:
    """Return a line of tokens from `x`; a character is a hundredth of the page wide."""
    tokens = []
    for word in text.split():
        tokens.append(RowToken(text=word, x0=x, y0=y, x1=x + 0.01 * len(word), y1=y + 0.012))
        x += 0.01 * (len(word) + 1)
    return tokens


def text_of(lines: list[list[RowToken]]) -> str:
    return compose(lines)[0]


def test_a_table_drawn_column_by_column_is_read_row_by_row() -> None:
    names = [line("Glucose", 0.1, 0.2), line("Sodium", 0.1, 0.22)]
    values = [line("110 mg/dL", 0.4, 0.2), line("138 mmol/L", 0.4, 0.22)]
    ranges = [line("70-99 H", 0.7, 0.2), line("135-145", 0.7, 0.22)]

    rows = merge_rows([*names, *values, *ranges])

    assert text_of(rows) == "Glucose 110 mg/dL 70-99 H\nSodium 138 mmol/L 135-145"


def test_two_columns_of_prose_stay_apart() -> None:
    left = [line("the cough has settled since last", 0.05, 0.1 + 0.02 * i) for i in range(5)]
    right = [line("she sleeps through the night again", 0.5, 0.1 + 0.02 * i) for i in range(5)]

    rows = merge_rows([*left, *right])

    assert rows == [*left, *right]


def test_a_form_field_and_its_label_are_one_row() -> None:
    rows = merge_rows([line("Date of birth", 0.1, 0.1), line("02/11/1965", 0.5, 0.101)])

    assert text_of(rows) == "Date of birth 02/11/1965"


def test_lines_one_above_the_other_are_never_joined() -> None:
    lines = [line("Lisinopril 20 mg", 0.1, 0.10), line("daily", 0.5, 0.114)]

    assert merge_rows(lines) == lines


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


@given(st.lists(st.lists(st.text(max_size=8), max_size=6), max_size=6))
def test_every_word_is_at_its_offsets(texts: list[list[str]]) -> None:
    lines = [[RowToken(text=raw, x0=0.1, y0=0.1, x1=0.2, y1=0.2) for raw in row] for row in texts]

    text, words = compose(lines)

    assert [text[word.start : word.end] for word in words] == [
        clean(raw) for row in texts for raw in row if clean(raw)
    ]
    assert text == unicodedata.normalize("NFC", text)
    assert not any(unicodedata.category(char) in {"Cc", "Cs"} for char in text if char != "\n")


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


def test_text_that_runs_down_the_page_needs_a_turn_and_its_lines_an_order() -> None:
    down = [
        [
            RowToken(text="patient", x0=0.8 - 0.1 * row, y0=0.1, x1=0.82 - 0.1 * row, y1=0.3),
            RowToken(text=f"is{row}", x0=0.8 - 0.1 * row, y0=0.4, x1=0.82 - 0.1 * row, y1=0.5),
        ]
        for row in range(3)
    ]
    upright = line("the patient is well", 0.1, 0.1)

    assert reading_turn(down) == 270
    assert reading_order(down[::-1], 270) == down
    assert reading_turn([row[::-1] for row in down]) == 90
    assert reading_turn([upright]) == 0
    assert reading_turn([upright[::-1]]) == 180


def test_arabic_is_not_upside_down() -> None:
    assert reading_turn([line("مرحبا يا حبيبي العزيز", 0.1, 0.1)[::-1]]) == 0
