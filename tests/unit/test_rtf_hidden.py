"""Text of an RTF file that no reader of paper sees is left out with a warning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.documents.reader import HIDDEN_TEXT, TRACKED_CHANGES, MediaType
from tests.support.text_files import read_in_process

Reading = Callable[[str], tuple[str, tuple[str, ...]]]
HEAD = (
    r"{\rtf1\ansi\deff0{\fonttbl{\f0 Arial;}}"
    r"{\colortbl;\red255\green255\blue255;\red0\green0\blue0;\red31\green78\blue121;}"
)
SHAPE = r"{\shp{\*\shpinst%s{\shptxt \pard Warfarin\par}}}"


@pytest.fixture
def page(tmp_path: Path) -> Reading:
    """Return a function: the body of an RTF file → text and warnings of its only page."""

    def read(body: str) -> tuple[str, tuple[str, ...]]:
        raw = f"{HEAD}Aspirin {body}}}".encode("latin-1")
        (found,) = read_in_process(tmp_path, raw, MediaType.RTF)
        return found.text, found.warnings

    return read


@pytest.mark.parametrize(
    "body",
    [
        r"{\v Warfarin}\par",
        r"{\cf1 Warfarin}\par",
        r"{\fs3 Warfarin}\par",
        r"{\highlight2 Warfarin}\par",
        r"{\charscalex1 Warfarin}\par",
        r"{\expndtw-400 Warfarin}\par",
        r"{\expnd-40 Warfarin}\par",
        r"{\dn3000 Warfarin}\par",
        r"\par\pard\sl-1\slmult0 Warfarin\par",
        r"\par\pard\li31000 Warfarin\par",
        r"\par\pard\posx-20000 Warfarin\par",
        r"\par\pard\posy30000 Warfarin\par",
        SHAPE % r"{\sp{\sn fHidden}{\sv 1}}",
        SHAPE % r"\shpleft-9000\shpright-8000\shptop0\shpbottom500",
        SHAPE % r"\shpleft0\shpright0\shptop0\shpbottom500",
    ],
)
def test_words_that_show_nothing_are_left_out(page: Reading, body: str) -> None:
    assert page(body) == ("Aspirin", (HIDDEN_TEXT,))


@pytest.mark.parametrize(
    "body",
    [
        r"{\charscalex90 Warfarin}\par",
        r"{\expndtw-6 Warfarin}\par",
        r"{\dn3000\dn0 Warfarin}\par",
        r"\pard\sl-240\slmult0 Warfarin\par",
        r"\pard\sl1\slmult1 Warfarin\par",
        r"\pard\li31000\pard Warfarin\par",
        r"{\cf1\cb3\chcbpat3 Warfarin}\par",
        r"{\*\mvfmf x}Warfarin\par",
    ],
)
def test_words_on_the_page_are_read(page: Reading, body: str) -> None:
    assert page(body) == ("Aspirin Warfarin", ())


@pytest.mark.parametrize(
    "body",
    [
        SHAPE % r"\shpleft100\shpright3000\shptop0\shpbottom500{\sp{\sn fHidden}{\sv 0}}",
        r"{\*\do\dobxpage\dptxbx{\dptxbxtext\pard Warfarin\par}\dpx0}",
    ],
)
def test_the_text_of_a_shape_is_read(page: Reading, body: str) -> None:
    assert page(body + r"\par") == ("Aspirin\nWarfarin", ())


def test_the_substitute_of_a_shape_is_no_text_of_the_page(page: Reading) -> None:
    shape = r"{\shp{\*\shpinst{\shptxt \pard Box\par}}{\shprslt \pard Warfarin\par}}\par"

    assert page(shape) == ("Aspirin\nBox", ())


def test_text_that_was_moved_away_is_left_out(page: Reading) -> None:
    assert page(r"{\mvf Warfarin}{\mvt Insulin}\par") == ("Aspirin Insulin", (TRACKED_CHANGES,))


def row(cells: str, definition: str = r"\cellx1000\cellx2000", depth: str = "") -> str:
    return rf"\par\trowd{definition}\pard\intbl{depth} {cells}\cell x\cell\row\pard "


@pytest.mark.parametrize(
    ("body", "warning"),
    [
        (row(r"{\cf1 Warfarin}"), HIDDEN_TEXT),
        (row(r"{\cf1 Warfarin}", r"\cellx1000\clcbpat3\cellx2000"), HIDDEN_TEXT),
        (row(r"{\cf3 Warfarin}", r"\clcbpat3\cellx1000\cellx2000"), HIDDEN_TEXT),
        (row("Warfarin", r"\trrh-1\cellx1000\cellx2000"), HIDDEN_TEXT),
        (row("Warfarin", r"\clvmrg\cellx1000\cellx2000"), HIDDEN_TEXT),
        (row("Warfarin", r"\cldel\cellx1000\cellx2000"), TRACKED_CHANGES),
        (row(r"Na\cell\pard\intbl\itap2{\cf1 Warfarin}\nestcell\nestrow\pard"), HIDDEN_TEXT),
    ],
)
def test_words_of_a_cell_that_show_nothing_are_left_out(
    page: Reading, body: str, warning: str
) -> None:
    text, warnings = page(body)

    assert ("Warfarin" in text, warnings) == (False, (warning,))


@pytest.mark.parametrize(
    "body",
    [
        row(r"{\cf1 Warfarin}", r"\clcbpat3\cellx1000\cellx2000"),
        row("Warfarin", r"\trrh-400\cellx1000\cellx2000"),
        row("Warfarin", r"\clvmgf\cellx1000\cellx2000"),
    ],
)
def test_words_of_a_cell_on_the_page_are_read(page: Reading, body: str) -> None:
    assert page(body) == ("Aspirin\nWarfarin\tx", ())


def field_of(form: str, look: str = "") -> str:
    inside = rf"FORMCHECKBOX {{\*\formfield{{{form}{{\*\ffname Check1}}}}}}"
    return rf"{{{look}\field{{\*\fldinst {{{inside}}}}}{{\fldrslt x}}}} Fever\par"


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        (r"\fftype1\ffres1\ffdefres0", "[x]"),
        (r"\fftype1\ffres0\ffdefres1", "[ ]"),
        (r"\fftype1\ffres25\ffdefres1", "[x]"),
        (r"\fftype1\ffres25\ffdefres0", "[ ]"),
        (r"\fftype1", "[ ]"),
        (r"\fftype2\ffres1{\*\ffl Never}{\*\ffl Former}{\*\ffl Current}", "Former"),
        (r"\fftype2\ffres25\ffdefres0{\*\ffl Never}{\*\ffl Former}", "Never"),
    ],
)
def test_the_fields_of_a_form_are_read(page: Reading, form: str, shown: str) -> None:
    assert page(field_of(form)) == (f"Aspirin {shown} Fever", ())


def test_a_hidden_field_of_a_form_is_left_out(page: Reading) -> None:
    text, warnings = page(field_of(r"\fftype1\ffres1", r"\v"))

    assert (text.split(), warnings) == (["Aspirin", "Fever"], (HIDDEN_TEXT,))


def test_the_note_of_a_hidden_sign_is_hidden(page: Reading) -> None:
    assert page(r"{\v 1{\footnote\pard\plain Warfarin\par}}\par") == ("Aspirin", (HIDDEN_TEXT,))


SHEET = r"{\stylesheet{\s1\v Hid;}{\*\cs10 \additive\v Hid;}{\s2 Seen;}{\*\cs11 Seen;}}"


@pytest.mark.parametrize(
    ("body", "is_read"),
    [
        (r"\par\pard\plain \s1 Warfarin\par", False),
        (r"{\cs10 Warfarin}\par", False),
        (r"\par\pard\s1\v0 Warfarin\par", True),
        (r"\par\pard\s1\pard Warfarin\par", True),
        (r"\par\pard\plain \s2 {\cs11 Warfarin}\par", True),
        (r"{\cs10 }Warfarin\par", True),
    ],
)
def test_words_of_a_hidden_style_are_left_out(page: Reading, body: str, is_read: bool) -> None:
    text, warnings = page(SHEET + body)

    assert ("Warfarin" in text, HIDDEN_TEXT in warnings) == (is_read, not is_read)
