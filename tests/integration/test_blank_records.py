"""Records with blank pages, and the smallest record, run to their end."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.test import override_settings
from reportlab.pdfgen import canvas

from pipeline.core.states import JobStatus
from pipeline.models import Chunk, Job, PageAssignment
from tests.support import records


def a_pdf(path: Path, pages: str) -> Path:
    """Write a PDF with a visit for each `v` and nothing for each `.`."""
    buffer = io.BytesIO()
    sheet = canvas.Canvas(buffer)
    for number, kind in enumerate(pages, start=1):
        if kind == "v":
            lines = (
                "Quillhaven Internal Medicine",
                "OFFICE VISIT",
                "Patient: Wrenfield, Odalys M.",
                "DOB: 02/11/1965",
                f"Date of Service: {number:02d}/04/2021",
                "ASSESSMENT AND PLAN",
                f"Continue metformin {500 + number} mg by mouth twice daily.",
            )
            for row, line in enumerate(lines):
                sheet.drawString(72, 760 - 20 * row, line)
        sheet.showPage()
    sheet.save()
    path.write_bytes(buffer.getvalue())
    return path


@pytest.mark.usefixtures("cloned_db", "redis_db")
@pytest.mark.parametrize(
    ("pages", "chunks", "encounters"),
    [
        ("v", 1, 1),
        (".", 0, 0),
        ("..", 0, 0),
        ("vv..vv", 2, 4),
        ("..vv", 1, 2),
        ("v.....v.", 2, 2),
    ],
)
def test_blank_pages_cost_no_call_and_hide_no_encounter(
    tmp_path: Path, pages: str, chunks: int, encounters: int
) -> None:
    with override_settings(PASS05_CHUNK_PAGES=2):
        record = records.completed_record(a_pdf(tmp_path / "a.pdf", pages))

    assert Job.objects.get(shell_file=record).status == JobStatus.COMPLETED
    assert Chunk.objects.filter(discovery_session__shell_file=record).count() == chunks
    assert record.encounters.count() == encounters
    shown = PageAssignment.objects.filter(
        discovery_session__shell_file=record, healthcare_encounter__isnull=False
    )
    assert set(shown.values_list("page_number", flat=True)) >= {
        n for n, kind in enumerate(pages, start=1) if kind == "v"
    }
