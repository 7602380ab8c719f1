"""A laboratory row is read only if every token of the row is explained."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_provider import ask, page

HEADING = "TEST RESULT UNITS REFERENCE"


def labs(row: str, heading: str = HEADING) -> list[FoundEntity]:
    return [e for e in ask(page(f"LABS\n{heading}\n{row}\n")).entities if e.category == "lab"]


@pytest.mark.parametrize(
    ("row", "value", "unit", "interval", "flag"),
    [
        ("Urea 5,4 mmol/l 2,5-7,1", "5,4", "mmol/l", "2,5-7,1", None),
        ("Platelets 212,000 /uL 150,000-400,000", "212,000", "/uL", "150,000-400,000", None),
        ("Anti-dsDNA 1:80 H <1:10", "1:80", None, "<1:10", "H"),
        ("RPR <1:2 <1:2", "<1:2", None, "<1:2", None),
        ("Smooth muscle Ab >=1:320 H <1:20", ">=1:320", None, "<1:20", "H"),
        ("Urine protein 2+ A Negative", "2+", None, "Negative", "A"),
        ("HCV RNA Not detected IU/mL Not detected", "Not detected", "IU/mL", "Not detected", None),
        ("Magnesium L 1.2 mg/dL 1.6-2.6", "1.2", "mg/dL", "1.6-2.6", "L"),
        ("Calcium Critical 6.1 mg/dL 8.6-10.2", "6.1", "mg/dL", "8.6-10.2", "Critical"),
        ("Lipase 412H U/L 13-60", "412", "U/L", "13-60", "H"),
        ("CD4 388 L /mm3 <543", "388", "/mm3", "<543", "L"),
        ("Lipase 412* U/L 13-60", "412", "U/L", "13-60", None),
        ("Lipase 412(H) U/L 13-60", "412", "U/L", "13-60", "H"),
        ("Lipase 412† U/L 13-60", "412", "U/L", "13-60", None),
        ("Lipase 412b U/L 13-60", "412", "U/L", "13-60", None),
        ("Sodium 121 LL* mmol/L 136-145", "121", "mmol/L", "136-145", "LL*"),
        ("Procalcitonin >100.00 H ng/mL <0.10", ">100.00", "ng/mL", "<0.10", "H"),
        ("D-dimer 812 ng/mL DDU <230", "812", "ng/mL DDU", "<230", None),
        ("Neutrophils 3.1 /nL 1.8-7.7", "3.1", "/nL", "1.8-7.7", None),
        ("Erythrocytes 4.5 T/L 4.0-5.5", "4.5", "T/L", "4.0-5.5", None),
        ("WBC 6.2 10*3/mm3 4.0-11.0", "6.2", "10*3/mm3", "4.0-11.0", None),
        ("PT 13.2 sec. 11-13.5", "13.2", "sec.", "11-13.5", None),
        ("Ferritin 22 ng/mL M: 30-400 F: 13-150", "22", "ng/mL", "M: 30-400 F: 13-150", None),
        ("Calcium 9.1 mg/dL [8.6 - 10.2]", "9.1", "mg/dL", "8.6 - 10.2", None),
        ("Free T4 1.1 ng/dL 0.8 - 1.8 (adult)", "1.1", "ng/dL", "0.8 - 1.8", None),
        ("Base Excess -4.2 mmol/L -2.0 - 2.0", "-4.2", "mmol/L", "-2.0 - 2.0", None),
        ("Cortisol 18.3 (08:00) ug/dL 6.2-19.4", "18.3", "ug/dL", "6.2-19.4", None),
        ("AST 88 (slightly hemolyzed) U/L 0-40", "88", "U/L", "0-40", None),
        ("Creatinine 1.0 mg/dL 0.6-1.2 See comment", "1.0", "mg/dL", "0.6-1.2", None),
        ("INR 3.1 H 0.9-1.1 ratio", "3.1", "ratio", "0.9-1.1", "H"),
        ("Tacrolimus 9.1 ng/mL 5.0-15.0", "9.1", "ng/mL", "5.0-15.0", None),
        ("17-OH Progesterone 88 ng/dL <200", "88", "ng/dL", "<200", None),
    ],
)
def test_every_kind_of_cell_is_read_as_printed(
    row: str, value: str, unit: str | None, interval: str | None, flag: str | None
) -> None:
    (lab,) = labs(row)

    assert (lab.value, lab.unit, lab.reference_range, lab.abnormal_flag) == (
        value,
        unit,
        interval,
        flag,
    )


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ("Sodium 131 2 mmol/L 136-145", "131"),
        ("Sodium 131 (L) 3 mmol/L 136-145", "131"),
        ("Sodium 131 [1] mmol/L 136-145", "131"),
        ("Sodium 131 mmol/L 136-145 1", "131"),
        ("Sodium 131 mmol/L 136-145 02", "131"),
        ("Sodium\t131 ⁽ᵃ⁾\tmmol/L\t136-145", "131"),
        ("Sodium\t131 ‡ᵇ\tmmol/L\t136-145", "131"),
        ("Sodium\t131 ᵍ,¹\tmmol/L\t136-145", "131"),
    ],
)
def test_a_footnotes_mark_is_no_part_of_the_value(row: str, value: str) -> None:
    (lab,) = labs(row)

    assert (lab.name, lab.value, lab.reference_range) == ("Sodium", value, "136-145")


@pytest.mark.parametrize(
    "row",
    [
        "Chloride 99 qwx mmol/L 98-107",
        "Chloride 99 104 mmol/L 98-107",
        "Chloride 99 17 mmol/L 98-107",
        "Chloride 99 mmol/L 98-107 mg/dL",
        "Chloride 99 H mmol/L 98-107 L",
        "Novelyte 44 qwx ng/mL <30",
        "WBC 8 5",
    ],
)
def test_a_row_with_an_unexplained_token_has_a_name_and_no_value(row: str) -> None:
    (lab,) = labs(row)

    assert lab.name == row.split()[0]
    assert lab.quote == row
    assert lab.rule == "lab.row-not-understood.v1"
    assert (lab.value, lab.unit, lab.reference_range, lab.abnormal_flag) == (None,) * 4


@pytest.mark.parametrize(
    "row",
    [
        "Chloride See comment mmol/L 98-107",
        "Chloride TNP mmol/L 98-107",
        "Chloride mmol/L 98-107",
        "Ferritin QNS <300",
        "D-dimer ug/mL FEU <0.50",
    ],
)
def test_a_range_is_never_taken_as_the_value(row: str) -> None:
    assert [lab.value for lab in labs(row) if lab.value] == []


EARLIER: list[tuple[str, str, str | None, str | None]] = [
    ("TEST RESULT PREVIOUS UNITS REFERENCE", "Chloride 99 104 mmol/L 98-107", None, None),
    ("TEST RESULT RESULT UNITS REFERENCE", "Chloride 99 104 mmol/L 98-107", None, None),
    ("TEST PRIOR RESULT UNITS REFERENCE", "Chloride 104 99 mmol/L 98-107", None, None),
    (
        "TEST RESULT PRIOR DATE UNITS REFERENCE",
        "Chloride 99 104 11/30/2024 mmol/L 98-107",
        "2024-11-30",
        None,
    ),
    (
        "Test 11/30/2024 03/17/2025 Units Range",
        "Chloride 104 99 mmol/L 98-107",
        "2024-11-30",
        "2025-03-17",
    ),
    (
        "Test 03/17/2025 11/30/2024 Units Range",
        "Chloride 99 104 mmol/L 98-107",
        "2024-11-30",
        "2025-03-17",
    ),
]


@pytest.mark.parametrize(("heading", "row", "day", "own_day"), EARLIER)
def test_an_earlier_result_is_an_entity_of_its_own(
    heading: str, row: str, day: str | None, own_day: str | None
) -> None:
    found = labs(row, heading)

    assert sorted((e.value, e.temporality == "historical", e.date) for e in found) == [
        ("104", True, day),
        ("99", False, own_day),
    ]


def test_a_missing_cell_between_two_columns_of_results_is_not_guessed() -> None:
    found = labs("Chloride 99 mmol/L 98-107", "TEST RESULT PREVIOUS UNITS REFERENCE")

    assert [e.value for e in found] == [None]


@pytest.mark.parametrize(
    ("heading", "row"),
    [
        ("REFERENCE TEST RESULT UNITS", "<0.50 D-dimer 1.2 ug/mL"),
        ("FLAG TEST RESULT UNITS REFERENCE", "H D-dimer 1.2 ug/mL <0.50"),
        ("TEST REFERENCE UNITS RESULT FLAG", "D-dimer <0.50 ug/mL 1.2 H"),
        ("RESULT TEST UNITS REFERENCE", "1.2 D-dimer ug/mL <0.50"),
        ("TEST DATE RESULT UNITS REFERENCE", "D-dimer 03/17/2025 1.2 ug/mL <0.50"),
    ],
)
def test_the_heading_decides_the_order_of_columns(heading: str, row: str) -> None:
    (lab,) = labs(row, heading)

    assert (lab.name, lab.value, lab.reference_range) == ("D-dimer", "1.2", "<0.50")


def test_a_bound_behind_the_unit_may_be_a_value_if_the_heading_says_that() -> None:
    (lab,) = labs("CRP <5.0 mg/L <0.3", "TEST REFERENCE UNITS RESULT")

    assert (lab.value, lab.reference_range) == ("<0.3", "<5.0")


@pytest.mark.parametrize(
    "row",
    [
        "Lactate   212   U/L\n  Dehydrogenase",
        "Parathyroid   48   pg/mL\nHormone",
        "Iron 12 %\nSaturation",
    ],
)
def test_a_name_that_the_next_line_completes_is_read_whole(row: str) -> None:
    (lab,) = labs(row, "")

    assert lab.name == " ".join([row.split()[0], row.split()[-1]])
    assert (lab.value, lab.unit) == (row.split()[1], row.split()[2])


def test_a_word_on_the_next_line_is_no_part_of_another_name() -> None:
    assert labs("Novelyte   48   pg/mL\nHormone", "") == []


RULED = [
    ("TEST\tRESULT\tPREVIOUS\tUNITS", "Chloride\t99\t\tmmol/L", [("99", False)]),
    ("TEST\tRESULT\tPREVIOUS\tUNITS", "Chloride\t\t104\tmmol/L", [("104", True)]),
    ("TEST | RESULT | PRIOR | UNITS", "Chloride | | 104 | mmol/L", [("104", True)]),
    ("TEST | REFERENCE | RESULT", "Chloride | <108 | <99 *", [("<99", False)]),
]


@pytest.mark.parametrize(("heading", "row", "expected"), RULED)
def test_an_empty_cell_of_a_ruled_table_moves_no_other_cell(
    heading: str, row: str, expected: list[tuple[str, bool]]
) -> None:
    assert [(e.value, e.temporality == "historical") for e in labs(row, heading)] == expected


def test_a_date_that_ends_a_sentence_dates_no_table_below() -> None:
    text = (
        "HPI\nInfluenza vaccine was given on\n10/14/2023.\n"
        "LABS\nSodium 139 mmol/L 135-145\nPotassium 4.1 mmol/L 3.5-5.1\n"
    )
    found = [e for e in ask(page(text)).entities if e.category == "lab"]

    assert [(e.date, e.temporality) for e in found] == [(None, None)] * 2


@pytest.mark.parametrize(
    "row",
    [
        "Glucose 10 2 mg/dL 70-99",
        "Creatinine 1,2 mg/dL 0.6-1.3",
        "HSV-7 16 Not detected",
        "Hematocrit 39,5 % 36.0-46.0",
    ],
)
def test_a_split_number_and_two_decimal_signs_are_not_guessed(row: str) -> None:
    assert [lab.value for lab in labs(row) if lab.value] == []


def test_a_letter_before_positive_is_a_blood_group_not_a_flag() -> None:
    (group,) = labs("Blood type A positive")
    (antibody,) = labs("HCV antibody A positive")

    assert (group.value, group.abnormal_flag) == ("A positive", None)
    assert (antibody.value, antibody.abnormal_flag) == ("positive", "A")


def test_a_decimal_sign_that_contradicts_the_other_values_of_the_source_is_not_trusted() -> None:
    found = labs("Zinc 61.5 ug/dL\nCopper 99.1 ug/dL\nIron 8,4 ug/dL")

    assert [lab.value for lab in found] == ["61.5", "99.1", None]


@pytest.mark.parametrize(
    ("heading", "row", "name"),
    [
        ("TEST SPECIMEN RESULT UNITS", "Zinc Whole blood 61 ug/dL", "Zinc"),
        ("TEST METHOD RESULT UNITS", "Zinc Photometric 61 ug/dL", "Zinc"),
        ("", "Pleural fluid LDH 61 U/L", "Pleural fluid LDH"),
        ("", "LDL/HDL Ratio   2.9   <3.5", "LDL/HDL Ratio"),
        ("", "HIV-1 RNA\t212\tcopies/mL", "HIV-1 RNA"),
    ],
)
def test_the_name_ends_where_the_next_column_begins(heading: str, row: str, name: str) -> None:
    (lab,) = labs(row, heading)

    assert lab.name == name


def test_tests_that_are_printed_side_by_side_are_rows_of_their_own() -> None:
    found = labs("Zinc\t61\tug/dL\tCopper\t99\tug/dL", "")

    assert [(lab.name, lab.value, lab.unit) for lab in found] == [
        ("Zinc", "61", "ug/dL"),
        ("Copper", "99", "ug/dL"),
    ]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("Admission Date: 02/06/2024\nDischarge Date: 02/25/2024\n", [None, None]),
        ("Date of Service: 03/14/2024\n", ["historical", None]),
    ],
)
def test_earlier_results_of_the_same_stay_are_no_history(
    head: str, expected: list[str | None]
) -> None:
    text = (
        f"{head}LABS\nLabs 02/07/2024:\nSodium 131 mmol/L 135-145\n"
        "Labs 02/20/2024:\nSodium 138 mmol/L 135-145\n"
    )
    found = [e for e in ask(page(text)).entities if e.category == "lab"]

    assert [e.temporality for e in found] == expected


def test_results_of_a_note_are_no_history_because_a_later_note_follows() -> None:
    reply = ask(
        page(
            "She slept well.\nRESULTS 06/03/2025 05:10\nTEST\tRESULT\tUNITS\nZinc\t61\tug/dL\n"
            "PROGRESS NOTE - 06/04/2025\n"
            "RESULTS 06/04/2025 05:20\nTEST\tRESULT\tUNITS\nZinc\t66\tug/dL\n"
        )
    )

    assert [(lab.value, lab.temporality) for lab in reply.entities if lab.category == "lab"] == [
        ("61", None),
        ("66", None),
    ]
