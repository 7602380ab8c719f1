"""One office visit in each file format: `python -m samples.visit_formats`.

Every run writes the same bytes beside this file. The truth is `visit.entities.json`.
"""

from __future__ import annotations

import io
from pathlib import Path

import reportlab
from PIL import Image, ImageDraw, ImageFont
from reportlab.pdfgen import canvas

from samples.office_files import ccda_of, docx_of, paragraph, rtf_of, table

HERE = Path(__file__).parent
HEAD = (
    "Quillhaven Internal Medicine",
    "OFFICE VISIT",
    "Patient: Wrenfield, Odalys M.",
    "DOB: 02/11/1965",
    "MRN: QHV-55120",
    "Date of Service: 03/04/2021",
)
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ALLERGIES", ("Penicillin - hives",)),
    ("VITAL SIGNS", ("BP 128/76 mmHg, HR 72 bpm, Temp 37.1 °C, Weight 81.5 kg",)),
    (
        "MEDICATIONS",
        (
            "Metformin 500 mg by mouth twice daily",
            "Levothyroxine 75 µg by mouth once daily",
        ),
    ),
)
LABS = (
    ("Test", "Result", "Flag", "Units", "Reference Range"),
    ("Sodium", "140", "", "mmol/L", "135-145"),
    ("Potassium", "5.6", "H", "mmol/L", "3.5-5.1"),
    ("Hemoglobin", "13.2", "", "g/dL", "12.0-15.5"),
)
PLAN = (
    "ASSESSMENT AND PLAN",
    "Type 2 diabetes mellitus, stable. Hypothyroidism.",
    "No chest pain. Continue metformin.",
)
_AT = (0, 16, 26, 34, 46)


def as_text() -> str:
    """Return the visit in the columns of a typewriter."""
    lines = [*HEAD, ""]
    for title, found in SECTIONS:
        lines += [title, *found, ""]
    lines.append("LABORATORY")
    for row in LABS:
        line = ""
        for at, cell in zip(_AT, row, strict=True):
            line = line.ljust(at) + cell
        lines.append(line)
    return "\n".join([*lines, "", *PLAN, ""])


def as_rtf() -> bytes:
    """Return the visit as RTF."""
    rows = [
        r"\trowd" + "".join(rf"\cellx{2000 * (i + 1)}" for i in range(len(row)))
        + r"\pard\intbl " + "".join(rf"{cell}\cell " for cell in row) + r"\row"
        for row in LABS
    ]  # fmt: skip
    before = [*HEAD, *(line for title, found in SECTIONS for line in (title, *found)), "LABORATORY"]
    body = "".join(rf"\pard {line}\par " for line in before)
    body += "".join(rows) + "".join(rf"\pard {line}\par " for line in PLAN)
    signs = {"µ": r"\'b5", "°": r"\'b0"}
    return rtf_of("".join(signs.get(char, char) for char in body))


def as_docx() -> bytes:
    """Return the visit as DOCX."""
    before = [*HEAD, *(line for title, found in SECTIONS for line in (title, *found)), "LABORATORY"]
    body = table(*LABS) + "".join(paragraph(line) for line in PLAN)
    return docx_of(*before, body=body)


def as_ccda() -> bytes:
    """Return the visit as C-CDA."""
    header = (
        "<title>OFFICE VISIT</title><recordTarget><patientRole><id extension='QHV-55120'/><patient>"
        "<name><given>Odalys M.</given><family>Wrenfield</family></name>"
        "<birthTime value='19650211'/></patient></patientRole></recordTarget>"
        "<custodian><assignedCustodian><representedCustodianOrganization>"
        "<name>Quillhaven Internal Medicine</name></representedCustodianOrganization>"
        "</assignedCustodian></custodian>"
        "<componentOf><encompassingEncounter><effectiveTime value='20210304'/>"
        "</encompassingEncounter></componentOf>"
    )
    sections = [_section(title, _paragraphs(found)) for title, found in SECTIONS]
    head, *rows = (
        "".join(f"<{tag}>{cell}</{tag}>" for cell in row)
        for tag, row in zip(("th", *["td"] * len(LABS)), LABS, strict=False)
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    labs = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    sections += [_section("LABORATORY", labs), _section(PLAN[0], _paragraphs(PLAN[1:]))]
    return ccda_of(*sections, header=header)


def as_pdf() -> bytes:
    """Return the visit as PDF, with the columns at fixed places."""
    buffer = io.BytesIO()
    sheet = canvas.Canvas(buffer, pagesize=(612, 792), invariant=True)
    y = 740.0
    for line in as_text().split("\n"):
        for at, cell in _cells(line):
            sheet.drawString(60 + 8 * at, y, cell)
        y -= 15
    sheet.save()
    return buffer.getvalue()


def as_image() -> Image.Image:
    """Return the visit as a clean scan of 150 dpi."""
    font = ImageFont.truetype(str(Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"), 22)
    page = Image.new("L", (1275, 1650), "white")
    pen = ImageDraw.Draw(page)
    for row, line in enumerate(as_text().split("\n")):
        for at, cell in _cells(line):
            pen.text((90 + 15 * at, 90 + 40 * row), cell, fill="black", font=font)
    return page


def files() -> dict[str, bytes]:
    """Return the bytes of each file that this module writes."""
    page = as_image()
    webp, bmp = io.BytesIO(), io.BytesIO()
    page.save(webp, "WEBP", lossless=True)
    page.convert("1").save(bmp, "BMP")
    return {
        "visit.txt": as_text().encode(),
        "visit.rtf": as_rtf(),
        "visit.docx": as_docx(),
        "visit.xml": as_ccda(),
        "visit.webp": webp.getvalue(),
        "visit.bmp": bmp.getvalue(),
    }


def _cells(line: str) -> list[tuple[int, str]]:
    """Return the cells of a line with their first columns; prose is one cell."""
    found = next((row for row in LABS if line.split() == " ".join(row).split()), None)
    return [(0, line)] if found is None else list(zip(_AT, found, strict=True))


def _section(title: str, text: str) -> str:
    return f"<title>{title}</title><text>{text}</text>"


def _paragraphs(lines: tuple[str, ...]) -> str:
    return "".join(f"<paragraph>{line}</paragraph>" for line in lines)


def main() -> None:
    """Write the files."""
    for name, content in files().items():
        (HERE / name).write_bytes(content)
        print(f"{name}: {len(content) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
