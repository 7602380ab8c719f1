"""Struck words, raised notes and check boxes in the text of drawn pages."""

from __future__ import annotations

import io
from pathlib import Path

import pikepdf
import pytest
from reportlab.pdfgen.canvas import Canvas

from pipeline.documents.reader.ocr import Ocr
from pipeline.documents.reader.pdf import PdfFile
from tests.support.page_texts import LIMITS, text_of
from tests.support.printed_pages import (
    DRUGS,
    lines_at,
    pdf_of,
    raised,
)


class TestMarks:
    """Raised figures, struck words, check boxes and words drawn twice."""

    @pytest.mark.parametrize(
        ("base", "mark", "after", "rise", "expected"),
        [
            ("Glucose 98", "1", "", 4, "Glucose 98 ¹"),
            ("D-dimer 0.5", "1,2", " mg/L", 4, "D-dimer 0.5 ¹,² mg/L"),
            ("Ferritin 45", "a", " ng/mL", 4, "Ferritin 45 ᵃ ng/mL"),
            ("Hemoglobin", "1", " 12.1 g/dL", 4, "Hemoglobin ¹ 12.1 g/dL"),
            ("Result 10", "3", "", 4, "Result 10 ³"),
            ("WBC 7.2 x10", "9", "/L", 4, "WBC 7.2 x10⁹/L"),
            ("Platelets 210 10", "3", "/µL", 4, "Platelets 210 10³/µL"),
            ("BMI 24.1 kg/m", "2", "", 4, "BMI 24.1 kg/m²"),
            ("eGFR 58 mL/min/1.73 m", "2", " (low)", 4, "eGFR 58 mL/min/1.73 m² (low)"),
            ("CO", "2", " 24 mmol/L", -2, "CO₂ 24 mmol/L"),
            ("Vitamin B", "12", " 388 pg/mL", -2, "Vitamin B₁₂ 388 pg/mL"),
            ("Ca", "2+", " 1.1 mmol/L", 4, "Ca²⁺ 1.1 mmol/L"),
            ("on the 1", "st", " of May", 4, "on the 1st of May"),
        ],
    )
    def test_raised_and_lowered_figures(
        self, tmp_path: Path, base: str, mark: str, after: str, rise: float, expected: str
    ) -> None:
        def draw(sheet: Canvas) -> None:
            raised(sheet, 700, base, mark, after, rise=rise)

        assert text_of(tmp_path, draw) == expected

    def test_a_line_through_words_is_no_underline(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            lines_at(sheet, 60, 720, [DRUGS[2], DRUGS[0], f"{DRUGS[1]} now 10 mg"], step=20)
            width = sheet.stringWidth(DRUGS[2], "Helvetica", 10)
            sheet.line(60, 723.3, 60 + width, 723.3)
            sheet.line(60, 698.5, 60 + width, 698.5)
            width = sheet.stringWidth(DRUGS[1], "Helvetica", 10)
            sheet.rect(60, 683, width, 0.8, stroke=0, fill=1)

        assert text_of(tmp_path, draw).split("\n") == [
            f"~~{DRUGS[2]}~~",
            DRUGS[0],
            f"~~{DRUGS[1]}~~ now 10 mg",
        ]

    def test_drawn_check_boxes(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            for i, name in enumerate(("Diabetes", "Hypertension", "Asthma", "Gout", "Anemia")):
                y = 720 - 18 * i
                sheet.rect(60, y - 1, 9, 9)
                sheet.drawString(76, y, name)
            sheet.line(60, 701, 69, 710)
            sheet.line(60, 710, 69, 701)
            tick = sheet.beginPath()
            tick.moveTo(61, 688)
            tick.lineTo(64, 684)
            tick.lineTo(70, 693)
            sheet.drawPath(tick)
            sheet.drawString(61.5, 666, "X")
            sheet.drawString(60, 600, "Score:")
            sheet.rect(95, 598, 12, 12)
            sheet.drawString(98, 600, "7")

        assert text_of(tmp_path, draw).split("\n") == [
            "[ ] Diabetes",
            "[x] Hypertension",
            "[x] Asthma",
            "[x] Gout",
            "[ ] Anemia",
            "Score: 7",
        ]

    def test_check_boxes_below_column_headings(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            for x, head in ((60, "Symptom"), (202, "Yes"), (262, "No")):
                sheet.drawString(x, 720, head)
            for i, (name, ticked) in enumerate((("Chest pain", 265), ("Fever", 205))):
                y = 700 - 18 * i
                sheet.drawString(60, y, name)
                sheet.rect(205, y - 1, 9, 9)
                sheet.rect(265, y - 1, 9, 9)
                sheet.line(ticked, y - 1, ticked + 9, y + 8)
                sheet.line(ticked, y + 8, ticked + 9, y - 1)

        assert text_of(tmp_path, draw).split("\n") == [
            "Symptom→Yes→No",
            "Chest pain→[ ]→[x]",
            "Fever→[x]→[ ]",
        ]

    @pytest.mark.parametrize(("kind", "mark"), [("StrikeOut", "~~"), ("Underline", "")])
    def test_an_annotation_strikes_words_through(
        self, tmp_path: Path, kind: str, mark: str
    ) -> None:
        plain = pdf_of(lambda sheet: lines_at(sheet, 60, 700, [DRUGS[0], DRUGS[1]]))
        with pikepdf.open(io.BytesIO(plain)) as file:
            note = pikepdf.Dictionary(
                Type=pikepdf.Name.Annot,
                Subtype=pikepdf.Name(f"/{kind}"),
                Rect=[60, 698, 180, 709],
                QuadPoints=[60, 709, 180, 709, 60, 698, 180, 698],
                F=4,
            )
            file.pages[0].Annots = pikepdf.Array([file.make_indirect(note)])
            file.save(tmp_path / "noted.pdf")

        page = PdfFile(tmp_path / "noted.pdf", LIMITS).read(1, Ocr(LIMITS.dpi))

        assert page.text == f"{mark}{DRUGS[0]}{mark}\n{DRUGS[1]}"

    def test_check_boxes_of_a_form(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            for i, (name, checked) in enumerate((("Stroke", False), ("COPD", True))):
                y = 720 - 20 * i
                sheet.acroForm.checkbox(name=name, x=60, y=y - 3, size=12, checked=checked)
                sheet.drawString(78, y, name)
            sheet.drawString(60, 660, "Smoker")
            for x, value in ((110, "Yes"), (160, "No")):
                sheet.acroForm.radio(
                    name="smoker", value=value, selected=value == "No", x=x, y=657, size=12
                )
                sheet.drawString(x + 16, 660, value)

        assert text_of(tmp_path, draw).split("\n") == [
            "[ ] Stroke",
            "[x] COPD",
            "Smoker [ ] Yes [x] No",
        ]

    def test_a_column_of_boxes_far_behind_their_items(self, tmp_path: Path) -> None:
        items = ("Gout", "Migraine", "Iron deficiency anemia")

        def draw(sheet: Canvas) -> None:
            for i, item in enumerate(items):
                sheet.drawString(60, 700 - 18 * i, item)
                sheet.rect(300, 699 - 18 * i, 8, 8)

        assert text_of(tmp_path, draw).split("\n") == [f"{item}→[ ]" for item in items]

    def test_check_boxes_of_a_symbol_font(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            for i, (sign, name) in enumerate((("\u274f", "Stroke"), ("\u2714", "Migraine"))):
                sheet.setFont("ZapfDingbats", 10)
                sheet.drawString(60, 700 - 18 * i, sign)
                sheet.setFont("Helvetica", 10)
                sheet.drawString(76, 700 - 18 * i, name)

        assert text_of(tmp_path, draw).split("\n") == ["[ ] Stroke", "[x] Migraine"]

    def test_a_word_drawn_twice_for_bold_is_read_once(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            for shift in (0, 0.4):
                sheet.drawString(60 + shift, 720, "Potassium 5.8 mmol/L")
            sheet.drawString(60, 690, "Potassium 5.8 5.8 mmol/L")

        assert text_of(tmp_path, draw).split("\n") == [
            "Potassium 5.8 mmol/L",
            "Potassium 5.8 5.8 mmol/L",
        ]
