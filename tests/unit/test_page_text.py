"""Printed pages become text that keeps their layout: blocks, cells, notes, strikes, check boxes."""

from __future__ import annotations

from pathlib import Path

import pytest
from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph

from tests.support.page_texts import joined, text_of
from tests.support.printed_pages import (
    BODY,
    DRUGS,
    EVEN,
    GRID,
    LAB,
    LAB_TEXT,
    LEFT_PROSE,
    REACTIONS,
    RIGHT_PROSE,
    SMALL,
    lines_at,
    prose_at,
    table_at,
)


class TestBlocks:
    """Blocks printed side by side are read one after the other."""

    @pytest.mark.parametrize("style", [BODY, EVEN])
    @pytest.mark.parametrize("lower", [0.0, 6.0])
    def test_two_columns_of_prose(
        self, tmp_path: Path, style: ParagraphStyle, lower: float
    ) -> None:
        def draw(sheet: Canvas) -> None:
            sheet.drawCentredString(306, 740, "Letter from the department of chest medicine")
            prose_at(sheet, LEFT_PROSE, 50, 715, 245, style)
            prose_at(sheet, RIGHT_PROSE, 314, 715 - lower, 245, style)

        text = text_of(tmp_path, draw)

        assert "→" not in text
        title = "Letter from the department of chest medicine "
        assert joined(text) == title + LEFT_PROSE + RIGHT_PROSE.strip()

    def test_three_columns_of_prose(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            for x, words in ((40, LEFT_PROSE), (222, RIGHT_PROSE), (404, LEFT_PROSE)):
                prose_at(sheet, words, x, 715, 165)

        assert joined(text_of(tmp_path, draw)) == (LEFT_PROSE + RIGHT_PROSE + LEFT_PROSE).strip()

    @pytest.mark.parametrize("width", [220, 300, 510])
    def test_one_column_of_prose_stays_one_block(self, tmp_path: Path, width: float) -> None:
        def draw(sheet: Canvas) -> None:
            end = prose_at(sheet, LEFT_PROSE * 2, 50, 740, width, EVEN)
            prose_at(sheet, RIGHT_PROSE, 50, end - 10, width, EVEN)

        text = text_of(tmp_path, draw)

        assert "→" not in text
        assert joined(text) == (LEFT_PROSE * 2 + RIGHT_PROSE).strip()

    def test_numbered_items_that_go_on_in_the_second_column(self, tmp_path: Path) -> None:
        left = ["1. Angina. She takes ranolazine", "500 mg twice daily.", "2. Gout. No attack."]
        right = ["3. Asthma. We reduced budesonide", "to one puff daily.", "4. Eczema. Better."]

        def draw(sheet: Canvas) -> None:
            lines_at(sheet, 60, 690, left)
            lines_at(sheet, 320, 690, right)

        assert text_of(tmp_path, draw).split("\n") == [*left, *right]

    def test_a_dose_begins_the_next_line_of_a_column(self, tmp_path: Path) -> None:
        left = [
            "The heart failure is treated with furosemide",
            "40 mg daily and bisoprolol",
            "2.5 mg daily. She sleeps on one",
            "Pillow. Weight was stable this week.",
        ]
        right = [
            "Diabetes: she injects insulin glargine",
            "20 units at night and has taken",
            "10 mg dapagliflozin since March.",
            "No ulcer was seen.",
        ]

        def draw(sheet: Canvas) -> None:
            lines_at(sheet, 60, 690, left)
            lines_at(sheet, 320, 690, right)

        assert text_of(tmp_path, draw).split("\n") == [*left, *right]

    def test_two_lists_with_headings(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            lines_at(sheet, 320, 690, ["CURRENT MEDICATIONS", *DRUGS, "Aspirin 81 mg daily"])
            lines_at(sheet, 60, 690, ["ALLERGIES", *REACTIONS])
            lines_at(sheet, 60, 590, ["ASSESSMENT", "Doing well."])

        assert text_of(tmp_path, draw).split("\n") == [
            "ALLERGIES",
            *REACTIONS,
            "CURRENT MEDICATIONS",
            *DRUGS,
            "Aspirin 81 mg daily",
            "ASSESSMENT",
            "Doing well.",
        ]

    def test_four_lists_with_bold_headings_at_different_heights(self, tmp_path: Path) -> None:
        lists = (
            (60, 690, ("Current Medications", *DRUGS)),
            (320, 690, ("Allergies", "Latex")),
            (60, 610, ("Family History", "Mother: breast cancer")),
            (320, 640, ("Social History", "Never smoked", "No alcohol")),
        )

        def draw(sheet: Canvas) -> None:
            for x, y, items in lists:
                lines_at(sheet, x, y, items, bold=1)

        text = text_of(tmp_path, draw)

        assert all("\n".join(items) in text for _, _, items in lists)

    def test_three_lists_below_a_title(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            sheet.drawString(50, 740, "Summary of the health record with all lists " * 2)
            lines_at(sheet, 50, 710, ["PROBLEMS", "Hypertension", "Asthma"])
            lines_at(sheet, 230, 710, ["MEDICATIONS", *DRUGS])
            lines_at(sheet, 420, 710, ["ALLERGIES", *REACTIONS])

        lines = text_of(tmp_path, draw).split("\n")[1:]

        assert lines == [
            "PROBLEMS",
            "Hypertension",
            "Asthma",
            "MEDICATIONS",
            *DRUGS,
            "ALLERGIES",
            *REACTIONS,
        ]

    @pytest.mark.parametrize("bullet", ["• ", "- ", "[ ] "])
    def test_lists_with_bullets_below_unusual_headings(self, tmp_path: Path, bullet: str) -> None:
        def draw(sheet: Canvas) -> None:
            lines_at(sheet, 60, 710, ["What you should take", *(bullet + drug for drug in DRUGS)])
            lines_at(
                sheet, 320, 710, ["What you should avoid", bullet + "Ibuprofen", bullet + "Gin"]
            )

        lines = text_of(tmp_path, draw).split("\n")

        assert lines.index("What you should avoid") == 4
        assert lines[-1] == bullet + "Gin"

    @pytest.mark.parametrize(
        "heads", [("Continue taking", "Stop taking"), ("CONTINUE", "STOP"), ("Take", "Do not take")]
    )
    def test_lists_of_equal_length_below_orders(
        self, tmp_path: Path, heads: tuple[str, str]
    ) -> None:
        def draw(sheet: Canvas) -> None:
            lines_at(sheet, 60, 700, [heads[0], "Metformin", "Lisinopril"])
            lines_at(sheet, 320, 700, [heads[1], "Ibuprofen", "Naproxen"])

        assert text_of(tmp_path, draw).split("\n")[3:] == [heads[1], "Ibuprofen", "Naproxen"]

    def test_lists_in_frames(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            sheet.rect(50, 620, 240, 100)
            sheet.rect(310, 620, 240, 100)
            lines_at(sheet, 60, 700, ["Take these", "Metformin 500 mg", "Lisinopril 20 mg"])
            lines_at(sheet, 320, 700, ["Do not take", "Ibuprofen", "Aspirin"])

        assert text_of(tmp_path, draw).split("\n")[3:] == ["Do not take", "Ibuprofen", "Aspirin"]

    def test_the_halves_of_a_form(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            lines_at(sheet, 50, 720, ["PATIENT INFORMATION", "Name: Ann Rook", "DOB: 04/17/1961"])
            lines_at(sheet, 320, 720, ["INSURANCE INFORMATION", "Payer: Northgate", "Group: 12"])

        assert text_of(tmp_path, draw).split("\n")[3] == "INSURANCE INFORMATION"

    def test_a_narrow_list_beside_prose(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            lines_at(sheet, 40, 720, ["ALLERGIES", "Latex", "", "MEDICATIONS", *DRUGS], step=13)
            lines_at(sheet, 200, 720, ["HISTORY OF PRESENT ILLNESS"])
            prose_at(sheet, LEFT_PROSE, 200, 714, 360)

        lines = text_of(tmp_path, draw).split("\n")

        assert lines[:4] == ["ALLERGIES", "Latex", "MEDICATIONS", DRUGS[0]]
        assert joined(" ".join(lines[7:])) == LEFT_PROSE.strip()

    def test_two_tables_side_by_side(self, tmp_path: Path) -> None:
        one = (("Test", "Result"), ("Glucose", "98"), ("Sodium", "139"), ("Calcium", "9.1"))
        other = (("Test", "Result"), ("WBC", "7.1"), ("MCV", "88"), ("Platelets", "222"))

        def draw(sheet: Canvas) -> None:
            table_at(sheet, one, 50, 720, [90, 50])
            table_at(sheet, other, 320, 720, [90, 50])

        expected = ["→".join(row) for row in (*one, *other)]
        assert text_of(tmp_path, draw).split("\n") == expected


class TestTables:
    """A table is read row by row, with a TAB between cells."""

    @pytest.mark.parametrize(
        "style",
        [
            (),
            (GRID,),
            (("ALIGN", (1, 0), (2, -1), "RIGHT"),),
            (("ALIGN", (0, 0), (-1, -1), "CENTER"),),
            (("ROWBACKGROUNDS", (0, 0), (-1, -1), [colors.whitesmoke, colors.lightgrey]),),
            (("LINEBELOW", (0, 0), (-1, -1), 0.5, colors.grey),),
        ],
    )
    def test_five_columns_with_empty_cells(
        self, tmp_path: Path, style: tuple[tuple[object, ...], ...]
    ) -> None:
        text = text_of(tmp_path, lambda sheet: table_at(sheet, LAB, 50, 720, None, *style))

        assert text.split("\n") == list(LAB_TEXT)

    @pytest.mark.parametrize(
        "rows",
        [
            (
                ("Allergen", "Reaction", "Severity"),
                ("Latex", "", "severe"),
                ("Sulfa", "rash", "mild"),
            ),
            (("Vaccine", "Maker"), ("Influenza", "Sanofi"), ("Tdap", "GSK")),
            (("Relative", "Illness"), ("Mother", "breast cancer"), ("Father", "stroke")),
            (("Drug", "Start", "Stop"), ("Warfarin", "03/04/2019", "05/06/2021")),
            (("", "03/01", "03/02"), ("Weight", "80.1", "80.4"), ("Pulse", "", "88")),
            (
                ("Test", "03/01", "03/02", "03/03", "03/04", "Units", "Low", "High", "Method"),
                ("Potassium", "4.0", "", "4.2", "4.3", "mmol/L", "3.5", "5.1", "ISE"),
                ("Calcium", "", "9.1", "9.2", "9.3", "mg/dL", "8.7", "10.3", "Color"),
            ),
        ],
    )
    def test_two_to_nine_columns_of_words_and_numbers(
        self, tmp_path: Path, rows: tuple[tuple[str, ...], ...]
    ) -> None:
        text = text_of(tmp_path, lambda sheet: table_at(sheet, rows, 40, 720))

        assert text.split("\n") == ["→".join(row) for row in rows]

    @pytest.mark.parametrize(
        "style",
        [
            (GRID,),
            (("VALIGN", (0, 0), (-1, -1), "MIDDLE"), ("BOTTOMPADDING", (0, 0), (-1, -1), 8)),
        ],
    )
    def test_a_wrapped_name_joins_its_row(
        self, tmp_path: Path, style: tuple[tuple[object, ...], ...]
    ) -> None:
        name = "Estimated glomerular filtration rate by CKD-EPI"
        rows = (
            ("Test", "Result", "Units", "Range"),
            (Paragraph(name, BODY), "58", "mL/min", ">60"),
            (Paragraph("Thyroid stimulating hormone, third generation", BODY), "2.1", "mIU/L", ""),
            ("ALT", "31", "U/L", "7-56"),
        )

        text = text_of(
            tmp_path, lambda sheet: table_at(sheet, rows, 50, 720, [110, 60, 60, 60], *style)
        )

        assert text.split("\n") == [
            "Test→Result→Units→Range",
            f"{name}→58→mL/min→>60",
            "Thyroid stimulating hormone, third generation→2.1→mIU/L",
            "ALT→31→U/L→7-56",
        ]

    def test_cells_of_prose_that_wrap_together_stay_rows(self, tmp_path: Path) -> None:
        cells = (
            ("Hypertension which is not at goal on the current dose", LEFT_PROSE[:90]),
            ("Type 2 diabetes with rising sugar over the winter", RIGHT_PROSE[:90]),
            ("Pain of the left knee after a fall on the stairs", RIGHT_PROSE[90:180]),
        )
        rows = [[Paragraph(text, BODY) for text in row] for row in cells]

        text = text_of(
            tmp_path,
            lambda sheet: table_at(
                sheet, rows, 50, 720, [180, 240], ("BOTTOMPADDING", (0, 0), (-1, -1), 8)
            ),
        )

        assert text.split("\n") == ["→".join(map(joined, row)) for row in cells]

    def test_headings_and_comments_inside_a_table(self, tmp_path: Path) -> None:
        rows = (
            ("Test", "Result", "Units", "Range"),
            ("HEMATOLOGY", "", "", ""),
            ("Hemoglobin", "6.1 (L)", "g/dL", "12.0-16.0"),
            ("Comment: specimen slightly hemolyzed, interpret with care", "", "", ""),
            ("Potassium", "4.4", "mmol/L", "3.5-5.1"),
        )

        text = text_of(tmp_path, lambda sheet: table_at(sheet, rows, 50, 720, [120, 60, 60, 80]))

        assert text.split("\n") == ["→".join(row).rstrip("→") for row in rows]

    def test_a_long_name_over_empty_cells(self, tmp_path: Path) -> None:
        rows = (
            ("Test", "Result", "Flag", "Units", "Range"),
            ("Glucose", "98", "", "mg/dL", "70-99"),
            ("Thyroid peroxidase antibody titer", "", "", "IU/mL", "<34"),
            ("Sodium", "139", "", "mmol/L", "135-145"),
        )

        text = text_of(
            tmp_path, lambda sheet: table_at(sheet, rows, 50, 720, [110, 60, 40, 70, 80])
        )

        assert text.split("\n") == ["→".join(row) for row in rows]

    def test_words_that_climb_the_margin_are_no_cells(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            table_at(sheet, LAB, 60, 700)
            sheet.translate(30, 560)
            sheet.rotate(90)
            sheet.drawString(0, 0, "CONFIDENTIAL COPY of the record")

        lines = text_of(tmp_path, draw).split("\n")

        assert lines == [*LAB_TEXT, "CONFIDENTIAL COPY of the record"]

    def test_a_table_above_two_lists(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            table_at(sheet, LAB, 50, 720, [180, 70, 40, 70, 90])
            lines_at(sheet, 52, 580, ["ALLERGIES", *REACTIONS])
            lines_at(sheet, 320, 580, ["MEDICATIONS", *DRUGS])

        assert text_of(tmp_path, draw).split("\n") == [
            *LAB_TEXT,
            "ALLERGIES",
            *REACTIONS,
            "MEDICATIONS",
            *DRUGS,
        ]

    def test_a_sideways_page(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            sheet.translate(612, 0)
            sheet.rotate(90)
            table_at(sheet, LAB, 60, 560, [120, 70, 40, 70, 90])

        assert text_of(tmp_path, draw).split("\n") == list(LAB_TEXT)

    def test_labels_with_values_and_a_numbered_list(self, tmp_path: Path) -> None:
        def draw(sheet: Canvas) -> None:
            lines_at(sheet, 50, 690, ["Name:   Ann Rook", "MRN:   5520931"])
            lines_at(sheet, 300, 690, ["DOB:   04/17/1961", "Sex:   F"])
            for i, words in enumerate(("Start amlodipine.", "Repeat the scan.", "Call if ill.")):
                lines_at(sheet, 50, 600 - 14 * i, [f"{i + 1}."])
                lines_at(sheet, 72, 600 - 14 * i, [words])

        assert text_of(tmp_path, draw).split("\n") == [
            "Name: Ann Rook→DOB: 04/17/1961",
            "MRN: 5520931→Sex: F",
            "1. Start amlodipine.",
            "2. Repeat the scan.",
            "3. Call if ill.",
        ]


def test_small_print_below_a_table_is_no_cell(tmp_path: Path) -> None:
    def draw(sheet: Canvas) -> None:
        table_at(sheet, LAB, 50, 720)
        prose_at(
            sheet, "1 Specimen was not fasting. 2 Method changed in January.", 56, 610, 300, SMALL
        )

    assert text_of(tmp_path, draw).split("\n")[5:] == [
        "1 Specimen was not fasting. 2 Method changed in January."
    ]


def test_lists_that_follow_closely_with_other_gaps_stay_whole(tmp_path: Path) -> None:
    lists = (
        (50, 740, ("ACTIVE PROBLEMS", "• Gout", "• Asthma")),
        (217, 740, ("KNOWN ALLERGIES", "• Latex", "• Sulfa")),
        (384, 740, ("MEDICATIONS", "• Aspirin 81 mg", "• Metformin 500 mg")),
        (50, 680, ("Active Meds", "Gin", "Albuterol 90 mcg inhaled when needed", "Iron")),
        (300, 680, ("Family History", "Mother: stroke", "Father: gout", "No cancer")),
    )

    def draw(sheet: Canvas) -> None:
        for x, y, items in lists:
            lines_at(sheet, x, y, items)

    text = text_of(tmp_path, draw)

    assert all("\n".join(items) in text for _, _, items in lists)
