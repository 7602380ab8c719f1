"""Plain text becomes pages: encodings, page ends, columns, and characters that must not mislead."""

from __future__ import annotations

import unicodedata

import pytest

from pipeline.documents.reader import ENCODING_GUESSED, LOST_CHARACTERS, InputRefused
from pipeline.documents.reader.texts import characters, encoding
from pipeline.documents.reader.texts.typesetting import ROWS, WIDTH
from tests.support.text_files import sheets_of, texts_of

SIGNS = "Glucose 5 µg/L, 38.5 °C, SpO2 ≥ 92 %, take ½ tablet, 10³/µL, 5–10 mg, “stable”, × 2, ±3"
WESTERN = (
    "Vancomycin 5 µg/mL at 38.5 °C, take ½ tablet, 1.8 m², 5–10 mg, “stable” × 2, wife’s, 3 ±1"
)


@pytest.mark.parametrize("code", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_signs_are_the_same_in_each_unicode_encoding(code: str) -> None:
    assert texts_of(SIGNS.encode(code)) == [SIGNS]


def test_signs_of_cp1252_are_read_where_their_place_proves_them() -> None:
    decoded = encoding.decode(WESTERN.encode("cp1252"))

    assert (decoded.text, decoded.warnings) == (WESTERN, ())


def test_letters_of_cp1252_are_read_with_a_warning() -> None:
    decoded = encoding.decode("Renée Müller was seen in Zürich.".encode("cp1252"))

    assert decoded.text == "Renée Müller was seen in Zürich."
    assert decoded.warnings == (ENCODING_GUESSED,)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Vancomycin 5 µg/mL", "cp437"),
        ("Vancomycin 5 µg/mL", "cp850"),
        ("5 mg/µL", "cp437"),
        ("Temp 38.5°C", "cp437"),
        ("Temp 38.5 °C", "cp850"),
        ("Glucose ≥ 200", "cp437"),
        ("Glucose ≥200", "mac-roman"),
        ("Glucose ≤ 70", "mac-roman"),
        ("Temp 38.5°C", "mac-roman"),
        ("take ½ tablet", "cp437"),
        ("Renée Müller", "mac-roman"),
        ("доза 5 мг", "cp1251"),
        ("患者は", "shift-jis"),
        ("患者", "utf-32"),
    ],
)
def test_an_encoding_that_cannot_be_told_is_refused(text: str, code: str) -> None:
    with pytest.raises(InputRefused) as refused:
        texts_of(text.encode(code))

    assert refused.value.code == "INPUT_INVALID"
    assert "UTF-8" in refused.value.message


@pytest.mark.parametrize(
    "raw",
    [
        b"Name: Jane\0\0\x01\x02",
        "Dose 5 µg".encode() + b"\xb5g",
        "Dose 5 µg".encode("utf-16") + b"\x00",
        "Dose 5 µg/L".encode().decode("cp1252").encode(),
        "Glucose ≥ 200".encode().decode("cp1252").encode(),
        "take ½ tablet".encode().decode("cp1252").encode(),
        "5–10 mg".encode().decode("cp1252").encode(),
        "Dose 5 \ufffdg".encode(),
        "Dose 5 m\ufffd".encode(),
        "take \ufffd tablet".encode(),
        "Dose \u202e05\u202c mg".encode(),
        "Dose 5\xad10 mg".encode(),
        "Change \xad5 kg".encode(),
        b"Dose \x1b[1m50\x1b[0m mg",
        b"D\bDose 5 mg",
        b"Dose 5\x7f0 mg",
    ],
)
def test_bytes_that_leave_a_value_open_are_refused(raw: bytes) -> None:
    with pytest.raises(InputRefused) as refused:
        texts_of(raw)

    assert refused.value.code == "INPUT_INVALID"
    assert "\n" not in refused.value.message


def test_lost_letters_are_a_warning() -> None:
    text = "The patient\ufffds wife, Ren" + "é".encode().decode("cp1252") + "e, agrees."

    assert characters.normalised(text) == (text, (LOST_CHARACTERS,))


def test_invisible_characters_change_no_digit_and_no_sign() -> None:
    raw = "Gluc\xadose\u200b 1\u200b10\xa0mg/dL, \u2066\u22125\u2069\u202fkg, e\u0301"

    assert characters.normalised(raw) == ("Glucose 110 mg/dL, −5 kg, é", ())


def test_normalisation_keeps_each_digit_and_sign() -> None:
    kept = "0123456789²³¹½¼¾±×÷−–—≤≥<>=~µμ°%‰٣³⁻⁶₂"

    assert characters.normalised(kept) == (unicodedata.normalize("NFC", kept), ())


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\u2028"])
def test_each_line_end_ends_a_line(end: str) -> None:
    assert texts_of(f"One{end}Two{end}".encode()) == ["One\nTwo"]


def test_a_form_feed_ends_a_page_and_an_empty_page_is_blank() -> None:
    sheets = sheets_of(b"One\f\fThree\n\f\n")

    assert [sheet.text()[0] for sheet in sheets] == ["One", "", "Three"]


def test_a_long_text_ends_its_pages_at_an_empty_line() -> None:
    notes = [f"Note {n}\n" + "\n".join(f"line {n}.{i}" for i in range(20)) for n in range(9)]

    pages = texts_of("\n\n".join(notes).encode())

    assert [page.splitlines()[0] for page in pages] == [
        "Note 0",
        "Note 2",
        "Note 4",
        "Note 6",
        "Note 8",
    ]


def test_a_heading_stays_with_the_text_below() -> None:
    lines = ["x"] * (ROWS - 3) + ["", "MEDICATIONS", "", "aspirin 81 mg", "", "more"]

    first, second = texts_of("\n".join(lines).encode())

    assert not first.endswith("MEDICATIONS")
    assert second.startswith("MEDICATIONS\naspirin 81 mg")


def test_one_long_line_is_cut_between_words_and_loses_none() -> None:
    words = [f"word{n}" for n in range(5000)]

    pages = texts_of(" ".join(words).encode())

    assert len(pages) > 5
    assert " ".join(pages).split() == words


def test_a_paragraph_stays_one_line() -> None:
    paragraph = "The patient feels well. " * 20

    assert texts_of(paragraph.encode()) == [paragraph.strip()]


def test_columns_of_spaces_become_cells() -> None:
    table = (
        "Test        Result   Flag   Units    Reference\n"
        "Sodium      140             mmol/L   135-145\n"
        "Potassium   5.9      H      mmol/L   3.5-5.1\n"
    )

    (text,) = texts_of(table.encode())
    assert text.splitlines() == [
        "Test\tResult\tFlag\tUnits\tReference",
        "Sodium\t140\t\tmmol/L\t135-145",
        "Potassium\t5.9\tH\tmmol/L\t3.5-5.1",
    ]


def test_tabs_between_cells_keep_empty_cells() -> None:
    table = "Test\tResult\tFlag\tUnits\nSodium, serum or plasma\t140\t\tmmol/L\nK\t5.9\tH\tmmol/L\n"

    assert texts_of(table.encode()) == [table.strip()]


def test_lists_side_by_side_are_read_one_after_the_other() -> None:
    lists = (
        "ALLERGIES            MEDICATIONS\n"
        "Penicillin           Warfarin 5 mg daily\n"
        "Sulfa\n"
        "                     Metformin 500 mg BID\n"
    )

    assert texts_of(lists.encode()) == [
        "ALLERGIES\nPenicillin\nSulfa\nMEDICATIONS\nWarfarin 5 mg daily\nMetformin 500 mg BID"
    ]


def test_struck_words_of_combining_characters_are_marked() -> None:
    struck = "".join(char + "\u0336" for char in "warfarin")

    assert texts_of(f"Stop {struck} today".encode()) == ["Stop ~~warfarin~~ today"]


def test_glyphs_of_check_boxes_become_boxes() -> None:
    assert texts_of("☐ Fever  ☑ Cough".encode()) == ["[ ] Fever [x] Cough"]


def test_each_word_has_its_place_on_the_page() -> None:
    (sheet,) = sheets_of(b"Temp 38.5 C\n\n" + b"wide " * 40)

    text, words = sheet.text()

    assert [text[word.start : word.end] for word in words] == text.split()
    assert all(0 <= word.x0 < word.x1 <= 1 and 0 <= word.y0 < word.y1 <= 1 for word in words)
    lines = {word.y0 for word in words}
    assert len(lines) == 1 + -(-40 * 5 // WIDTH)
