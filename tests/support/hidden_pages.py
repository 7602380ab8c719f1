"""PDFs with words that a person cannot see, and PDFs with words that only look hidden.

A drawing is for a page that already has the lines of `inked_pages.TEXT`.
"""

from __future__ import annotations

import io
from collections.abc import Callable

from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.colors import Color, black, white
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas

from tests.support.inked_pages import END, TABLE, TEXT, Sheet

#: The words that each page hides.
SECRET = "Patient takes warfarin 5 mg daily"


def typed(
    line: str = SECRET,
    *,
    size: float = 12,
    colour: Color = black,
    mode: int = 0,
    at: tuple[float, float] = (72, 500),
    ground: Color | None = None,
) -> Callable[[Sheet], None]:
    """Return a drawing of one line of type, on a ground of its own if one is given."""

    def draw(sheet: Sheet) -> None:
        if ground is not None:
            sheet.setFillColor(ground)
            sheet.rect(at[0] - 12, at[1] - 10, 330, 30, 0, 1)
        text = sheet.beginText(*at)
        text.setFont("Helvetica", size)
        text.setFillColor(colour)
        text.setTextRenderMode(mode)
        text.textLine(line)
        sheet.drawText(text)

    return draw


def scaled_down(sheet: Sheet) -> None:
    """Draw type of 12 points, which the matrix of the page makes 1.8 points."""
    sheet.scale(0.15, 0.15)
    typed(at=(480, 3333))(sheet)


def squeezed(sheet: Sheet) -> None:
    """Draw type of 12 points, squeezed to a tenth of its width."""
    sheet.scale(0.1, 1)
    typed(at=(720, 500))(sheet)


def under_paper(sheet: Sheet) -> None:
    """Draw words and a white area over them."""
    typed()(sheet)
    sheet.setFillColor(white)
    sheet.rect(60, 490, 330, 30, 0, 1)


def beside_other_words(sheet: Sheet) -> None:
    """Draw pale words over the lines of dark words, whose ink is no ink of the pale words."""
    typed("She walks to the market", at=(72, 500))(sheet)
    typed("She takes no warfarin now", colour=white, at=(72, 500))(sheet)


def between_words(sheet: Sheet) -> None:
    """Draw a sentence whose white word "not" turns the meaning."""
    typed("Warfarin 5 mg daily", at=(72, 480))(sheet)
    typed("She does", at=(72, 500))(sheet)
    typed("not", colour=white, at=(128, 500))(sheet)
    typed("take lisinopril 10 mg daily.", at=(149, 500))(sheet)


def nearly_transparent(sheet: Sheet) -> None:
    """Draw black words at a tenth of their opacity."""
    typed(colour=Color(0, 0, 0, 0.1))(sheet)


def watermark(sheet: Sheet) -> None:
    """Draw a large pale word across the page, and words over the pale word."""
    sheet.saveState()
    sheet.translate(90, 420)
    sheet.rotate(30)
    typed("DUPLICATE", size=60, colour=Color(0.9, 0.9, 0.9), at=(0, 0))(sheet)
    sheet.restoreState()
    typed("Patient takes lisinopril 10 mg daily")(sheet)


def shadowed(sheet: Sheet) -> None:
    """Draw words with a pale shadow."""
    typed("Lisinopril 10 mg daily", colour=Color(0.93, 0.93, 0.93), at=(72.7, 499.3))(sheet)
    typed("Lisinopril 10 mg daily")(sheet)


def scanned(*more: Callable[[Sheet], None], layer: bool = True) -> bytes:
    """Return a scan of a page with its invisible text layer, and drawings over the scan."""
    buffer = io.BytesIO()
    sheet = canvas.Canvas(buffer, pagesize=(612, 792))
    image = Image.new("L", (1700, 2200), 250)
    draw = ImageDraw.Draw(image)
    lines = (*TEXT, *TABLE, END)
    for row, line in enumerate(lines):
        draw.text((200, 200 + 80 * row), line, fill=10, font=ImageFont.load_default(34))
    sheet.drawImage(ImageReader(image), 0, 0, 612, 792)
    if layer:
        for row, line in enumerate(lines):
            typed(line, mode=3, at=(72, 792 - (232 + 80 * row) * 0.36))(sheet)
    for each in more:
        each(sheet)
    sheet.save()
    return buffer.getvalue()


def only(draw: Callable[[Sheet], None]) -> bytes:
    """Return a page with one drawing and nothing else."""
    buffer = io.BytesIO()
    sheet = canvas.Canvas(buffer, pagesize=(612, 792))
    draw(sheet)
    sheet.save()
    return buffer.getvalue()
