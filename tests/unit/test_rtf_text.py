"""RTF files become page text: tables pair their values, and deleted text is never present."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.documents.reader import (
    ATTACHMENTS,
    HIDDEN_TEXT,
    PARTLY_READ,
    TRACKED_CHANGES,
    InputRefused,
    MediaType,
)
from samples.office_files import rtf_of
from tests.support.text_files import read_in_process


def pages(folder: Path, body: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return text and warnings of each page."""
    found = read_in_process(folder, rtf_of(body), MediaType.RTF)
    return [(page.text, page.warnings) for page in found]


@pytest.mark.parametrize(
    ("body", "text", "warnings"),
    [
        (r"Bayview\par Name: Hart\tab DOB: 1961\par", "Bayview\nName: Hart\tDOB: 1961", ()),
        (r"Dose 5 \'b5g, 38.5\'b0C, \'bd tablet\par", "Dose 5 µg, 38.5°C, ½ tablet", ()),
        (r"Glucose \u8805?200, \u181?g, \u-10179?\u-8576?\par", "Glucose ≥200, µg, 🚀", ()),
        (r"\uc2 A \u8805\'81\'86 5{\uc0 \u8804 6}\par", "A ≥ 5≤6", ()),
        (r"5 {\f1 m}g, {\f1\'b3} 200\par", "5 μg, ≥ 200", ()),
        (r"{\f2\'e4\'ee\'e7\'e0} 5\par", "доза 5", ()),
        (r"WBC 10{\super 3}/\'b5L, Na 140{\super 1} low\par", "WBC 10³/µL, Na 140 ¹ low", ()),
        (r"1.73 m{\super 2}, CO{\sub 2}\par", "1.73 m², CO₂", ()),
        (r"Take {\v warfarin }rest\par", "Take rest", (HIDDEN_TEXT,)),
        (r"Take {\cf1 warfarin }rest\par", "Take rest", (HIDDEN_TEXT,)),
        (r"Take {\fs3 warfarin }rest\par", "Take rest", (HIDDEN_TEXT,)),
        (r"{\cf1\chcbpat2 Light} on dark\par", "Light on dark", ()),
        (r"Stop {\strike warfarin 5 mg}\par", "Stop ~~warfarin 5 mg~~", ()),
        (r"Take {\deleted 10}{\revised 5} mg\par", "Take 5 mg", (TRACKED_CHANGES,)),
        (r"{\listtext\pard 1.\tab}Aspirin\par", "1. Aspirin", ()),
        (r"{\listtext\f1\'b7\tab}Iron\par", "• Iron", ()),
        (r"10\_20 mg, a\~b, dia\-betes\par", "10-20 mg, a b, diabetes", ()),
        (r"{\field{\*\fldinst DATE 99}{\fldrslt July 9}}, 2024\par", "July 9, 2024", ()),
        (r"{\upr{wrong}{\*\ud right}}\par", "right", ()),
        (r"Seen{\*\unknown hidden 5 mg}\par", "Seen", ()),
        (r"Scan{\pict\picwgoal7000\pichgoal7000 0102}\par", "Scan", (PARTLY_READ,)),
        (r"Logo{\pict\picwgoal700\pichgoal700 0102}\par", "Logo", ()),
        (r"{\object\objemb{\*\objdata 0102}{\result Shown}}\par", "Shown", (ATTACHMENTS,)),
        (r"Note{\*\shpinst{\sp{\sn x}{\sv 1}}{\shptxt Allergy: latex\par}}\par",
         "Note\nAllergy: latex", ()),
    ],
)  # fmt: skip
def test_text_is_read_as_a_person_sees_the_text(
    tmp_path: Path, body: str, text: str, warnings: tuple[str, ...]
) -> None:
    ((found, said),) = pages(tmp_path, body)

    assert (found, said) == (text, warnings)


def row(*cells: str, edges: str = r"\cellx2000\cellx4000\cellx6000", look: str = "") -> str:
    """Return the RTF of a row."""
    return (
        rf"\trowd{look}{edges}\pard\intbl " + "".join(f"{each}\\cell " for each in cells) + "\\row"
    )


def test_a_table_keeps_its_empty_and_wide_cells(tmp_path: Path) -> None:
    body = (
        row("Test", "Flag", "Result")
        + row("Sodium", "", "140")
        + row("Comment", "hemolyzed", edges=r"\cellx4010\cellx6000")
        + r"\pard After\par"
    )

    ((text, _),) = pages(tmp_path, body)

    assert text == "Test\tFlag\tResult\nSodium\t\t140\nComment\t\themolyzed\nAfter"


def test_cells_that_continue_a_cell_are_empty(tmp_path: Path) -> None:
    body = row("Panel", "Na", "140") + row(
        "Panel", "K", "4.1", edges=r"\clvmrg\cellx2000\cellx4000\cellx6000"
    )

    assert pages(tmp_path, body)[0][0] == "Panel\tNa\t140\n\tK\t4.1"


def test_a_table_in_a_table_keeps_its_rows(tmp_path: Path) -> None:
    inner = (
        r"\pard\intbl\itap2 Na\nestcell 140\nestcell"
        r"{\*\nesttableprops\trowd\cellx1000\cellx2000\nestrow}{\nonesttables\par}"
    )
    body = (
        rf"\trowd\cellx3000\cellx6000\pard\intbl Labs\cell {inner}\pard\intbl\itap1\cell\row\pard"
    )

    assert pages(tmp_path, body)[0][0] == "Labs\nNa\t140"


def test_pages_and_running_headers(tmp_path: Path) -> None:
    body = (
        r"{\header Patient: Hart, page {\field{\*\fldinst PAGE}{\fldrslt 9}} of "
        r"{\field{\*\fldinst NUMPAGES}{\fldrslt 9}}\par}"
        r"One{\super 1}{\footnote {\super 1} Hemolyzed.}\par\page Two\par"
        r"\sect\sectd{\header Patient: Olsen\par}Three\par"
    )

    assert [text for text, _ in pages(tmp_path, body)] == [
        "Patient: Hart, page 1 of 3\nOne ¹\n1 Hemolyzed.",
        "Patient: Hart, page 2 of 3\nTwo",
        "Patient: Olsen\nThree",
    ]


@pytest.mark.parametrize("page", ["12345", "99999"])
def test_an_unknown_code_page_is_refused(tmp_path: Path, page: str) -> None:
    with pytest.raises(InputRefused):
        pages(tmp_path, rf"\ansicpg{page} Dose\par")


def test_numbers_that_no_program_writes_do_no_harm(tmp_path: Path) -> None:
    body = r"\row\nestrow\itap-5\intbl a\cell\row\par\cellx-5{\colortbl} b\par"

    assert pages(tmp_path, body)[-1][0].endswith("b")


def test_lost_characters_across_groups_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused):
        pages(tmp_path, r"Dose 5 {\b\u65533?}g\par")
