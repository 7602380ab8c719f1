"""C-CDA documents become page text: the header of the patient and the narrative, no coded entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.documents.reader import (
    PARTLY_READ,
    TRACKED_CHANGES,
    InputRefused,
    MediaType,
)
from samples.office_files import ccda_of
from tests.support.text_files import read_in_process

IRON = "<tr><td>Iron</td><td>1</td></tr></table></text>"
HEADER = """
<title>Progress Note</title><effectiveTime value="20240709101500-0500"/>
<recordTarget><patientRole><id root="1.2" nullFlavor="UNK"/><id root="1.3" extension="MRN-77"/>
<patient><name><given>Lena</given><given>M</given><family>Hart</family></name>
<administrativeGenderCode code="F"/><birthTime value="19610304"/></patient></patientRole>
</recordTarget>
<author><assignedAuthor><assignedPerson><name>Dr. Olsen</name></assignedPerson></assignedAuthor>
</author>
<componentOf><encompassingEncounter><effectiveTime><low value="20240709"/><high value="20240711"/>
</effectiveTime></encompassingEncounter></componentOf>
"""


def page_of(folder: Path, *sections: str, header: str = "") -> tuple[list[str], tuple[str, ...]]:
    """Return lines and warnings of the only page."""
    (page,) = read_in_process(folder, ccda_of(*sections, header=header), MediaType.CCDA)
    return page.text.splitlines(), page.warnings


def test_the_header_of_the_patient_begins_the_page(tmp_path: Path) -> None:
    lines, _ = page_of(tmp_path, "<title>PLAN</title><text>Rest.</text>", header=HEADER)

    assert lines == [
        "Progress Note", "Patient: Lena M Hart", "DOB: 1961-03-04", "Sex: Female", "MRN: MRN-77",
        "Document date: 2024-07-09 10:15", "Date of service: 2024-07-09 to 2024-07-11",
        "Author: Dr. Olsen", "PLAN", "Rest.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("section", "lines", "warnings"),
    [
        (
            ("<title>RESULTS</title><text><table><thead><tr><th>Test</th><th>Value</th>"
            "<th>Flag</th></tr></thead><tbody><tr><td>Sodium</td><td>140</td><td/></tr>"
            "<tr><td rowspan='2'>K</td><td>5.9</td><td>H</td></tr>"
            "<tr><td>4.1</td><td>N</td></tr></tbody></table></text>"),
            ["RESULTS", "Test\tValue\tFlag", "Sodium\t140", "K\t5.9\tH", "\t4.1\tN"], (),
        ),
        (
            ("<title>MEDS</title><text><list listType='ordered'><caption>Active</caption>"
            "<item>Aspirin 81 mg</item><item>Iron</item></list></text>"),
            ["MEDS", "Active", "1. Aspirin 81 mg", "2. Iron"], (),
        ),
        (
            "<text><paragraph>WBC 10<sup>3</sup>/µL<br/>Next</paragraph></text>",
            ["WBC 10³/µL", "Next"], (),
        ),
        (
            ("<text>Take <content revised='delete'>10</content>"
            "<content revised='insert'>5</content> mg</text>"), ["Take 5 mg"], (TRACKED_CHANGES,),
        ),
        (
            "<text>Stop <content styleCode='Strikethrough'>warfarin</content></text>",
            ["Stop ~~warfarin~~"], (),
        ),
        ("<title>ALLERGIES</title><text/>", ["ALLERGIES"], ()),
        ("<text>Scan <renderMultiMedia referencedObject='M1'/></text>", ["Scan"], (PARTLY_READ,)),
        (
            ("<title>PLAN</title><text>Rest.</text><entry><observation><value value='99'/>"
            "</observation></entry>"), ["PLAN", "Rest."], (),
        ),
    ],
)  # fmt: skip
def test_a_narrative_is_read_as_a_person_sees_the_narrative(
    tmp_path: Path, section: str, lines: list[str], warnings: tuple[str, ...]
) -> None:
    assert page_of(tmp_path, section) == (lines, warnings)


def test_a_section_without_information_says_so(tmp_path: Path) -> None:
    raw = ccda_of("<title>PLAN</title>").replace(b"<section>", b"<section nullFlavor='NI'>")

    (page,) = read_in_process(tmp_path, raw, MediaType.CCDA)

    assert page.text.splitlines() == ["PLAN", "No information"]


def test_an_enclosed_body_is_refused(tmp_path: Path) -> None:
    raw = ccda_of().replace(b"structuredBody", b"nonXMLBody")

    with pytest.raises(InputRefused) as refused:
        read_in_process(tmp_path, raw, MediaType.CCDA)

    assert "encloses another file" in refused.value.message


@pytest.mark.parametrize(
    ("section", "text", "warning"),
    [
        ("<title>MEDS</title><entry><act/></entry>", "MEDS", PARTLY_READ),
        ("<title>MEDS</title><text/><entry><act/></entry>", "MEDS", PARTLY_READ),
        (
            "<text><list><item revised='delete'>Warfarin</item><item>Iron</item></list></text>",
            "• Iron",
            TRACKED_CHANGES,
        ),
        (
            "<text><table><tr revised='delete'><td>Warfarin</td></tr>" + IRON,
            "Iron\t1",
            TRACKED_CHANGES,
        ),
        (
            "<text><table><thead revised='delete'><tr><td>Warfarin</td></tr></thead>" + IRON,
            "Iron\t1",
            TRACKED_CHANGES,
        ),
    ],
)
def test_coded_entries_alone_and_deleted_parts_are_reported(
    tmp_path: Path, section: str, text: str, warning: str
) -> None:
    lines, warnings = page_of(tmp_path, section)

    assert (lines[-1], warnings) == (text, (warning,))
    assert not any("Warfarin" in line for line in lines)


@pytest.mark.parametrize(
    "section",
    [
        "<title>ALLERGIES</title><text nullFlavor='NI'/>",
        "<title>ALLERGIES</title><text nullFlavor='X'/>",
    ],
)
def test_a_narrative_with_a_null_flavor_says_so(tmp_path: Path, section: str) -> None:
    assert page_of(tmp_path, section) == (["ALLERGIES", "No information"], ())


def test_each_patient_of_a_document_is_printed(tmp_path: Path) -> None:
    other = (
        "<recordTarget><patientRole><patient><name><given>Omar</given><family>Voss</family></name>"
        "</patient></patientRole></recordTarget>"
    )

    lines, _ = page_of(tmp_path, "<text>Rest.</text>", header=HEADER + other)

    assert [line for line in lines if line.startswith("Patient: ")] == [
        "Patient: Lena M Hart",
        "Patient: Omar Voss",
    ]
