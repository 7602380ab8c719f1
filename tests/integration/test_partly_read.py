"""A record with pictures, handwriting and an attached file ends, and says what was not read."""

from __future__ import annotations

import io
from http import HTTPStatus
from pathlib import Path
from uuid import UUID

import pikepdf
import pytest
from django.test import Client
from django.urls import reverse
from reportlab.pdfgen import canvas

from observability.permissions import Role
from observability.phi.pages import page_view
from pipeline.core.states import JobStatus
from pipeline.models import Entity, Job, Page, Session, selectors
from tests.support import inked_pages, records
from tests.support.users import client_of

VISIT = (
    "Quillhaven Internal Medicine",
    "OFFICE VISIT",
    "Patient: Wrenfield, Odalys M.",
    "DOB: 02/11/1965",
    "Date of Service: 03/04/2021",
    "LABORATORY",
)
PLAN = ("ASSESSMENT AND PLAN", "Continue metformin 500 mg by mouth twice daily.")


def a_record(path: Path) -> Path:
    """Write a page with a pasted table, a page with handwriting, and a file attached to both."""
    buffer = io.BytesIO()
    sheet = canvas.Canvas(buffer, pagesize=(612, 792))
    for draw in (
        inked_pages.pasted(inked_pages.picture(inked_pages.TABLE), 72, 600, 230),
        inked_pages.scribble(72, 560, 180, 30),
    ):
        for row, line in enumerate(VISIT):
            sheet.drawString(72, 720 - 20 * row, line)
        draw(sheet)
        for row, line in enumerate(PLAN):
            sheet.drawString(72, 480 - 20 * row, line)
        sheet.showPage()
    sheet.save()
    with pikepdf.open(io.BytesIO(buffer.getvalue())) as file:
        file.attachments["more.txt"] = pikepdf.AttachedFileSpec(file, b"x", filename="more.txt")
        file.save(path)
    return path


@pytest.fixture(scope="module")
def read(module_db: str, tmp_path_factory: pytest.TempPathFactory) -> UUID:
    found: UUID = records.completed_record(a_record(tmp_path_factory.mktemp("ink") / "a.pdf")).id
    return found


def test_the_record_names_the_pages_that_were_read_in_part(read: UUID) -> None:
    job = Job.objects.get(shell_file_id=read)
    warnings = {
        (each["code"], each["message"].split(",")[0]): each["pages"]
        for each in job.shell_file.warnings
    }

    assert job.status == JobStatus.COMPLETED
    assert warnings[
        ("PARTLY_READ", "A part of these pages could not be read; look at the pages.")
    ] == [2]
    assert warnings[("PARTLY_READ", "The file holds other files")] == [1]
    assert Session.objects.get(shell_file_id=read).requires_human_review


def test_the_pages_hold_their_regions_and_the_unread_share(read: UUID) -> None:
    first, second = Page.objects.filter(shell_file_id=read).order_by("page_number")

    assert (first.source, [kind for kind, *_ in first.regions]) == ("mixed", ["ocr"])
    assert (second.source, [kind for kind, *_ in second.regions]) == ("text_layer", ["unread"])
    assert (first.unread_share, second.unread_share > 0.005) == (0.0, True)
    assert all(
        0 <= edge <= 1 for page in (first, second) for _, *box in page.regions for edge in box
    )
    assert second.warnings == ["partly_read"]
    assert selectors.ocr_page_count(read) == 1


def test_a_value_from_a_picture_has_the_confidence_of_ocr(read: UUID) -> None:
    potassium = Entity.objects.get(shell_file_id=read, name__iexact="potassium", page_number=1)
    metformin = Entity.objects.filter(shell_file_id=read, name__iexact="metformin").first()

    assert (potassium.value, potassium.ocr_confidence is None) == ("6.1", False)
    assert metformin is not None
    assert metformin.ocr_confidence is None


def test_the_page_view_marks_the_parts_and_explains_the_marks(read: UUID) -> None:
    client: Client = client_of(Role.REVIEWER)

    shown = [client.get(reverse("admin:record_page", args=[read, n])) for n in (1, 2)]
    first, second = (" ".join(page.content.decode().split()) for page in shown)

    assert [page.status_code for page in shown] == [HTTPStatus.OK, HTTPStatus.OK]
    assert "text layer, with parts read by OCR" in first
    assert 'class="k is-ocr">Read by OCR: 1 part' in first
    assert "<title>Not read</title>" in second
    assert 'class="k is-unread">Not read: 1 part' in second
    assert "% of the page shows ink that nothing could read" in second
    assert len(page_view(read, 2).warnings) == 1
