"""The real child process reads all visible content of a page, or reports what it cannot read."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, ImageFilter

from pipeline.documents.reader import (
    ATTACHMENTS,
    HIDDEN_TEXT,
    PARTLY_READ,
    InputRefused,
    PageRead,
    ReaderLimits,
    probe,
    read_pages,
)
from tests.support import hostile_files, inked_pages
from tests.support.inked_pages import END, TABLE, TEXT, page_with, pasted, picture

LINES = (*TEXT, *TABLE, END)
SCAN = ("Northgate Reference Laboratory", "Glucose 110 mg/dL 70-99 H", "Sodium 138 mmol/L 135-145")

#: Each way to draw words that are not in the text layer.
DRAWN = {
    "a small picture": pasted(picture(TABLE), 72, 640, 230),
    "a large picture": pasted(picture(TABLE, width=1400), 20, 640, 570),
    "a dark picture": pasted(picture(TABLE, ink=255, paper=20), 72, 640, 230),
    "an upside-down picture": pasted(picture(TABLE).rotate(180), 72, 640, 230),
    "outlined text": inked_pages.outlined(TABLE, 72, 640, 11),
    "a picture in six forms": inked_pages.in_forms(pasted(picture(TABLE), 72, 640, 230), 6),
    "outlines in six forms": inked_pages.in_forms(inked_pages.outlined(TABLE, 72, 640, 11), 6),
}
#: Drawings that no person reads as words.
WORDLESS = {
    "rules, frames, boxes and dots": inked_pages.furniture,
    "a small logo": inked_pages.logo,
    "a barcode": inked_pages.barcode,
    "a square code": inked_pages.square_code,
}
UNREADABLE = {
    "handwriting": inked_pages.scribble(80, 560, 160, 26),
    "a handwritten number": inked_pages.scribble(80, 560, 40, 12, pen=0.8),
    "a slanted stamp": pasted(
        picture(("COPY OF RECORD",), ink=60).rotate(35, expand=True, fillcolor=255), 300, 600, 150
    ),
    "a blurred picture of words": pasted(
        picture(TABLE).filter(ImageFilter.GaussianBlur(5)), 72, 640, 230
    ),
    "a picture without words": pasted(inked_pages.photograph(), 72, 640, 220),
}
HIDDEN = {
    "transparent": page_with(inked_pages.transparent),
    "in the colour of its ground": page_with(inked_pages.on_its_own_colour),
    "in a layer that is off": inked_pages.layered(page_with(), shown=False),
    "in a hidden annotation": inked_pages.with_stamp_note(page_with(), 2),
    "in an annotation for paper only": inked_pages.with_stamp_note(page_with(), 32 + 4),
}


def read_one(folder: Path, content: bytes, limits: ReaderLimits | None = None) -> PageRead:
    path = folder / "record"
    path.write_bytes(content)
    (page,) = read_pages(path, 1, 1, limits)
    return page


@pytest.mark.parametrize("how", DRAWN)
def test_drawn_words_are_read_and_have_a_confidence(tmp_path: Path, how: str) -> None:
    page = read_one(tmp_path, page_with(DRAWN[how]))

    assert page.source == "mixed"
    assert sorted(page.text.splitlines()) == sorted(LINES)
    by_ocr = {page.text[w.start : w.end] for w in page.words if w.confidence is not None}
    assert by_ocr == {word for line in TABLE for word in line.split()}
    assert {region.kind for region in page.regions} == {"ocr"}
    assert page.warnings == ()


def test_drawn_words_come_at_their_place(tmp_path: Path) -> None:
    page = read_one(tmp_path, page_with(DRAWN["a small picture"]))

    assert tuple(page.text.splitlines()) == LINES
    potassium = next(w for w in page.words if page.text[w.start : w.end] == "Potassium")
    (region,) = page.regions
    assert region.x0 <= potassium.x0 < potassium.x1 <= region.x1
    assert region.y0 - 0.01 <= potassium.y0 < potassium.y1 <= region.y1 + 0.01


def test_a_sideways_table_is_read_row_by_row_below_the_page(tmp_path: Path) -> None:
    table = picture(TABLE).rotate(90, expand=True)

    page = read_one(tmp_path, page_with(pasted(table, 400, 640, 45)))

    assert tuple(page.text.splitlines()) == (*TEXT, END, *TABLE)
    last = page.words[-1]
    assert page.text[last.start : last.end] == "0.6-1.3"


def test_a_picture_of_one_number_is_read(tmp_path: Path) -> None:
    page = read_one(tmp_path, page_with(pasted(picture(("6.8",)), 72, 640, 40)))

    assert page.text.splitlines()[len(TEXT)] == "6.8"


def test_values_that_are_small_pictures_are_read_or_doubted(tmp_path: Path) -> None:
    page = read_one(tmp_path, page_with(inked_pages.pictured_values))

    read = {page.text[w.start : w.end]: w.confidence for w in page.words if w.confidence}
    assert len(read) == 4
    for value, confidence in read.items():
        # At this size a point may be lost; then the number must not be trusted.
        assert value in {"138", "6.8", "98", "9.1"} or confidence <= 30


def test_a_digital_header_above_a_scan_hides_nothing_of_the_scan(tmp_path: Path) -> None:
    scan = hostile_files.scan(SCAN)

    page = read_one(tmp_path, page_with(pasted(scan, 0, 640, 500), end=False))

    assert page.source == "mixed"
    assert tuple(page.text.splitlines()) == (*TEXT, *SCAN)


def test_a_straight_stamp_in_grey_is_read(tmp_path: Path) -> None:
    stamp = picture(("RECEIVED 03/05/2025",), ink=170)

    page = read_one(tmp_path, page_with(pasted(stamp, 300, 640, 180)))

    assert "RECEIVED 03/05/2025" in page.text


def test_white_words_of_the_text_layer_on_a_dark_banner_are_read(tmp_path: Path) -> None:
    page = read_one(tmp_path, page_with(inked_pages.on_a_dark_banner))

    assert (page.source, page.warnings) == ("text_layer", ())
    assert "ALLERGIES: Penicillin" in page.text


def test_a_dark_banner_of_a_scan_is_read(tmp_path: Path) -> None:
    scan = hostile_files.scan(SCAN)
    scan.paste(
        picture(("ALLERGIES: PENICILLIN",), size=34, ink=255, paper=20, width=1500), (100, 1000)
    )

    page = read_one(tmp_path, hostile_files.encoded(scan, "PNG"))

    assert tuple(page.text.splitlines()) == (*SCAN, "ALLERGIES: PENICILLIN")
    assert page.warnings == ()


@pytest.mark.parametrize("what", WORDLESS)
def test_a_drawing_without_words_is_not_reported(tmp_path: Path, what: str) -> None:
    page = read_one(tmp_path, page_with(WORDLESS[what]))

    assert (page.source, page.warnings, page.unread_share) == ("text_layer", (), 0.0)
    assert tuple(page.text.splitlines())[: len(TEXT)] == TEXT


@pytest.mark.parametrize("what", UNREADABLE)
def test_ink_that_ocr_cannot_read_is_reported_with_its_share(tmp_path: Path, what: str) -> None:
    page = read_one(tmp_path, page_with(UNREADABLE[what]))

    assert page.warnings == (PARTLY_READ,)
    assert tuple(page.text.splitlines()) == (*TEXT, END)
    assert 0.0005 <= page.unread_share <= 0.12
    assert {region.kind for region in page.regions} == {"unread"}


def test_handwriting_on_a_scan_is_reported(tmp_path: Path) -> None:
    scan = inked_pages.scribbled(hostile_files.scan(SCAN), (200, 900, 700, 980))

    page = read_one(tmp_path, hostile_files.encoded(scan, "PNG"))

    assert page.warnings == (PARTLY_READ,)
    (region,) = page.regions
    assert (region.x0, region.y0) == pytest.approx((200 / 1700, 900 / 2200), abs=0.03)


def test_a_worn_scan_without_handwriting_is_not_reported(tmp_path: Path) -> None:
    worn = hostile_files.noisy(hostile_files.scan(SCAN).rotate(1.2, fillcolor=255))

    page = read_one(tmp_path, hostile_files.encoded(worn, "PNG"))

    assert PARTLY_READ not in page.warnings


@pytest.mark.parametrize("how", HIDDEN)
def test_words_without_ink_are_left_out_and_reported(tmp_path: Path, how: str) -> None:
    page = read_one(tmp_path, HIDDEN[how])

    assert tuple(page.text.splitlines()) == (*TEXT, END)
    assert page.warnings == (HIDDEN_TEXT,)


def test_words_in_a_layer_that_is_on_and_in_a_shown_annotation_are_read(tmp_path: Path) -> None:
    for content in (
        inked_pages.layered(page_with(), shown=True),
        inked_pages.with_stamp_note(page_with(), 4),
    ):
        page = read_one(tmp_path, content)

        assert "Patient is DNR" in page.text
        assert page.warnings == ()


def test_words_under_a_picture_of_other_words_give_way_to_the_picture(tmp_path: Path) -> None:
    page = read_one(tmp_path, page_with(inked_pages.under_a_picture))

    assert tuple(page.text.splitlines()) == LINES
    assert page.warnings == (HIDDEN_TEXT,)


def test_a_value_with_a_covered_digit_is_read_as_it_shows(tmp_path: Path) -> None:
    page = read_one(tmp_path, page_with(inked_pages.covered_end))

    assert "Potassium 6.1 mmol/L" in page.text.splitlines()
    assert HIDDEN_TEXT in page.warnings


def test_clipped_words_are_left_out(tmp_path: Path) -> None:
    page = read_one(tmp_path, page_with(inked_pages.clipped))

    assert "DNR" not in page.text
    assert page.warnings == (HIDDEN_TEXT,)


def test_a_tick_of_a_pen_over_the_glyph_of_a_check_box_counts(tmp_path: Path) -> None:
    page = read_one(tmp_path, page_with(inked_pages.ticked_by_pen))

    assert "[x] Diabetes" in page.text
    assert "[ ] Asthma" in page.text
    assert page.warnings == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (inked_pages.xfa_form(page_with(), dynamic=True), "XFA form"),
        (inked_pages.xfa_form(page_with(), dynamic=False, data="<a>Ann Roe</a>"), "XFA form"),
        (inked_pages.with_attachment(page_with(), portfolio=True), "PDF portfolio"),
    ],
    ids=["a dynamic form", "a form without fields", "a portfolio"],
)
def test_a_file_whose_pages_are_a_cover_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "record"
    path.write_bytes(content)

    with pytest.raises(InputRefused, match=message) as refused:
        probe(path)

    assert refused.value.code == "INPUT_INVALID"


def test_the_cover_that_a_lost_form_left_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="XFA form"):
        read_one(tmp_path, inked_pages.lost_form())


def test_a_form_with_a_value_that_no_field_shows_is_reported(tmp_path: Path) -> None:
    data = "<a>Ann Roe</a><b>Warfarin</b>"

    whole = inked_pages.xfa_form(
        page_with(), dynamic=False, data=data, fields=["Ann Roe", "Warfarin"]
    )
    less = inked_pages.xfa_form(page_with(), dynamic=False, data=data, fields=["Ann Roe"])

    assert read_one(tmp_path, whole).warnings == ()
    assert read_one(tmp_path, less).warnings == (HIDDEN_TEXT,)


@pytest.mark.parametrize("on_page", [False, True], ids=["of the file", "of a page"])
def test_attached_files_are_reported(tmp_path: Path, *, on_page: bool) -> None:
    page = read_one(tmp_path, inked_pages.with_attachment(page_with(), on_page=on_page))

    assert ATTACHMENTS in page.warnings


def test_a_field_without_an_appearance_is_read(tmp_path: Path) -> None:
    page = read_one(tmp_path, inked_pages.with_field("Penicillin"))

    assert tuple(page.text.splitlines()) == (*TEXT, "Penicillin")


def test_typed_words_that_only_a_viewer_draws_are_reported(tmp_path: Path) -> None:
    page = read_one(tmp_path, inked_pages.with_free_text(page_with()))

    assert page.warnings == (PARTLY_READ,)
    (region,) = page.regions
    assert region.kind == "unread"
    assert region.x0 == pytest.approx(72 / 612, abs=0.001)


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_picture_on_a_turned_page_is_read_at_its_place(tmp_path: Path, degrees: int) -> None:
    content = inked_pages.turned_page(page_with(DRAWN["a small picture"]), degrees)

    page = read_one(tmp_path, content)

    assert page.rotation == 360 - degrees
    assert sorted(page.text.splitlines()) == sorted(LINES)


def test_a_word_in_a_font_without_characters_is_read(tmp_path: Path) -> None:
    page = read_one(tmp_path, inked_pages.without_characters(page_with(), "DNR"))

    assert page.source == "mixed"
    assert "DNR" in page.text.splitlines()


def test_a_scan_below_a_digital_header_may_be_skewed_and_worn(tmp_path: Path) -> None:
    scan = hostile_files.noisy(hostile_files.scan(SCAN).rotate(1.5, fillcolor=255))

    page = read_one(tmp_path, page_with(pasted(scan, 0, 640, 490), end=False))

    assert tuple(page.text.splitlines()) == (*TEXT, *SCAN)
    assert page.warnings == ()


def test_the_hidden_text_of_a_picture_that_repeats_it_is_no_hidden_text(tmp_path: Path) -> None:
    def scanned(sheet: inked_pages.Sheet) -> None:
        DRAWN["a small picture"](sheet)
        text = sheet.beginText(82, 615)
        text.setTextRenderMode(3)
        for line in TABLE:
            text.textLine(line)
        sheet.drawText(text)

    page = read_one(tmp_path, page_with(scanned))

    assert tuple(page.text.splitlines()) == LINES
    assert page.warnings == ()


def test_many_pictures_stay_within_the_time_of_a_page(tmp_path: Path) -> None:
    chaos = Image.effect_noise((400, 500), 200)
    draws = [
        pasted(chaos.crop((0, 0, 60, 60)), 30 + 45 * (i % 12), 700 - 45 * (i // 12), 36)
        for i in range(150)
    ]

    page = read_one(tmp_path, page_with(*draws), ReaderLimits(seconds_per_page=20.0))

    assert page.text
