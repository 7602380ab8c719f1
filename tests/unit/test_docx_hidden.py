"""Text of a DOCX that no reader of paper sees is left out; text that is not read is reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.documents.reader import (
    ATTACHMENTS,
    HIDDEN_TEXT,
    PARTLY_READ,
    InputRefused,
    MediaType,
)
from samples.office_files import cell, docx_of, paragraph, run, runs
from tests.support.text_files import read_in_process

Reading = Callable[..., tuple[str, tuple[str, ...]]]
SEEN, UNSEEN = run("Aspirin "), "Warfarin"
WHITE = '<w:color w:val="FFFFFF"/>'
FILL = '<w14:textFill><w14:solidFill><w14:srgbClr w14:val="{}"/></w14:solidFill></w14:textFill>'


@pytest.fixture
def page(tmp_path: Path) -> Reading:
    """Return a function: the body of a DOCX → text and warnings of its only page."""

    def read(body: str, **parts: str) -> tuple[str, tuple[str, ...]]:
        raw = docx_of(body=body, parts=parts)
        (found,) = read_in_process(tmp_path, raw, MediaType.DOCX)
        return found.text, found.warnings

    return read


def theme(**colours: str) -> str:
    """Return the inside of a theme with these colours."""
    scheme = "".join(f'<a:{k}><a:srgbClr val="{v}"/></a:{k}>' for k, v in colours.items())
    return f"<a:themeElements><a:clrScheme>{scheme}</a:clrScheme></a:themeElements>"


@pytest.mark.parametrize(
    "look",
    [
        '<w:color w:val="000000" w:themeColor="background1"/>',
        '<w:color w:val="auto" w:themeColor="light1"/>',
        '<w:color w:val="000000" w:themeColor="text1" w:themeTint="00"/>',
        '<w:color w:themeColor="accent1"/>',
        '<w:shd w:fill="FFFFFF" w:themeFill="text1"/><w:color w:val="000000"/>',
        "<w14:textFill><w14:noFill/></w14:textFill>",
        FILL.format("FEFEFE"),
        FILL.format("FFFFFF").replace("srgbClr", "schemeClr").replace("FFFFFF", "bg1"),
        FILL.format("000000").replace(
            '000000"/>', '000000"><w14:alpha w14:val="95000"/></w14:srgbClr>'
        ),
        '<w:highlight w:val="black"/>',
        '<w:highlight w:val="yellow"/><w:color w:val="FFFF10"/>',
        '<w:w w:val="1"/>',
        '<w:w w:val="5%"/>',
        '<w:spacing w:val="-400"/>',
        '<w:position w:val="-3000"/>',
    ],
)
def test_a_look_that_shows_nothing_hides_its_words(page: Reading, look: str) -> None:
    found = page(runs(SEEN, run(UNSEEN, look)), theme=theme(accent1="FFFFFE"))

    assert found == ("Aspirin", (HIDDEN_TEXT,))


@pytest.mark.parametrize(
    "look",
    [
        '<w:color w:val="FFFFFF" w:themeColor="text1"/>',
        '<w:color w:themeColor="accent1"/>',
        '<w:color w:val="FFFFFF"/><w:shd w:fill="FFFFFF" w:themeFill="text1"/>',
        FILL.format("C00000"),
        '<w:highlight w:val="yellow"/>',
        '<w:color w:val="FFFFFF"/><w:highlight w:val="black"/>',
        '<w:shd w:fill="000000"/>',
        '<w:w w:val="80"/>',
        '<w:spacing w:val="-10"/>',
        '<w:position w:val="6"/><w:vertAlign w:val="baseline"/>',
    ],
)
def test_a_look_that_shows_words_hides_nothing(page: Reading, look: str) -> None:
    found = page(runs(SEEN, run(UNSEEN, look)), theme=theme(accent1="4472C4"))

    assert found == ("Aspirin Warfarin", ())


@pytest.mark.parametrize(
    "place",
    [
        '<w:spacing w:line="1" w:lineRule="exact"/>',
        '<w:pStyle w:val="Flat"/><w:spacing w:before="120"/>',
        '<w:ind w:left="31000"/>',
        '<w:ind w:left="-20000"/>',
        '<w:framePr w:x="-20000" w:y="1" w:hAnchor="page"/>',
    ],
)
def test_a_paragraph_without_height_or_beside_the_page_is_hidden(page: Reading, place: str) -> None:
    styles = (
        '<w:style w:type="paragraph" w:styleId="Flat"><w:pPr>'
        '<w:spacing w:line="10" w:lineRule="exact"/></w:pPr></w:style>'
    )

    found = page(runs(SEEN) + paragraph(UNSEEN, place), styles=styles)

    assert found == ("Aspirin", (HIDDEN_TEXT,))


@pytest.mark.parametrize(
    "place",
    ['<w:spacing w:line="240" w:lineRule="exact"/>', '<w:spacing w:line="1"/>',
     '<w:ind w:left="5000"/>', '<w:framePr w:x="400" w:y="14000"/>'],
)  # fmt: skip
def test_a_paragraph_on_the_page_is_read(page: Reading, place: str) -> None:
    assert page(runs(SEEN) + paragraph(UNSEEN, place)) == ("Aspirin\nWarfarin", ())


def box(inside: str, *, fill: str = "<a:noFill/>", size: int = 1_800_000, at: int = 0) -> str:
    place = f'<wp:positionH relativeFrom="page"><wp:posOffset>{at}</wp:posOffset></wp:positionH>'
    return (
        f'<w:r><w:drawing><wp:anchor>{place}<wp:extent cx="{size}" cy="{size}"/>'
        f"<a:graphic><a:graphicData><wps:wsp><wps:spPr>{fill}</wps:spPr><wps:txbx>"
        f"<w:txbxContent>{inside}</w:txbxContent></wps:txbx></wps:wsp></a:graphicData></a:graphic>"
        "</wp:anchor></w:drawing></w:r>"
    )


def shape(inside: str, style: str, fill: str = "") -> str:
    return (
        f'<w:r><w:pict><v:shape style="{style}" {fill}><v:textbox><w:txbxContent>{inside}'
        "</w:txbxContent></v:textbox></v:shape></w:pict></w:r>"
    )


DARK = '<a:solidFill><a:srgbClr val="1F4E79"/></a:solidFill>'
IN_WHITE = runs(run(UNSEEN, WHITE))


@pytest.mark.parametrize(
    "drawing",
    [
        box(IN_WHITE),
        box(IN_WHITE, fill='<a:solidFill><a:schemeClr val="bg1"/></a:solidFill>'),
        box(paragraph(UNSEEN), size=0),
        box(paragraph(UNSEEN), at=-9_000_000),
        box(paragraph(UNSEEN), at=12_000_000),
        shape(paragraph(UNSEEN), "visibility:hidden;width:100pt;height:20pt"),
        shape(paragraph(UNSEEN), "width:0;height:20pt"),
        shape(paragraph(UNSEEN), "margin-left:-999pt;width:100pt;height:20pt"),
        shape(IN_WHITE, "width:100pt;height:20pt"),
        shape(IN_WHITE, "width:100pt;height:20pt", 'filled="f" fillcolor="#1f4e79"'),
    ],
)
def test_a_text_box_that_shows_nothing_is_hidden(page: Reading, drawing: str) -> None:
    assert page(runs(SEEN, drawing)) == ("Aspirin", (HIDDEN_TEXT,))


@pytest.mark.parametrize(
    "drawing",
    [
        box(paragraph(UNSEEN)),
        box(IN_WHITE, fill=DARK),
        box(IN_WHITE, fill=""),
        box(paragraph(UNSEEN), at=300_000),
        shape(IN_WHITE, "width:100pt;height:20pt", 'fillcolor="#1f4e79"'),
        shape(paragraph(UNSEEN), "margin-left:20pt;width:100pt;height:20pt"),
        shape(paragraph(UNSEEN), "left:20000;top:-9000;width:3000;height:1"),
    ],
)
def test_a_text_box_on_the_page_is_read(page: Reading, drawing: str) -> None:
    assert page(runs(SEEN, drawing)) == ("Aspirin\nWarfarin", ())


def styled(*rows: str, look: str = "") -> str:
    lines = "".join(f"<w:tr><w:tc>{row}</w:tc>{cell('x')}</w:tr>" for row in rows)
    return f'<w:tbl><w:tblPr><w:tblStyle w:val="Own"/>{look}</w:tblPr>{lines}</w:tbl>' + runs(SEEN)


def table_style(inside: str) -> str:
    return f'<w:style w:type="table" w:styleId="Own">{inside}</w:style>'


DARK_HEAD = (
    '<w:tblStylePr w:type="firstRow"><w:tcPr><w:shd w:fill="1F4E79"/></w:tcPr></w:tblStylePr>'
)
HIDDEN_HEAD = '<w:tblStylePr w:type="firstRow"><w:rPr><w:vanish/></w:rPr></w:tblStylePr>'


@pytest.mark.parametrize(
    ("rows", "style", "look"),
    [
        ((IN_WHITE, runs(SEEN)), "", ""),
        ((paragraph(UNSEEN), runs(SEEN)), "<w:rPr><w:vanish/></w:rPr>", ""),
        ((paragraph(UNSEEN),), HIDDEN_HEAD, '<w:tblLook w:val="0020"/>'),
        ((IN_WHITE,), DARK_HEAD, ""),
        ((runs(SEEN), IN_WHITE), DARK_HEAD, ""),
        ((IN_WHITE,), DARK_HEAD, '<w:tblLook w:val="0000"/>'),
    ],
)
def test_words_that_the_style_of_a_table_hides_are_left_out(
    page: Reading, rows: tuple[str, ...], style: str, look: str
) -> None:
    text, warnings = page(styled(*rows, look=look), styles=table_style(style))

    assert (UNSEEN in text, HIDDEN_TEXT in warnings) == (False, True)


@pytest.mark.parametrize("look", ['<w:tblLook w:val="0020"/>', '<w:tblLook w:firstRow="1"/>'])
def test_white_words_on_the_dark_heading_of_a_table_style_are_read(
    page: Reading, look: str
) -> None:
    text, warnings = page(styled(IN_WHITE, look=look), styles=table_style(DARK_HEAD))

    assert (UNSEEN in text, warnings) == (True, ())


def test_rows_and_merged_cells_without_a_place_are_hidden(page: Reading) -> None:
    flat = '<w:trPr><w:trHeight w:val="1" w:hRule="exact"/></w:trPr>'
    merged = cell("Na", '<w:vMerge w:val="restart"/>') + cell("140")
    below = cell(UNSEEN, "<w:vMerge/>") + cell("135")
    rows = f"<w:tr>{flat}{cell(UNSEEN)}</w:tr><w:tr>{merged}</w:tr><w:tr>{below}</w:tr>"

    assert page(f"<w:tbl>{rows}</w:tbl>") == ("Na\t140\n\t135", (HIDDEN_TEXT,))


def test_a_style_is_followed_to_its_last_base(page: Reading) -> None:
    def style(number: int, inside: str) -> str:
        return f'<w:style w:type="character" w:styleId="S{number}">{inside}</w:style>'

    chain = "".join(style(n, f'<w:basedOn w:val="S{n + 1}"/>') for n in range(40))
    styles = chain + style(40, '<w:basedOn w:val="S0"/><w:rPr><w:vanish/></w:rPr>')

    found = page(runs(SEEN, run(UNSEEN, '<w:rStyle w:val="S0"/>')), styles=styles)

    assert found == ("Aspirin", (HIDDEN_TEXT,))


BOX = (
    "<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val='{}'/></w14:checkbox></w:sdtPr>"
    "<w:sdtContent><w:r><w:rPr>{}</w:rPr><w:t>{}</w:t></w:r></w:sdtContent></w:sdt>"
)
WORD_ART = (
    "<w:r><w:pict><v:shape style='visibility:hidden'><v:textpath string='Warfarin'/></v:shape>"
    "</w:pict></w:r>"
)
LIST = (
    "<w:r><w:rPr><w:vanish/></w:rPr><w:fldChar w:fldCharType='begin'><w:ffData><w:ddList>"
    "<w:listEntry w:val='Warfarin'/></w:ddList></w:ffData></w:fldChar></w:r>"
    "<w:r><w:fldChar w:fldCharType='end'/></w:r>"
)


@pytest.mark.parametrize(
    "hidden",
    [
        BOX.format(1, "<w:vanish/>", "☒"),
        LIST,
        '<w:r><w:rPr><w:vanish/></w:rPr><w:footnoteReference w:id="2"/></w:r>',
        shape(paragraph(UNSEEN), "width:9pt;height:9pt").replace(
            "<w:r>", "<w:r><w:rPr><w:vanish/></w:rPr>", 1
        ),
        WORD_ART,
    ],
)
def test_a_hidden_run_hides_whatever_it_holds(page: Reading, hidden: str) -> None:
    notes = f'<w:footnote w:id="2">{paragraph(UNSEEN)}</w:footnote>'

    assert page(runs(SEEN, hidden), footnotes=notes) == ("Aspirin", (HIDDEN_TEXT,))


def test_the_hidden_number_of_a_list_is_no_text(page: Reading) -> None:
    level = (
        '<w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="Warfarin 5 mg"/>{}</w:lvl>'
    )
    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{level.format("<w:rPr><w:vanish/></w:rPr>")}'
        '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )
    place = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr>'

    assert page(paragraph("Aspirin", place), numbering=numbering) == ("Aspirin", ())


@pytest.mark.parametrize(
    ("state", "sign", "read"),
    [(1, "☐", "[ ]"), (0, "☒", "[x]"), (1, "☒", "[x]"), (0, "☐", "[ ]"), (1, "●", "[x]")],
)
def test_a_check_box_is_read_as_its_sign_on_the_page(
    page: Reading, state: int, sign: str, read: str
) -> None:
    assert page(runs(BOX.format(state, "", sign), run(" Fever"))) == (f"{read} Fever", ())


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ('xmlns:zz="urn:zz"', "Aspirin Insulin"),
        ('xmlns:zz="http://schemas.microsoft.com/office/word/2010/wordml"', "Aspirin Warfarin"),
    ],
)
def test_of_alternatives_the_one_is_read_that_word_shows(
    page: Reading, names: str, text: str
) -> None:
    choice = f'<mc:Choice {names} Requires="zz">{run(UNSEEN)}</mc:Choice>'
    fallback = f"<mc:Fallback>{run('Insulin')}</mc:Fallback>"

    found = page(runs(SEEN, f"<mc:AlternateContent>{choice}{fallback}</mc:AlternateContent>"))

    assert found == (text, ())


@pytest.mark.parametrize(
    ("lost", "warning"),
    [
        (runs('<w:r><w:fldChar w:fldCharType="begin"/></w:r>', run(UNSEEN)), PARTLY_READ),
        (f'<foo xmlns="urn:foo">{paragraph(UNSEEN)}</foo>', PARTLY_READ),
        (runs(f'<foo xmlns="urn:foo">{run(UNSEEN)}</foo>'), PARTLY_READ),
        (runs(f"<w:r><w:drawing><a:t>{UNSEEN}</a:t></w:drawing></w:r>"), PARTLY_READ),
        (runs('<w:subDoc r:id="rId9"/>'), ATTACHMENTS),
    ],
)
def test_text_that_is_not_read_is_reported(page: Reading, lost: str, warning: str) -> None:
    assert page(runs(SEEN) + lost) == ("Aspirin", (warning,))


def test_fields_in_fields_and_phonetic_signs_are_no_lost_text(page: Reading) -> None:
    def sign(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    inner = [sign("begin"), sign("separate"), run("Hart"), sign("end")]
    outer = [sign("begin"), *inner, sign("separate"), run("Mr Hart"), sign("end")]
    ruby = f"<w:r><w:ruby><w:rt>{run('a')}</w:rt><w:rubyBase>{run('B')}</w:rubyBase></w:ruby></w:r>"

    assert page(runs(SEEN, *outer, run(" "), ruby)) == ("Aspirin Mr Hart B", ())


def test_two_parts_of_one_name_are_refused(tmp_path: Path) -> None:
    raw = docx_of(
        "Aspirin", raw_parts={"word/Document.xml": b"<w:document xmlns:w='urn:x'></w:document>"}
    )

    with pytest.raises(InputRefused):
        read_in_process(tmp_path, raw, MediaType.DOCX)
