"""A cell of a ruled laboratory table is read in its own column; an empty cell stays empty."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_provider import ask, page


def labs(*lines: str) -> list[FoundEntity]:
    reply = ask(page("LABS\n" + "\n".join(lines) + "\n"))
    return [e for e in reply.entities if e.category == "lab"]


def read(lab: FoundEntity) -> tuple[str | None, ...]:
    return (lab.name, lab.value, lab.unit, lab.reference_range, lab.abnormal_flag)


ORDERS = [
    ("Test\tResult\tUnits", "Zinc\t61\tug/dL", ("Zinc", "61", "ug/dL", None, None)),
    ("Flag\tAnalyte\tResult", "L\tZinc\t61", ("Zinc", "61", None, None, "L")),
    (
        "Ref. Interval\tUnit\tComponent\tYour Value\tAbn",
        "60-130\tug/dL\tZinc\t61\t",
        ("Zinc", "61", "ug/dL", "60-130", None),
    ),
    (
        "Specimen\tLab Code\tInvestigation\tObserved\tUoM\tH/L\tNormal Range",
        "Whole blood\t8812\tZinc\t>61\tug/dL\t↑\tup to 55",
        ("Zinc", ">61", "ug/dL", "up to 55", "↑"),
    ),
    (
        "Collected\tTest Name\tMethod\tRange\tFlag\tResult\tComments\tUnits\tSite",
        "05/17/2025 06:10\tZinc\tICP-MS\t60 to 130\t(L)\t58 ¹\trepeat requested\tug/dL\t02",
        ("Zinc", "58", "ug/dL", "60 to 130", "L"),
    ),
    ("\tResult\t\tUnits", "Zinc\t61\tH\tug/dL", ("Zinc", "61", "ug/dL", None, "H")),
    ("Test\tLow\tHigh\tResult", "Zinc\t60\t130\t61", ("Zinc", "61", None, None, None)),
    (
        "Test\tIn Range\tOut of Range\tUnits",
        "Zinc\t\t58 L\tug/dL",
        ("Zinc", "58", "ug/dL", None, "L"),
    ),
    (
        "Test\tResult\tUnits",
        "HIV-2 RNA\t<40\tcopies/mL",
        ("HIV-2 RNA", "<40", "copies/mL", None, None),
    ),
    (
        "Test\tResult\tRange",
        "Zinc\t61 ug/dL (H)\t60-130 ug/dL",
        ("Zinc", "61", "ug/dL", "60-130", "H"),
    ),
    (
        "Test\tResult\tRange",
        "Lyme titer\t<1:64\t<1:64",
        ("Lyme titer", "<1:64", None, "<1:64", None),
    ),
    (
        "Test\tResult\tRange",
        "Urine ketones\ttrace\tNegative",
        ("Urine ketones", "trace", None, "Negative", None),
    ),
    (
        "Test\tRange\tResult",
        "RPR\tNon-reactive\tReactive",
        ("RPR", "Reactive", None, "Non-reactive", None),
    ),
    ("Test\tResult\tRange", "Zinc\t~~161~~ 61\t60-130", ("Zinc", "61", None, "60-130", None)),
]


@pytest.mark.parametrize(("heading", "row", "expected"), ORDERS)
def test_columns_in_any_order_are_read_by_their_place(
    heading: str, row: str, expected: tuple[str | None, ...]
) -> None:
    (lab,) = labs(heading, row)

    assert read(lab) == expected


@pytest.mark.parametrize(
    ("heading", "row", "expected"),
    [
        ("Test\tResult\tPrevious\tUnits", "Zinc\t\t64\tug/dL", [("64", "historical")]),
        ("Test\tPrevious\tResult\tUnits", "Zinc\t64\t\tug/dL", [("64", "historical")]),
        ("Test\tPrevious\tResult\tUnits", "Zinc\t\t61\tug/dL", [("61", None)]),
        ("Test\tResult\tRange", "D-dimer\t\t<0.50", []),
        ("Test\tResult\tRange", "D-dimer\tTNP\t<0.50", []),
        ("Test\tRange\tResult", "D-dimer\t<0.50", []),
        ("Test\tResult\tRange", "Zinc\t~~161~~\t60-130", []),
    ],
)
def test_a_value_never_moves_to_an_empty_cell(
    heading: str, row: str, expected: list[tuple[str, str | None]]
) -> None:
    assert [(e.value, e.temporality) for e in labs(heading, row)] == expected


@pytest.mark.parametrize(
    ("heading", "row"),
    [
        ("Test\tResult\tUnits\tRange", "Zinc\t61\t60-130"),
        ("Test\tResult\tUnits\tRange", "Zinc\t61\t64\tug/dL\t60-130"),
        ("Test\tResult\tFlag\tRange", "Zinc\t61\tug/dL\t60-130"),
        ("Test\tResult\tUnits\tRange", "Zinc\tug/dL\t61\t60-130"),
        ("Test\tResult\tUnits\tRange", "Zinc\t61 64\tug/dL\t60-130"),
        ("Test\tResult\tUnits\tRange", "Zinc\t60-130\tug/dL\t"),
        ("Test\tResult\tUnits\tRange", "Zinc\t61\tug/dL\t64"),
        ("Test\tResult\tFlag\tRange", "Zinc\t61 H\tL\t60-130"),
        ("Test\tResult\tRange\tComment", "Zinc\t61\t60-130\tentered in error"),
        ("Test\tResult\tRange\tStatus", "Zinc\t61\t60-130\tCanceled"),
        ("Test\tResult\tRange", "Potassium\t5 1\t3.5-5.1"),
    ],
)
def test_a_cell_that_does_not_fit_its_column_makes_the_row_not_understood(
    heading: str, row: str
) -> None:
    (lab,) = labs(heading, row)

    assert lab.rule == "lab.row-not-understood.v1"
    assert read(lab)[1:] == (None, None, None, None)


DATED = [
    (
        ("Test\t03/02/2025\t03/19/2025\tUnits", "Zinc\t64\t61\tug/dL"),
        [("64", "2025-03-02", "historical"), ("61", "2025-03-19", None)],
    ),
    (
        ("Test\t19/03/2025\t02/03/2025", "Zinc\t61\t64"),
        [("61", "2025-03-19", None), ("64", "2025-03-02", "historical")],
    ),
    (
        ("Test\t03/19/2025\t03/02/2025", "Zinc\t\t64"),
        [("64", "2025-03-02", "historical")],
    ),
    (
        ("Test\tPrevious\tPrev Date\tResult", "Zinc\t64\t03/19/2025\t61"),
        [("64", "2025-03-19", "historical"), ("61", None, None)],
    ),
    (
        ("Test\tResult\tPrior (03/19/2025)", "Zinc\t61\t64"),
        [("61", None, None), ("64", "2025-03-19", "historical")],
    ),
    (
        ("Date\tTest\tResult", "03/02/2025\tZinc\t64", "03/19/2025\tZinc\t61"),
        [("64", "2025-03-02", "historical"), ("61", "2025-03-19", None)],
    ),
    (
        ("Date\tZinc\tCopper (ug/dL)", "03/02/2025\t64\t", "03/19/2025\t61\t99"),
        [
            ("64", "2025-03-02", "historical"),
            ("61", "2025-03-19", None),
            ("99", "2025-03-19", None),
        ],
    ),
    (
        ("Labs 03/02/2025:", "Zinc 64 ug/dL", "Labs 03/19/2025:", "Zinc 61 ug/dL"),
        [("64", "2025-03-02", "historical"), ("61", "2025-03-19", None)],
    ),
    (
        ("Test\t06:00\t12:00", "Zinc\t64\t61"),
        [("64", None, None), ("61", None, None)],
    ),
]


@pytest.mark.parametrize(("lines", "expected"), DATED)
def test_the_latest_of_several_results_is_current(
    lines: tuple[str, ...], expected: list[tuple[str, str | None, str | None]]
) -> None:
    found = sorted(labs(*lines), key=lambda e: [x[0] for x in expected].index(e.value or ""))

    assert [(e.value, e.date, e.temporality) for e in found] == expected


@pytest.mark.parametrize(
    "lines",
    [
        ("Test\t05/06/2025\t06/05/2025", "Zinc\t64\t61"),
        ("Date\tTest\tResult", "05/06/2025\tZinc\t64", "06/05/2025\tZinc\t61"),
        ("Date\tZinc\tCopper", "05/06/2025\t64\t99", "06/05/2025\t61\t98"),
    ],
)
def test_results_are_not_understood_if_their_dates_do_not_tell_the_latest(
    lines: tuple[str, ...],
) -> None:
    found = labs(*lines)

    assert found
    assert all(e.value is None and "not-understood" in (e.rule or "") for e in found)


def test_a_cell_that_continues_on_the_next_line_is_joined() -> None:
    name, wide = labs(
        "Test\tResult\tRange",
        "Thyroxine binding\t14\t11-27",
        "globulin",
        "Ferritin\t22\tM: 30-400",
        "\t\tF: 13-150",
    )

    assert read(name) == ("Thyroxine binding globulin", "14", None, "11-27", None)
    assert read(wide) == ("Ferritin", "22", None, "M: 30-400 F: 13-150", None)


def test_a_second_value_below_a_row_makes_the_row_not_understood() -> None:
    (lab,) = labs("Test\tResult\tRange", "Zinc\t61\t60-130", "\t64\t")

    assert lab.value is None


def test_the_quote_of_a_row_contains_all_its_cells() -> None:
    (lab,) = labs("Range\tTest\tResult\tUnits", "60-130\tZinc\t61\tug/dL")

    assert lab.quote == "60-130\tZinc\t61\tug/dL"


@pytest.mark.parametrize(
    "lines",
    [
        (
            "Test\tResult\tUnits\tRange",
            "Drug\tDose\tRoute\tFrequency",
            "furosemide\t20 mg\tIV\tdaily",
        ),
        ("Test\tResult\tUnits\tRange", "Patient: Odile Marchbank\tMRN: 4482"),
    ],
)
def test_another_table_or_a_label_below_a_table_is_no_row(lines: tuple[str, ...]) -> None:
    assert labs(*lines) == []


def test_an_empty_first_cell_between_bars_moves_no_other_cell() -> None:
    (lab,) = labs("Flag | Test | Result", " | Zinc | 61 ug/dL")

    assert read(lab) == ("Zinc", "61", "ug/dL", None, None)


def test_a_result_of_the_donor_is_not_the_patients() -> None:
    (lab,) = labs("Test\tResult\tRange", "Donor HBsAg\tPositive\tNegative")

    assert lab.experiencer == "other"
