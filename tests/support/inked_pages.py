"""PDFs with ink that the text layer does not explain, and with text that leaves no ink.

Every builder draws on a page that already has the lines of `TEXT`.
"""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pikepdf
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.colors import Color, black, white
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen import canvas

TEXT = (
    "Northgate Clinic - Progress note",
    "The cough has settled and she sleeps through the night, as she told the nurse today.",
    "She walks to the market twice a week and cooks for her sister on most evenings.",
    "RESULTS FROM OUTSIDE",
)
END = "Return in six months, or sooner if the cough comes back."
TABLE = ("Potassium 6.1 mmol/L 3.5-5.1", "Creatinine 2.7 mg/dL 0.6-1.3")
NAVY = Color(0.1, 0.15, 0.45)

#: A canvas of reportlab, which has no types.
Sheet = Any


def page_with(*draws: Callable[[Sheet], None], end: bool = True) -> bytes:
    """Return a letter page with `TEXT`, the drawings, and `END` below them."""
    buffer = io.BytesIO()
    sheet = canvas.Canvas(buffer, pagesize=(612, 792))
    for row, line in enumerate(TEXT):
        sheet.drawString(72, 720 - 18 * row, line)
    for draw in draws:
        sheet.saveState()
        draw(sheet)
        sheet.restoreState()
    if end:
        sheet.drawString(72, 300, END)
    sheet.save()
    return buffer.getvalue()


def picture(
    lines: Sequence[str], *, size: int = 30, ink: int = 0, paper: int = 255, width: int = 0
) -> Image.Image:
    """Return an image of text, cut to its lines."""
    font = ImageFont.load_default(size=size)
    across = width or 2 * size + round(max(font.getlength(line) for line in lines))
    image = Image.new("L", (across, round(1.7 * size * len(lines)) + size), paper)
    draw = ImageDraw.Draw(image)
    for row, line in enumerate(lines):
        draw.text((size, size // 2 + round(1.7 * size * row)), line, font=font, fill=ink)
    return image


def pasted(image: Image.Image, left: float, top: float, width: float) -> Callable[[Sheet], None]:
    """Draw `image` with its top left corner at `left`, `top` (points from the lower left)."""
    height = width * image.height / image.width

    def draw(sheet: Sheet) -> None:
        sheet.drawImage(ImageReader(image.convert("RGB")), left, top - height, width, height)

    return draw


def outlined(lines: Sequence[str], left: float, top: float, size: float) -> Callable[[Sheet], None]:
    """Draw text as filled paths: small rectangles, none of them as long as a rule."""
    fine = picture(lines, size=40).point(lambda level: 255 * (level < 128))
    scale = size / 40

    def draw(sheet: Sheet) -> None:
        for y in range(fine.height):
            row = fine.crop((0, y, fine.width, y + 1)).tobytes()
            x = row.find(b"\xff")
            while x >= 0:
                end = row.find(b"\x00", x)
                end = fine.width if end < 0 else end
                end = min(end, x + round(2.5 / scale))
                sheet.rect(left + scale * x, top - scale * (y + 1), scale * (end - x), scale, 0, 1)
                x = row.find(b"\xff", end)

    return draw


def in_forms(draw: Callable[[Sheet], None], depth: int) -> Callable[[Sheet], None]:
    """Draw within `depth` form objects, one inside the other."""

    def nested(sheet: Sheet) -> None:
        sheet.beginForm("form0")
        draw(sheet)
        sheet.endForm()
        for level in range(1, depth):
            sheet.beginForm(f"form{level}")
            sheet.doForm(f"form{level - 1}")
            sheet.endForm()
        sheet.doForm(f"form{depth - 1}")

    return nested


def scribble(
    left: float, top: float, width: float, height: float, *, seed: int = 3, pen: float = 1.2
) -> Callable[[Sheet], None]:
    """Draw loops as of handwriting that OCR cannot read."""
    return lambda sheet: _scribble(sheet, _loops(left, top, width, height, seed), pen)


def scribbled(image: Image.Image, box: tuple[int, int, int, int], *, seed: int = 3) -> Image.Image:
    """Return a scan with handwriting within `box` (pixels)."""
    written = image.copy()
    left, top, right, bottom = box
    points = _loops(left, bottom, right - left, bottom - top, seed)
    ImageDraw.Draw(written).line(points, fill=20, width=4, joint="curve")
    return written


def _loops(
    left: float, top: float, width: float, height: float, seed: int
) -> list[tuple[float, float]]:
    chance = random.Random(seed)
    steps, middle = 160, top - height / 2
    points, swing = [], 1.0
    for step in range(steps):
        if step % 8 == 0:
            swing = chance.uniform(0.35, 1.0)
        turn = step * 0.78
        across = left + width * step / steps + 0.4 * height * math.cos(turn)
        points.append((across, middle + 0.5 * height * swing * math.sin(turn)))
    return points


def _scribble(sheet: Sheet, points: Sequence[tuple[float, float]], pen: float) -> None:
    sheet.setLineWidth(pen)
    path = sheet.beginPath()
    path.moveTo(*points[0])
    for point in points[1:]:
        path.lineTo(*point)
    sheet.drawPath(path)


def logo(sheet: Sheet) -> None:
    """Draw a solid logo of 0.7 inch."""
    sheet.setFillColor(NAVY)
    sheet.circle(520, 740, 24, stroke=0, fill=1)
    sheet.setFillColor(white)
    sheet.rect(516, 724, 8, 32, 0, 1)
    sheet.rect(504, 736, 32, 8, 0, 1)


def furniture(sheet: Sheet) -> None:
    """Draw what every form has: rules, frames, a table, check boxes, grounds, bullets."""
    sheet.line(72, 650, 540, 650)
    sheet.setFillColor(Color(0.85, 0.9, 1))
    sheet.rect(72, 600, 468, 30, 1, 1)
    sheet.setFillColor(black)
    for row in range(6):
        sheet.line(72, 400 + 18 * row, 540, 400 + 18 * row)
    for column in range(5):
        sheet.line(72 + 117 * column, 400, 72 + 117 * column, 490)
        sheet.line(74 + 117 * column, 400, 74 + 117 * column, 490)
    for row in range(8):
        sheet.rect(76, 500 + 12 * row, 8, 8)
        sheet.circle(300, 504 + 12 * row, 2, 0, 1)
    sheet.setDash(3, 2)
    sheet.line(72, 280, 540, 280)
    sheet.setDash(1, 3)
    sheet.line(72, 380, 540, 360)


def barcode(sheet: Sheet) -> None:
    """Draw a barcode of two inches."""
    chance, x = random.Random(5), 360.0
    while x < 500:
        wide = chance.choice((0.9, 1.8, 2.7))
        sheet.rect(x, 560, wide, 22, 0, 1)
        x += wide + chance.choice((0.9, 1.8, 2.7))


def square_code(sheet: Sheet) -> None:
    """Draw a square code of an inch, as dense as a QR code."""
    chance = random.Random(8)
    for row in range(29):
        for column in range(29):
            frame = min(row % 22, column % 22) in {0, 6} and max(row % 22, column % 22) <= 6
            if frame or chance.random() < 0.5:
                sheet.rect(400 + 2.5 * column, 560 + 2.5 * row, 2.5, 2.5, 0, 1)


def photograph() -> Image.Image:
    """Return a picture without words."""
    chance = random.Random(11)
    image = Image.new("L", (400, 300), 120)
    draw = ImageDraw.Draw(image)
    for _ in range(60):
        x, y, r = chance.randrange(400), chance.randrange(300), chance.randrange(10, 60)
        draw.ellipse((x - r, y - r, x + r, y + r), fill=chance.randrange(20, 240))
    return image


def layered(content: bytes, *, shown: bool) -> bytes:
    """Return the page with its last line in an optional layer, which is on or off."""
    with pikepdf.open(io.BytesIO(content)) as file:
        page = file.pages[0]
        group = file.make_indirect(
            pikepdf.Dictionary(Type=pikepdf.Name.OCG, Name="Notes of the clinic")
        )
        page.Resources.Properties = pikepdf.Dictionary(MC0=group)
        page.contents_add(b"/OC /MC0 BDC BT /F1 12 Tf 1 0 0 1 72 500 Tm (Patient is DNR) Tj ET EMC")
        state = pikepdf.Array([group])
        settings = pikepdf.Dictionary(OFF=pikepdf.Array() if shown else state)
        settings.ON = state if shown else pikepdf.Array()
        file.Root.OCProperties = pikepdf.Dictionary(OCGs=state, D=settings)
        return _saved(file)


def with_stamp_note(content: bytes, flags: int) -> bytes:
    """Return the page with an annotation that shows words, with these flags."""
    with pikepdf.open(io.BytesIO(content)) as file:
        page = file.pages[0]
        look = file.make_stream(b"BT /F1 12 Tf 1 0 0 1 2 4 Tm (Patient is DNR) Tj ET")
        look.Type, look.Subtype = pikepdf.Name.XObject, pikepdf.Name.Form
        look.BBox = pikepdf.Array([0, 0, 120, 20])
        look.Resources = page.Resources
        note = pikepdf.Dictionary(
            Type=pikepdf.Name.Annot,
            Subtype=pikepdf.Name.Stamp,
            Rect=pikepdf.Array([72, 500, 192, 520]),
            F=flags,
            AP=pikepdf.Dictionary(N=look),
        )
        page.Annots = pikepdf.Array([file.make_indirect(note)])
        return _saved(file)


def with_attachment(content: bytes, *, portfolio: bool = False, on_page: bool = False) -> bytes:
    """Return the page with an attached file, as a portfolio, or pinned to the page."""
    with pikepdf.open(io.BytesIO(content)) as file:
        spec = pikepdf.AttachedFileSpec(file, b"Potassium 6.1", filename="result.txt")
        if on_page:
            note = pikepdf.Dictionary(
                Type=pikepdf.Name.Annot,
                Subtype=pikepdf.Name.FileAttachment,
                Rect=pikepdf.Array([540, 700, 560, 720]),
                FS=spec.obj,
            )
            file.pages[0].Annots = pikepdf.Array([file.make_indirect(note)])
        else:
            file.attachments["result.txt"] = spec
        if portfolio:
            file.Root.Collection = pikepdf.Dictionary(
                Type=pikepdf.Name.Collection, View=pikepdf.Name.D
            )
        return _saved(file)


def xfa_form(content: bytes, *, dynamic: bool, data: str = "", fields: Sequence[str] = ()) -> bytes:
    """Return the pages as an XFA form with `data`, of which the fields hold `fields`."""
    with pikepdf.open(io.BytesIO(content)) as file:
        xml = (
            "<xdp:xdp xmlns:xdp='http://ns.adobe.com/xdp/'><xfa:datasets"
            " xmlns:xfa='http://www.xfa.org/schema/xfa-data/1.0/'><xfa:data>"
            f"<form>{data}</form></xfa:data></xfa:datasets></xdp:xdp>"
        )
        held = [
            file.make_indirect(
                pikepdf.Dictionary(FT=pikepdf.Name.Tx, T=f"f{i}", V=pikepdf.String(value))
            )
            for i, value in enumerate(fields)
        ]
        file.Root.AcroForm = pikepdf.Dictionary(
            Fields=pikepdf.Array(held), XFA=file.make_stream(xml.encode())
        )
        if dynamic:
            file.Root.NeedsRendering = True
        return _saved(file)


def _saved(file: pikepdf.Pdf) -> bytes:
    buffer = io.BytesIO()
    file.save(buffer)
    return buffer.getvalue()


def clipped(sheet: Sheet) -> None:
    """Draw words of which a clip shows only the first."""
    path = sheet.beginPath()
    path.rect(72, 500, 42, 20)
    sheet.clipPath(path, stroke=0)
    sheet.drawString(72, 505, "Patient is DNR")


def covered_end(sheet: Sheet) -> None:
    """Draw a value and cover its last digit."""
    sheet.drawString(72, 505, "Potassium 6.10 mmol/L")
    sheet.setFillColor(white)
    sheet.rect(72 + sheet.stringWidth("Potassium 6.1", "Helvetica", 12), 500, 7, 16, 0, 1)


def on_its_own_colour(sheet: Sheet) -> None:
    """Draw words in the colour of their ground."""
    sheet.setFillColor(NAVY)
    sheet.rect(72, 490, 300, 30, 0, 1)
    sheet.drawString(80, 500, "Patient is DNR")


def transparent(sheet: Sheet) -> None:
    """Draw words that are fully transparent."""
    sheet.setFillAlpha(0)
    sheet.drawString(80, 500, "Patient is DNR")


def under_a_picture(sheet: Sheet) -> None:
    """Draw words and put a picture of other words over them."""
    sheet.drawString(80, 505, "Patient is DNR")
    pasted(picture(TABLE), 72, 540, 250)(sheet)


def on_a_dark_banner(sheet: Sheet) -> None:
    """Draw white words on a dark banner."""
    sheet.setFillColor(NAVY)
    sheet.rect(72, 490, 300, 30, 0, 1)
    sheet.setFillColor(white)
    sheet.drawString(80, 500, "ALLERGIES: Penicillin")


def ticked_by_pen(sheet: Sheet) -> None:
    """Draw two check boxes as glyphs, and a tick of a pen over the first."""
    sheet.setLineWidth(1.4)
    for x, name in ((72, "Diabetes"), (200, "Asthma")):
        sheet.setFont("ZapfDingbats", 12)
        sheet.drawString(x, 505, "\u274f")
        sheet.setFont("Helvetica", 12)
        sheet.drawString(x + 14, 505, name)
    path = sheet.beginPath()
    path.moveTo(73, 510)
    path.lineTo(76, 506)
    path.lineTo(84, 516)
    sheet.drawPath(path)


def with_field(value: str) -> bytes:
    """Return the page with a form field that has a value and no appearance."""
    buffer = io.BytesIO()
    sheet = canvas.Canvas(buffer, pagesize=(612, 792))
    for row, line in enumerate(TEXT):
        sheet.drawString(72, 720 - 18 * row, line)
    sheet.acroForm.textfield(name="a", value=value, x=72, y=500, width=200, height=24)
    sheet.save()
    with pikepdf.open(io.BytesIO(buffer.getvalue())) as file:
        for note in file.pages[0].Annots:
            del note["/AP"]
        file.Root.AcroForm.NeedAppearances = True
        return _saved(file)


def with_free_text(content: bytes) -> bytes:
    """Return the page with typed words over it, which have no appearance."""
    with pikepdf.open(io.BytesIO(content)) as file:
        note = pikepdf.Dictionary(
            Type=pikepdf.Name.Annot,
            Subtype=pikepdf.Name.FreeText,
            Rect=pikepdf.Array([72, 500, 300, 520]),
            F=4,
            Contents="Allergy: Penicillin",
            DA="/Helv 12 Tf 0 g",
        )
        file.pages[0].Annots = pikepdf.Array([file.make_indirect(note)])
        return _saved(file)


def turned_page(content: bytes, degrees: int) -> bytes:
    """Return the page with /Rotate."""
    with pikepdf.open(io.BytesIO(content)) as file:
        file.pages[0].rotate(degrees, relative=False)
        return _saved(file)


def without_characters(content: bytes, word: str) -> bytes:
    """Return the page with a word in a font that has glyphs and no characters."""
    with pikepdf.open(io.BytesIO(content)) as file:
        page = file.pages[0]
        glyphs = pikepdf.Dictionary()
        for index, letter in enumerate(word):
            glyphs[f"/g{index}"] = file.make_stream(_glyph(letter))
        names = [pikepdf.Name(f"/g{index}") for index in range(len(word))]
        font = pikepdf.Dictionary(
            Type=pikepdf.Name.Font,
            Subtype=pikepdf.Name.Type3,
            FontBBox=pikepdf.Array([0, 0, 1000, 1000]),
            FontMatrix=pikepdf.Array([0.001, 0, 0, 0.001, 0, 0]),
            CharProcs=glyphs,
            Encoding=pikepdf.Dictionary(Differences=pikepdf.Array([1, *names])),
            FirstChar=1,
            LastChar=len(word),
            Widths=pikepdf.Array([600] * len(word)),
            Resources=pikepdf.Dictionary(),
        )
        page.Resources.Font["/T3"] = file.make_indirect(font)
        codes = bytes(range(1, len(word) + 1)).hex().encode()
        page.contents_add(b"BT /T3 20 Tf 1 0 0 1 72 500 Tm <" + codes + b"> Tj ET")
        return _saved(file)


def _glyph(letter: str) -> bytes:
    fine = picture((letter,), size=40).point(lambda level: 255 * (level < 128))
    parts = [b"600 0 0 0 1000 1000 d1"]
    for y in range(fine.height):
        row = fine.crop((0, y, fine.width, y + 1)).tobytes()
        x = row.find(b"\xff")
        while x >= 0:
            end = row.find(b"\x00", x)
            end = fine.width if end < 0 else end
            parts.append(b"%d %d %d 18 re f" % ((x - 40) * 18, (80 - y) * 18, (end - x) * 18))
            x = row.find(b"\xff", end)
    return b"\n".join(parts)


def pictured_values(sheet: Sheet) -> None:
    """Draw rows of a table whose values are small pictures in 7 pt type."""
    rows = (
        ("Sodium", "138", "mmol/L", "135-145"),
        ("Potassium", "6.8", "mmol/L", "3.5-5.1"),
        ("Chloride", "98", "mmol/L", "98-107"),
        ("Calcium", "9.1", "mg/dL", "8.5-10.5"),
    )
    for row, (name, value, unit, usual) in enumerate(rows):
        y = 600 - 20 * row
        sheet.drawString(72, y, name)
        sheet.drawString(300, y, unit)
        sheet.drawString(400, y, usual)
        image = picture((value,), size=40)
        wide = 18 * image.width / image.height
        sheet.drawImage(ImageReader(image.convert("RGB")), 200, y - 6, wide, 18)


def lost_form() -> bytes:
    """Return the one page that is left of a form after another program removed the form."""
    buffer = io.BytesIO()
    sheet = canvas.Canvas(buffer)
    for row, line in enumerate(
        (
            "Please wait...",
            "If this message is not eventually replaced by the proper contents of the document,",
            "your PDF viewer may not be able to display this type of document.",
        )
    ):
        sheet.drawString(72, 700 - 20 * row, line)
    sheet.save()
    return buffer.getvalue()
