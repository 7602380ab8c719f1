"""Images of pages keep their layout as text layers do: blocks, cells and check boxes."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from reportlab.pdfgen.canvas import Canvas

from pipeline.documents.reader.image_marks import black_and_white, lines_of, squares_of
from pipeline.documents.reader.ocr import Ocr, page_from_image
from pipeline.documents.reader.pdf import PdfFile
from pipeline.documents.reader.types import ReaderLimits
from tests.support.printed_pages import (
    DRUGS,
    GRID,
    LAB,
    LAB_TEXT,
    REACTIONS,
    Draw,
    lines_at,
    pdf_of,
    raised,
    table_at,
)


def scan_of(folder: Path, draw: Draw) -> Image.Image:
    path = folder / "page.pdf"
    path.write_bytes(pdf_of(draw))
    return PdfFile(path, ReaderLimits()).render(1, 200).convert("L")


def text_of(image: Image.Image) -> list[str]:
    page = page_from_image(1, image, Ocr(200).read(image), width=612, height=792)
    return page.text.replace("\t", "→").split("\n")


@pytest.fixture
def boxes(tmp_path: Path) -> Image.Image:
    def draw(sheet: Canvas) -> None:
        for i, name in enumerate(("Diabetes", "Hypertension", "Asthma", "Anemia")):
            y = 720 - 18 * i
            sheet.rect(60, y - 1, 9, 9)
            sheet.drawString(76, y, name)
        sheet.line(60, 701, 69, 710)
        sheet.line(60, 710, 69, 701)
        sheet.setLineWidth(1.2)
        tick = sheet.beginPath()
        tick.moveTo(61, 688)
        tick.lineTo(64, 684)
        tick.lineTo(70, 693)
        sheet.drawPath(tick)
        sheet.setFont("Helvetica-Bold", 14)
        sheet.drawString(60, 600, "Body odor, good appetite, 100 percent")

    return scan_of(tmp_path, draw)


def test_check_boxes_of_a_scan(boxes: Image.Image) -> None:
    assert text_of(boxes) == [
        "[ ] Diabetes",
        "[x] Hypertension",
        "[x] Asthma",
        "[ ] Anemia",
        "Body odor, good appetite, 100 percent",
    ]


def test_no_letter_is_a_check_box_or_a_line(boxes: Image.Image) -> None:
    printed = black_and_white(boxes)

    assert [square.ticked for square in squares_of(printed)] == [False, True, True, False]
    assert lines_of(printed) == ()


def test_a_ruled_table_of_a_scan(tmp_path: Path) -> None:
    scan = scan_of(tmp_path, lambda sheet: table_at(sheet, LAB, 50, 720, None, GRID))

    assert text_of(scan) == list(LAB_TEXT)


def test_lists_of_a_scan_side_by_side(tmp_path: Path) -> None:
    def draw(sheet: Canvas) -> None:
        lines_at(sheet, 60, 690, ["ALLERGIES", *REACTIONS])
        lines_at(sheet, 320, 690, ["CURRENT MEDICATIONS", *DRUGS])

    assert text_of(scan_of(tmp_path, draw)) == [
        "ALLERGIES",
        *REACTIONS,
        "CURRENT MEDICATIONS",
        *DRUGS,
    ]


def test_a_raised_note_is_no_digit_of_a_number(tmp_path: Path) -> None:
    def draw(sheet: Canvas) -> None:
        for i, (base, note) in enumerate((("Ferritin 31", "2"), ("Creatinine 1.2", "2"))):
            raised(sheet, 700 - 20 * i, base, note, " mg/dL")
        sheet.drawString(60, 640, "Temperature 98.6 F, height 5 ft 11 in, INR 1.22")

    lines = text_of(scan_of(tmp_path, draw))

    assert [line.split()[1] for line in lines[:2]] == ["31", "1.2"]
    assert lines[2] == "Temperature 98.6 F, height 5 ft 11 in, INR 1.22"
