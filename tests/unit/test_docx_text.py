"""DOCX files become page text: tables pair their values, and deleted text is never present."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.documents.reader import (
    HIDDEN_TEXT,
    PARTLY_READ,
    TRACKED_CHANGES,
    InputRefused,
    MediaType,
)
from samples.office_files import cell, docx_of, paragraph, run, runs, table
from tests.support.text_files import read_in_process

Reading = Callable[[bytes], list[tuple[str, tuple[str, ...]]]]
#: The bullet of the font Symbol.
BULLET = chr(0xF0B7)
BREAK = '<w:r><w:br w:type="page"/></w:r>'


@pytest.fixture
def pages(tmp_path: Path) -> Reading:
    """Return a function: bytes of a DOCX → text and warnings of each page."""

    def read(raw: bytes) -> list[tuple[str, tuple[str, ...]]]:
        found = read_in_process(tmp_path, raw, MediaType.DOCX)
        return [(page.text, page.warnings) for page in found]

    return read


def test_paragraphs_are_lines_and_tabs_are_cells(pages: Reading) -> None:
    raw = docx_of("Bayview Clinic", "Name: Hart\tDOB: 03/04/1961", "", "\tAspirin 81 mg")

    assert pages(raw) == [("Bayview Clinic\nName: Hart\tDOB: 03/04/1961\nAspirin 81 mg", ())]


@pytest.mark.parametrize(
    ("body", "text", "warnings"),
    [
        (
            runs(run("Warfarin "), f'<w:del w:id="1">{run("10")}</w:del>',
                 f'<w:ins w:id="2">{run("5")}</w:ins>', run(" mg")),
            "Warfarin 5 mg", (TRACKED_CHANGES,),
        ),
        (
            runs(run("Aspirin "), "<w:del><w:r><w:delText>81 mg</w:delText></w:r></w:del>"),
            "Aspirin", (TRACKED_CHANGES,),
        ),
        (
            runs(f'<w:moveFrom w:id="1">{run("Heparin")}</w:moveFrom>', run("Insulin")),
            "Insulin", (TRACKED_CHANGES,),
        ),
        (
            paragraph("Metoprolol 25", "<w:rPr><w:del/></w:rPr>") + paragraph(" mg daily"),
            "Metoprolol 25 mg daily", (TRACKED_CHANGES,),
        ),
        (runs(run("A "), run("b", "<w:vanish/>"), run("c")), "A c", (HIDDEN_TEXT,)),
        (runs(run("A "), run("b", '<w:color w:val="FEFEFE"/>'), run("c")), "A c", (HIDDEN_TEXT,)),
        (runs(run("A "), run("b", '<w:sz w:val="3"/>'), run("c")), "A c", (HIDDEN_TEXT,)),
        (
            runs(run("A "), run("b", '<w:color w:val="FFFFFF"/><w:shd w:fill="1F4E79"/>')),
            "A b", (),
        ),
        (runs(run("Stop "), run("warfarin 5 mg", "<w:strike/>")), "Stop ~~warfarin 5 mg~~", ()),
        (runs(run("5 "), run("mg", '<w:strike w:val="0"/>')), "5 mg", ()),
        (
            runs(run("WBC 5 × 10"), run("3", '<w:vertAlign w:val="superscript"/>'), run("/µL")),
            "WBC 5 × 10³/µL", (),
        ),
        (
            runs(run("Na 140"), run("1", '<w:vertAlign w:val="superscript"/>'), run(" mmol/L")),
            "Na 140 ¹ mmol/L", (),
        ),
        (
            runs(run("Dose 5 "), run("m", '<w:rFonts w:ascii="Symbol"/>'), run("g")),
            "Dose 5 μg", (),
        ),
        (
            runs('<w:r><w:sym w:font="Symbol" w:char="F0B3"/></w:r>', run(" 200")),
            "≥ 200", (),
        ),
        (
            runs(run("10"), "<w:r><w:noBreakHyphen/></w:r>", run("20 mg"),
                 "<w:r><w:softHyphen/></w:r>"),
            "10-20 mg", (),
        ),
        (
            runs('<w:r><w:fldChar w:fldCharType="begin"/></w:r>',
                 "<w:r><w:instrText>DATE 99</w:instrText></w:r>",
                 '<w:r><w:fldChar w:fldCharType="separate"/></w:r>', run("July 9"),
                 '<w:r><w:fldChar w:fldCharType="end"/></w:r>', run(", 2024")),
            "July 9, 2024", (),
        ),
        (
            runs('<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="0"/></w14:checkbox></w:sdtPr>'
                 f'<w:sdtContent>{run("☐")}</w:sdtContent></w:sdt>', run(" Fever")),
            "[ ] Fever", (),
        ),
        (
            runs(run("x "), "<m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2"
                 "</m:t></m:r></m:den></m:f></m:oMath>"),
            "x [formula]", (PARTLY_READ,),
        ),
    ],
)  # fmt: skip
def test_a_run_is_read_as_a_person_sees_the_run(
    pages: Reading, body: str, text: str, warnings: tuple[str, ...]
) -> None:
    assert pages(docx_of(body=body)) == [(text, warnings)]


def test_hidden_text_of_a_style_is_left_out(pages: Reading) -> None:
    styles = (
        '<w:style w:type="character" w:styleId="Base"><w:rPr><w:vanish/></w:rPr></w:style>'
        '<w:style w:type="character" w:styleId="Deep"><w:basedOn w:val="Base"/></w:style>'
    )
    body = runs(run("Seen "), run("unseen", '<w:rStyle w:val="Deep"/>'))

    assert pages(docx_of(body=body, parts={"styles": styles})) == [("Seen", (HIDDEN_TEXT,))]


def test_a_table_keeps_its_empty_cells(pages: Reading) -> None:
    body = table(
        ("Test", "Result", "Flag", "Units"),
        ("Sodium", "140", "", "mmol/L"),
        ("Potassium", "5.9", "H", "mmol/L"),
    )

    ((text, _),) = pages(docx_of(body=body))

    assert text == "Test\tResult\tFlag\tUnits\nSodium\t140\t\tmmol/L\nPotassium\t5.9\tH\tmmol/L"


def test_merged_cells_keep_the_columns_below_their_headings(pages: Reading) -> None:
    rows = (
        "<w:tr>"
        + cell("Panel", '<w:vMerge w:val="restart"/>')
        + cell("Na")
        + cell("140")
        + "</w:tr>"
        "<w:tr>" + cell("", "<w:vMerge/>") + cell("K") + cell("4.1") + "</w:tr>"
        "<w:tr>" + cell("Comment", '<w:gridSpan w:val="2"/>') + cell("hemolyzed") + "</w:tr>"
    )

    ((text, _),) = pages(docx_of(body=f"<w:tbl>{rows}</w:tbl>"))

    assert text == "Panel\tNa\t140\n\tK\t4.1\nComment\t\themolyzed"


def test_deleted_rows_and_cells_are_left_out(pages: Reading) -> None:
    rows = (
        "<w:tr>" + cell("Sodium") + cell("140") + "</w:tr>"
        "<w:tr><w:trPr><w:del/></w:trPr>" + cell("Potassium") + cell("9.9") + "</w:tr>"
        "<w:tr>" + cell("Glucose") + cell("500", "<w:cellDel/>") + "</w:tr>"
    )

    assert pages(docx_of(body=f"<w:tbl>{rows}</w:tbl>")) == [
        ("Sodium\t140\nGlucose", (TRACKED_CHANGES,))
    ]


def test_lists_side_by_side_are_read_one_after_the_other(pages: Reading) -> None:
    body = table(("ALLERGIES\nPenicillin\nSulfa", "MEDICATIONS\nWarfarin 5 mg\nInsulin 10 units"))

    ((text, _),) = pages(docx_of(body=body))

    assert text.splitlines() == [
        "ALLERGIES", "Penicillin", "Sulfa", "MEDICATIONS", "Warfarin 5 mg", "Insulin 10 units",
    ]  # fmt: skip


def test_stacked_numbers_are_rows_only_below_headings_and_with_equal_counts(pages: Reading) -> None:
    equal = table(("Test", "Result"), ("Na\nK", "140\n4.1"))
    unequal = table(("Test", "Result"), ("Na\nK\nCl", "140\n4.1"))

    assert pages(docx_of(body=equal))[0][0] == "Test\tResult\nNa\t140\nK\t4.1"
    assert pages(docx_of(body=unequal))[0][0] == "Test\tResult\nNa\nK\nCl\n140\n4.1"


def test_a_table_in_a_table_keeps_its_rows(pages: Reading) -> None:
    inner = table(("Na", "140"), ("K", "4.1"))
    outer = f"<w:tbl><w:tr>{cell('Labs')}<w:tc>{inner}<w:p/></w:tc></w:tr></w:tbl>"

    assert pages(docx_of(body=outer))[0][0] == "Labs\nNa\t140\nK\t4.1"


def test_headings_of_a_long_table_are_repeated_on_each_page(pages: Reading) -> None:
    head = f"<w:tr><w:trPr><w:tblHeader/></w:trPr>{cell('Day')}{cell('Weight')}</w:tr>"
    rows = "".join(f"<w:tr>{cell(str(n))}{cell(f'{n}.5 kg')}</w:tr>" for n in range(100))

    found = pages(docx_of(body=f"<w:tbl>{head}{rows}</w:tbl>"))

    assert [text.splitlines()[0] for text, _ in found] == ["Day\tWeight"] * len(found)
    assert len(found) == 2


def test_numbers_and_bullets_of_lists_are_part_of_the_text(pages: Reading) -> None:
    def level(depth: int, form: str, text: str) -> str:
        return (
            f'<w:lvl w:ilvl="{depth}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>'
            f'<w:lvlText w:val="{text}"/></w:lvl>'
        )

    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{level(0, "decimal", "%1.")}'
        f"{level(1, 'lowerLetter', '%1.%2)')}</w:abstractNum>"
        f'<w:abstractNum w:abstractNumId="1">{level(0, "bullet", BULLET)}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
        '<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>'
    )

    def item(text: str, depth: int, number: int = 1) -> str:
        place = f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>'
        return paragraph(text, place)

    body = (
        item("A", 0) + item("B", 1) + item("C", 1) + item("D", 0) + item("E", 1) + item("F", 0, 2)
    )

    assert pages(docx_of(body=body, parts={"numbering": numbering}))[0][0].splitlines() == [
        "1. A", "1.a) B", "1.b) C", "2. D", "2.a) E", "• F",
    ]  # fmt: skip


def test_running_headers_are_on_each_page_with_its_number(pages: Reading) -> None:
    field = '<w:fldSimple w:instr=" PAGE ">' + run("9") + "</w:fldSimple>"
    section = '<w:sectPr><w:headerReference w:type="default" r:id="header1"/></w:sectPr>'
    other = '<w:sectPr><w:headerReference w:type="default" r:id="header2"/></w:sectPr>'
    body = paragraph("One") + runs(BREAK) + paragraph("Two", section) + paragraph("Three") + other
    parts = {
        "header1": runs(run("Patient: Hart, page "), field),
        "header2": paragraph("Patient: Olsen"),
    }

    assert [text for text, _ in pages(docx_of(body=body, parts=parts))] == [
        "Patient: Hart, page 1\nOne",
        "Patient: Hart, page 2\nTwo",
        "Patient: Olsen\nThree",
    ]


def test_notes_follow_at_the_end_of_their_page(pages: Reading) -> None:
    note = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    body = runs(run("Potassium 6.1"), note) + runs(BREAK) + paragraph("Next")
    notes = f'<w:footnote w:id="2">{paragraph("Hemolyzed.")}</w:footnote>'

    assert [text for text, _ in pages(docx_of(body=body, parts={"footnotes": notes}))] == [
        "Potassium 6.1 ¹\n¹ Hemolyzed.",
        "Next",
    ]


def test_a_text_box_is_read_once_behind_its_paragraph(pages: Reading) -> None:
    box = f"<w:txbxContent>{paragraph('Allergy: latex')}</w:txbxContent>"
    drawing = (
        "<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wps:txbx>"
        f"{box}</wps:txbx></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox>{box}"
        "</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )

    assert pages(docx_of(body=runs(run("Note"), drawing)))[0][0] == "Note\nAllergy: latex"


def test_a_picture_that_was_not_read_is_reported(pages: Reading) -> None:
    def picture(inches: float) -> str:
        side = round(inches * 914_400)
        return f'<w:r><w:drawing><wp:extent cx="{side}" cy="{side}"/><pic:pic/></w:drawing></w:r>'

    assert pages(docx_of(body=runs(run("Scan"), picture(5)))) == [("Scan", (PARTLY_READ,))]
    assert pages(docx_of(body=runs(run("Logo"), picture(0.5)))) == [("Logo", ())]


def test_damaged_characters_across_runs_are_refused(pages: Reading) -> None:
    with pytest.raises(InputRefused):
        pages(docx_of(body=runs(run("Dose 5 "), run("�g", "<w:b/>"))))
