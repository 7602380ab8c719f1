"""The real child process reads generated pages: text, boxes, OCR, and rotation."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from PIL import Image
from reportlab.pdfgen import canvas

from pipeline.documents.reader import (
    FURTHER_PICTURES,
    TEXT_LAYER_REJECTED,
    InputRefused,
    MediaType,
    PageRead,
    probe,
    read_pages,
    render_page,
)
from pipeline.models import Page
from pipeline.workers import run_step
from tests.support import hostile_files, records
from tests.support.short_records import short_record

ROWS = (
    "Northgate Reference Laboratory",
    "Glucose 110 mg/dL 70-99 H",
    "Sodium 138 mmol/L 135-145",
    "Potassium 5.3 mmol/L 3.5-5.1 H",
    "Hemoglobin 12.9 g/dL 13.5-17.5 L",
)
#: Enough prose for the recognition of a column.
FILLER = ("and the pain has not come back", "since the last visit in the spring") * 6


def write(folder: Path, content: bytes) -> Path:
    path = folder / "record"
    path.write_bytes(content)
    return path


def read_one(folder: Path, content: bytes) -> PageRead:
    (page,) = read_pages(write(folder, content), 1, 1)
    return page


def pdf_of(image: Image.Image, *, header: str = "", invisible: str = "") -> bytes:
    """Return a PDF with `image` over the whole page, as a scanner or fax server makes it."""
    buffer = io.BytesIO()
    sheet = canvas.Canvas(buffer, pagesize=(612, 792))
    png = io.BytesIO()
    image.save(png, "PNG")
    png.seek(0)
    from reportlab.lib.utils import ImageReader

    sheet.drawImage(ImageReader(png), 0, 0, 612, 792)
    if header:
        sheet.drawString(72, 775, header)
    if invisible:
        text = sheet.beginText(72, 400)
        text.setTextRenderMode(3)
        text.textLine(invisible)
        sheet.drawText(text)
    sheet.save()
    return buffer.getvalue()


def test_a_text_page_comes_with_rows_and_boxes(tmp_path: Path) -> None:
    page = read_one(tmp_path, hostile_files.note_pdf())

    assert page.source == "text_layer"
    assert page.text == "\n".join((*hostile_files.NOTE, "Page 1"))
    assert page.ocr_confidence is None
    glucose = next(word for word in page.words if page.text[word.start : word.end] == "Glucose")
    assert glucose.x0 == pytest.approx(72 / page.width, abs=0.01)
    assert glucose.y0 < 1 - (760 - 24 * 3) / page.height < glucose.y1 + 0.01


def test_a_chunk_yields_its_own_pages_and_stops_at_the_last(tmp_path: Path) -> None:
    path = write(tmp_path, hostile_files.note_pdf(5))

    pages = list(read_pages(path, 4, 50))

    assert [page.number for page in pages] == [4, 5]
    assert pages[0].text.endswith("Page 4")


@pytest.mark.django_db
def test_one_child_opens_a_record_and_reads_its_first_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    start = subprocess.Popen

    def counted(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        started.append(command[-1])
        return start(command, **options)

    monkeypatch.setattr("pipeline.documents.reader.watchdog.subprocess.Popen", counted)
    received = records.submit(short_record(tmp_path / "record.pdf", 3))
    run_step.run_step("pages")

    assert Page.objects.filter(shell_file=received.shell_file_id).count() == 3
    assert started == ["pipeline.documents.reader.child"]


def test_a_filled_form_field_is_part_of_the_text(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    sheet = canvas.Canvas(buffer)
    sheet.drawString(72, 700, "Allergies of the patient as stated today:")
    sheet.acroForm.textfield(name="a", value="Penicillin", x=330, y=690, width=200, height=24)
    sheet.save()

    page = read_one(tmp_path, buffer.getvalue())

    assert "Penicillin" in page.text


def test_a_rotated_pdf_page_has_boxes_of_the_page_as_displayed(tmp_path: Path) -> None:
    turned = io.BytesIO()
    with pikepdf.open(io.BytesIO(hostile_files.note_pdf())) as file:
        file.pages[0].rotate(90, relative=False)
        file.save(turned)

    page = read_one(tmp_path, turned.getvalue())

    assert page.width > page.height
    assert page.rotation == 270
    assert page.text.startswith(hostile_files.NOTE[0])
    first = page.words[0]
    assert first.x0 > 0.8
    assert first.y1 - first.y0 > first.x1 - first.x0


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "JPEG"])
def test_a_scanned_image_is_read_with_confidences(tmp_path: Path, kind: str) -> None:
    page = read_one(tmp_path, hostile_files.encoded(hostile_files.scan(ROWS), kind))

    assert page.source == "ocr"
    assert page.text.splitlines() == list(ROWS)
    assert page.ocr_confidence is not None
    assert page.ocr_confidence > 70
    assert all(word.confidence is not None for word in page.words)
    assert (page.width, page.height) == (1700, 2200)


def test_two_columns_of_a_scan_are_read_one_after_the_other(tmp_path: Path) -> None:
    left = ("The patient reports that the cough", "has settled and that she sleeps", *FILLER)
    right = ("She takes metformin twice daily", "with food and without side effects", *FILLER)
    sheet = hostile_files.scan(left, size=28)
    sheet.paste(hostile_files.scan(right, size=28).crop((100, 0, 900, 2200)), (900, 0))

    page = read_one(tmp_path, hostile_files.encoded(sheet, "PNG"))

    assert page.text.splitlines()[:2] == list(left[:2])


def test_each_tiff_frame_is_a_page(tmp_path: Path) -> None:
    frames = [hostile_files.scan(ROWS), Image.new("L", (1700, 2200), 255)]
    content = hostile_files.encoded(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    path = write(tmp_path, content)

    pages = list(read_pages(path, 1, 2))

    assert probe(path).media_type is MediaType.TIFF
    assert [page.source for page in pages] == ["ocr", "blank"]


def _with_second(*, note: bytes = b"", kind: int = 0, **options: object) -> bytes:
    """Return a JPEG file with two scans; `note` and `kind` say what the second scan is."""
    second = Image.open(io.BytesIO(hostile_files.encoded(hostile_files.scan(ROWS[1:]), "JPEG")))
    second.encoderinfo = {"xmp": note} if note else {}
    whole = hostile_files.encoded(
        hostile_files.scan(ROWS), "MPO", save_all=True, append_images=[second], **options
    )
    # The second entry of the index: attributes, size, offset, and two numbers, from the front.
    at = whole.index(b"MPF\0") + 4 + 8 + 2 + 3 * 12 + 4 + 16
    return whole[:at] + kind.to_bytes(4, "little") + whole[at + 4 :]


@pytest.mark.parametrize(
    ("content", "is_reported"),
    [
        (_with_second(), True),
        (_with_second(kind=0x020003), True),
        (_with_second(kind=0x010001), False),
        (_with_second(note=b"xmlns:hdrgm='http://ns.adobe.com/hdr-gain-map/1.0/'"), False),
        (_with_second(kind=0x07000000), True),
        (hostile_files.encoded(hostile_files.scan(ROWS), "JPEG"), False),
    ],
    ids=["second page", "other angle", "preview", "gain map", "broken index", "one picture"],
)
def test_a_second_picture_of_a_jpeg_is_reported_unless_it_repeats_the_first(
    tmp_path: Path, content: bytes, is_reported: bool
) -> None:
    page = read_one(tmp_path, content)

    assert page.text.splitlines() == list(ROWS)
    assert (FURTHER_PICTURES in page.warnings) is is_reported
    assert probe(tmp_path / "record").page_count == 1


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_page_scanned_the_wrong_way_up_is_read_upright(tmp_path: Path, turn: int) -> None:
    sideways = hostile_files.scan(ROWS * 3).rotate(turn, expand=True)

    page = read_one(tmp_path, hostile_files.encoded(sideways, "PNG"))

    assert page.rotation == turn
    assert page.text.splitlines()[1] == ROWS[1]
    first = page.words[0]
    ink = sideways.crop(
        (
            int(first.x0 * sideways.width),
            int(first.y0 * sideways.height),
            int(first.x1 * sideways.width),
            int(first.y1 * sideways.height),
        )
    )
    assert ink.getextrema() == (0, 255)


def test_a_skewed_and_speckled_scan_keeps_its_rows(tmp_path: Path) -> None:
    worn = hostile_files.noisy(hostile_files.scan(ROWS).rotate(1.5, fillcolor=255))

    page = read_one(tmp_path, hostile_files.encoded(worn, "PNG"))

    assert len(page.text.splitlines()) == len(ROWS)


def test_a_wrong_number_of_a_worn_scan_is_never_confident(tmp_path: Path) -> None:
    truth = {word for row in ROWS for word in row.split()}
    small = hostile_files.scan(ROWS, size=22)
    worn = hostile_files.noisy(small.resize((1020, 1320)).resize((1700, 2200)))

    page = read_one(tmp_path, hostile_files.encoded(worn, "PNG"))

    assert page.words
    for word in page.words:
        read = page.text[word.start : word.end]
        if any(char.isdigit() for char in read) and read not in truth:
            assert word.confidence is not None
            assert word.confidence <= 60


def test_a_fax_with_flat_pixels_is_stretched_before_it_is_read(tmp_path: Path) -> None:
    fax = hostile_files.scan(ROWS, size=40).resize((1700, 1100)).convert("1")

    page = read_one(
        tmp_path, hostile_files.encoded(fax, "TIFF", compression="group3", dpi=(204, 98))
    )

    assert page.height > 2200
    assert "Glucose 110" in page.text


def test_a_scan_in_a_pdf_is_read_from_its_image(tmp_path: Path) -> None:
    page = read_one(tmp_path, pdf_of(hostile_files.scan(ROWS)))

    assert page.source == "ocr"
    assert page.text.splitlines() == list(ROWS)


def test_a_fax_header_over_a_scan_does_not_pass_for_its_text(tmp_path: Path) -> None:
    page = read_one(
        tmp_path, pdf_of(hostile_files.scan(ROWS), header="FROM NORTHGATE CLINIC PAGE 1")
    )

    assert page.source == "mixed"
    assert page.text.startswith("FROM NORTHGATE CLINIC PAGE 1")
    assert "Glucose 110 mg/dL" in page.text
    assert page.warnings == ()
    header, first = page.words[0], page.words[6]
    assert (header.confidence, first.confidence is None) == (None, False)


def test_our_own_reading_replaces_a_scanners_invisible_text(tmp_path: Path) -> None:
    page = read_one(tmp_path, pdf_of(hostile_files.scan(ROWS), invisible="Glucose 11O mg/dL DNR"))

    assert page.source == "ocr"
    assert "DNR" not in page.text
    assert page.warnings == (TEXT_LAYER_REJECTED,)


def test_a_page_is_rendered_as_png_for_the_console(tmp_path: Path) -> None:
    path = write(tmp_path, hostile_files.note_pdf(2))

    image = Image.open(io.BytesIO(render_page(path, 2, dpi=50)))

    assert image.format == "PNG"
    assert image.height == pytest.approx(842 * 50 / 72, abs=2)


def test_a_page_that_the_file_has_not_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, hostile_files.note_pdf())

    with pytest.raises(InputRefused):
        render_page(path, 2)
