"""Printed pages for tests of the page text: each draws one kind of layout, and tells its text.

In the expected texts `→` is a TAB.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, Table, TableStyle

Draw = Callable[[Canvas], None]
BODY = ParagraphStyle("body", fontName="Helvetica", fontSize=10, leading=12.5)
EVEN = ParagraphStyle("even", parent=BODY, alignment=4)
SMALL = ParagraphStyle("small", fontName="Helvetica", fontSize=9, leading=11)
GRID = ("GRID", (0, 0), (-1, -1), 0.5, colors.black)

LEFT_PROSE = (
    "The patient came for review after a course of tablets. She reports that the cough has gone"
    " and that she sleeps through the night. There was no fever since the last visit, although she"
    " felt tired in the afternoon. Walking to the shop is possible without a rest. Her husband has"
    " noticed that the appetite is better. The chest was clear and the heart sounds were normal. "
)
RIGHT_PROSE = (
    "Blood tests were repeated before the clinic. The kidney function is stable and the potassium"
    " has come down since the dose was reduced. Her brother had a stroke at the age of sixty and"
    " her mother was treated for breast cancer. She herself has never smoked and drinks little"
    " wine. The foot was inspected by the nurse and the ulcer has healed with a thin scar. "
)
DRUGS = ("Metformin 500 mg BID", "Lisinopril 20 mg daily", "Warfarin 5 mg daily")
REACTIONS = ("Penicillin - hives", "Sulfa - rash", "Codeine - vomiting")
LAB = (
    ("TEST", "RESULT", "FLAG", "UNITS", "REFERENCE"),
    ("Glucose", "98", "", "mg/dL", "70-99"),
    ("Potassium", "5.8", "H", "mmol/L", "3.5-5.1"),
    ("HIV 1/2 Ab", "Non-reactive", "", "", "Non-reactive"),
    ("Creatinine", "1.2", "", "mg/dL", "0.6-1.3"),
)
LAB_TEXT = (
    "TEST→RESULT→FLAG→UNITS→REFERENCE",
    "Glucose→98→→mg/dL→70-99",
    "Potassium→5.8→H→mmol/L→3.5-5.1",
    "HIV 1/2 Ab→Non-reactive→→→Non-reactive",
    "Creatinine→1.2→→mg/dL→0.6-1.3",
)


def pdf_of(draw: Draw) -> bytes:
    """Return a PDF of one Letter page."""
    buffer = io.BytesIO()
    sheet = Canvas(buffer, pagesize=(612, 792))
    sheet.setFont("Helvetica", 10)
    draw(sheet)
    sheet.save()
    return buffer.getvalue()


def lines_at(
    sheet: Canvas, x: float, y: float, items: Sequence[str], *, step: float = 14, bold: int = 0
) -> None:
    """Draw lines below each other; the first `bold` lines are bold."""
    for i, item in enumerate(items):
        sheet.setFont("Helvetica-Bold" if i < bold else "Helvetica", 10)
        sheet.drawString(x, y - i * step, item)


def prose_at(
    sheet: Canvas, text: str, x: float, y: float, width: float, style: ParagraphStyle = BODY
) -> float:
    """Draw wrapped prose below `y`, and return where it ends."""
    paragraph = Paragraph(text, style)
    _, height = paragraph.wrap(width, 700)
    paragraph.drawOn(sheet, x, y - height)
    return float(y - height)


def table_at(
    sheet: Canvas,
    rows: Sequence[Sequence[object]],
    x: float,
    y: float,
    widths: Sequence[float] | None = None,
    *style: tuple[object, ...],
) -> None:
    """Draw a table below `y`."""
    table = Table([list(row) for row in rows], colWidths=widths)
    table.setStyle(
        TableStyle(
            [
                ("FONT", (0, 0), (-1, -1), "Helvetica", 9),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                *style,
            ]
        )
    )
    _, height = table.wrap(500, 700)
    table.drawOn(sheet, x, y - height)


def raised(
    sheet: Canvas, y: float, base: str, mark: str, after: str = "", *, rise: float = 4
) -> None:
    """Draw `base`, a small raised or lowered `mark`, and the words after the mark."""
    x = 60.0
    for text, size, up in ((base, 11, 0.0), (mark, 7, rise), (after, 11, 0.0)):
        sheet.setFont("Helvetica", size)
        sheet.drawString(x, y + up, text)
        x += sheet.stringWidth(text, "Helvetica", size)
