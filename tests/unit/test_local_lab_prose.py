"""Values in running text: goals, conditions and changes are no values; earlier values are past."""

from __future__ import annotations

import pytest

from tests.unit.test_local_provider import ask, page


def labs(sentence: str, heading: str = "HPI") -> list[tuple[str | None, bool]]:
    return [
        (e.value, e.temporality == "historical")
        for e in ask(page(f"{heading}\n{sentence}\n")).entities
        if e.category == "lab" and e.value
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "Transfuse for Hct below 21.",
        "Will transfuse when hemoglobin drops under 8.",
        "Transfusion threshold: Hgb 7.",
        "LDL goal < 70 mg/dL.",
        "LDL target is 55.",
        "Keep Mg >= 2 and K >= 4.",
        "Maintain glucose under 180.",
        "Aim for ferritin over 100.",
        "Replete phosphorus to 2.5.",
        "Call for glucose greater than 350.",
        "Notify provider of sodium below 125.",
        "If creatinine is above 2, stop the drug.",
        "Hold enoxaparin for platelets under 50.",
        "ANC > 1000 required for chemotherapy.",
        "INR must be below 1.5 before surgery.",
        "Hold for K 5.5 or more.",
        "Insulin 4 units for glucose 250.",
        "Goal INR 2 to 3.",
        "A normal hemoglobin is 13.",
        "Upper limit of normal for ALT is 40.",
        "Example: magnesium 0.8 mg/dL is called to the ward.",
        "For instance, a lactate of 6 mmol/L.",
        "A platelet count of 8 K/uL would require a transfusion.",
        "Family to report glucose of 60.",
    ],
)
def test_a_goal_or_a_condition_is_no_value(sentence: str) -> None:
    assert labs(sentence, "PLAN") == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Creatinine increased by 0.5 mg/dL.",
        "Creatinine rose 0.4 overnight.",
        "Hgb dropped 2 g/dL.",
        "Hgb 2 g/dL lower than last week.",
        "Hgb -2 since yesterday.",
        "Delta troponin 5.",
        "LDL down 40%.",
        "Glucose 140s.",
        "Platelets 150 to 40.",
        "BUN/Cr 20/1.1",
        "A1c 6.1 > 7.4.",
        "Albumin infusion 25 g.",
        "Lithium 300 mg.",
    ],
)
def test_a_change_or_an_inexact_number_is_no_value(sentence: str) -> None:
    assert labs(sentence) == []


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("WBC 15 -> 12 -> 9.", ["15", "12", "9"]),
        ("Lactate 4.2 improved to 2.1.", ["4.2", "2.1"]),
        ("Lactate 4.2 then 2.1.", ["4.2", "2.1"]),
        ("Troponins were <0.01, 0.05, 0.12.", ["<0.01", "0.05", "0.12"]),
        ("Na 131 K 5.2 BUN 40 Cr 2.1", ["131", "5.2", "40", "2.1"]),
        ("A1c 8.2%, above goal of 7%.", ["8.2"]),
        ("She was transfused for hemoglobin 6.5.", ["6.5"]),
        ("Creatinine up to 1.4.", ["1.4"]),
        ("WBC 11.2, 80% neutrophils.", ["11.2"]),
    ],
)
def test_each_reading_is_an_entity_in_the_order_of_the_text(
    sentence: str, expected: list[str]
) -> None:
    assert labs(sentence) == [(value, False) for value in expected]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Prior TSH 8.1.", [("8.1", True)]),
        ("Baseline BUN of 20.", [("20", True)]),
        ("Ferritin was 12 six months ago.", [("12", True)]),
        ("LDL was 160 last year.", [("160", True)]),
        ("Creatinine was 0.9 at baseline.", [("0.9", True)]),
        ("Last LDL 160 in June 2021, now 90.", [("160", True), ("90", False)]),
        ("Previous Hgb 12.1, today 9.4.", [("12.1", True), ("9.4", False)]),
        ("WBC was 15 yesterday and is now 12.", [("15", True), ("12", False)]),
        ("Creatinine up from 0.9 to 1.4.", [("0.9", True), ("1.4", False)]),
        ("BNP 1200 (was 400).", [("1200", False), ("400", True)]),
        ("Last A1c was 7.2.", [("7.2", False)]),
    ],
)
def test_an_earlier_value_is_historical(sentence: str, expected: list[tuple[str, bool]]) -> None:
    assert labs(sentence) == expected


def test_a_value_of_another_person_belongs_to_that_person() -> None:
    found = [e for e in ask(page("HPI\nHer husband's INR was 3.1.\n")).entities if e.value]

    assert [(e.value, e.experiencer) for e in found] == [("3.1", "other")]


def test_a_value_that_a_relative_reports_is_the_patients() -> None:
    found = [e for e in ask(page("HPI\nWife reports glucose 300.\n")).entities if e.value]

    assert [(e.value, e.experiencer) for e in found] == [("300", None)]


@pytest.mark.parametrize(
    "sentence", ["Hgb 7.2 s/p 2 units.", "Cr 2.2 c/o nausea.", "Plt 90 w/o bleeding."]
)
def test_an_abbreviation_with_a_slash_is_no_unit(sentence: str) -> None:
    units = [e.unit for e in ask(page(f"HPI\n{sentence}\n")).entities if e.category == "lab"]

    assert units
    assert set(units) <= {None}
