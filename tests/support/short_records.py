"""Short text records: one visit after the other, a few lines per page.

Reading them takes a few milliseconds per page, so that tests of workers do not wait for the reader.
"""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path

from reportlab.pdfgen import canvas

PATIENT = "Wrenfield, Odalys M."
DRUG = "metformin"


def short_pdf(
    visits: int,
    *,
    pages: int = 1,
    patient: str = PATIENT,
    drug: str = DRUG,
    more: tuple[str, ...] = (),
) -> bytes:
    """Return a PDF of `visits` visits, one per month, each with `pages` pages.

    `more` are lines at the end of each page.
    """
    buffer = io.BytesIO()
    sheet = canvas.Canvas(buffer)
    for number in range(visits):
        day = dt.date(2021, 1, 4) + dt.timedelta(days=30 * number)
        for page in range(pages):
            head = _head(day, patient) if page == 0 else (f"{patient}    Page {page + 1}",)
            for row, line in enumerate((*head, *_body(number, page, drug), *more)):
                sheet.drawString(72, 760 - 20 * row, line)
            sheet.showPage()
    sheet.save()
    return buffer.getvalue()


def short_record(path: Path, visits: int, **options: object) -> Path:
    """Write `short_pdf` to `path` and give the path."""
    path.write_bytes(short_pdf(visits, **options))  # type: ignore[arg-type]
    return path


def _head(day: dt.date, patient: str) -> tuple[str, ...]:
    return (
        "Quillhaven Internal Medicine",
        "OFFICE VISIT",
        f"Patient: {patient}",
        "DOB: 02/11/1965",
        "MRN: QHV-55120",
        f"Date of Service: {day:%m/%d/%Y}",
    )


def _body(number: int, page: int, drug: str) -> tuple[str, ...]:
    return (
        "ASSESSMENT AND PLAN",
        f"Hypertension, blood pressure {120 + number}/{70 + page} mmHg today.",
        f"Continue {drug} {500 + 10 * number} mg by mouth twice daily.",
        "Asthma without complaints. Return in four weeks.",
    )
