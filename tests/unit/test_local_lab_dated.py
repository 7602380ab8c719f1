"""Several laboratory values in a sentence: each has its date, and the latest is current."""

from __future__ import annotations

import pytest

from tests.unit.test_local_provider import ask, page

HEAD = "OFFICE VISIT\nDate of Service: 05/17/2025\n\n"
Reading = tuple[str | None, str | None, str | None]


def labs(text: str) -> list[Reading]:
    reply = ask(page(f"{HEAD}HPI\n{text}\n"))
    return [(e.value, e.date, e.temporality) for e in reply.entities if e.category == "lab"]


OLD, NEW = ("10.4", "2025-05-01", "historical"), ("8.1", "2025-05-03", None)
UNDATED = [("10.4", None, "historical"), ("8.1", None, None)]


@pytest.mark.parametrize(
    "text",
    [
        "Hgb 10.4 (5/1), 8.1 (5/3).",
        "Hgb 10.4 (05/01/2025) and 8.1 (05/03/2025).",
        "Hgb: 5/1 10.4, 5/3 8.1",
        "Hgb 5/1: 10.4; 5/3: 8.1",
        "Hgb\n5/1: 10.4\n5/3: 8.1",
        "Hgb was 10.4 g/dL on May 1 and 8.1 g/dL on May 3.",
        "On 05/01 the hemoglobin was 10.4, on 05/03 8.1.",
        "05/01: Hgb 10.4\n05/03: Hgb 8.1",
    ],
)
def test_each_value_has_its_date(text: str) -> None:
    assert labs(text) == [OLD, NEW]


@pytest.mark.parametrize(
    "text",
    [
        "Hgb 10.4 yesterday, 8.1 today.",
        "Hgb 10.4, today 8.1.",
        "Hgb 10.4 (Monday), 8.1 now.",
        "Hgb was 10.4 in 2023, 8.1 this visit.",
        "Yesterday's Hgb was 10.4; today it is 8.1.",
    ],
)
def test_a_value_of_today_is_current_and_the_others_are_earlier(text: str) -> None:
    assert labs(text) == UNDATED


def test_a_value_without_a_date_is_newer_than_the_dated_values_in_parentheses() -> None:
    assert labs("Hgb 8.1 (10.4 on 5/1).") == [("8.1", None, None), OLD]


def test_values_of_one_day_are_all_current() -> None:
    assert labs("Troponin 0.04 at 06:00, 0.09 at 12:00.") == [
        ("0.04", None, None),
        ("0.09", None, None),
    ]


def test_the_date_before_a_list_holds_for_all_its_tests() -> None:
    assert labs("Labs from 05/10: Na 138, K 4.2.") == [
        ("138", "2025-05-10", None),
        ("4.2", "2025-05-10", None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Hgb 10.4 5/1 8.1 5/3",
        "Hgb 10.4 on 05/01, 8.1 after transfusion, 9.2 on 05/03.",
        "Glucose 412, received 10 units of insulin, then walked, and 188 later.",
        "Potassium 5.9. Repeat 4.4.",
        "Ferritin 5453 ISE 1283",
        "Bilirubin 3.4 (direct 2.1)",
    ],
)
def test_a_further_number_that_is_not_explained_is_not_guessed(text: str) -> None:
    assert labs(text) == [(None, None, None)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("WBC 15.2 with 12% bands.", "15.2"),
        ("LDL 88 (goal <70).", "88"),
        ("Potassium 3.1, given KCl 40 mEq.", "3.1"),
        ("Creatinine 1.4 at 08:30.", "1.4"),
        ("TSH 2.1 (0.4-4.5) on 05/10/2025.", "2.1"),
    ],
)
def test_an_explained_number_behind_a_value_changes_nothing(text: str, value: str) -> None:
    assert [found[0] for found in labs(text)][:1] == [value]


def test_a_struck_value_is_no_value() -> None:
    assert labs("Hgb ~~10.4~~ 8.1") == [("8.1", None, None)]


@pytest.mark.parametrize(
    "text",
    [
        "K 5.9 (lab error).",
        "The potassium of 5.9 belongs to another patient.",
        "Glucose >300 should prompt a call.",
        "Potassium 5.5 is a reason to stop the drug.",
    ],
)
def test_a_value_that_is_taken_back_or_a_threshold_is_no_value(text: str) -> None:
    assert [found for found in labs(text) if found[0]] == []


def test_a_change_behind_a_value_is_no_earlier_value() -> None:
    assert [value for value, _, _ in labs("Cr 2.1 today, up 1.1 from baseline.")] == [None]


def test_a_number_before_a_name_is_not_followed_by_another_value_of_the_name() -> None:
    assert [value for value, _, _ in labs("WBC 15 with 85% neutrophils and 10% bands.")] == ["15"]


def test_results_in_words_have_dates() -> None:
    assert labs("COVID-19 PCR negative on 05/10, positive on 05/14.") == [
        ("negative", "2025-05-10", "historical"),
        ("positive", "2025-05-14", None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "5.2 05/16/2025 [1.4-7.0] Ferritin 88",
        "mmol/L 65878 1.45 Ionized Calcium 1.56 05/01/2025",
        "05/16/2025 3.4-7.0 Uric Acid\n5.2 05/16/2025 Ferritin",
    ],
)
def test_cells_of_a_row_without_a_heading_are_not_read_as_running_text(text: str) -> None:
    assert [found for found in labs(text) if found[0]] == []


def test_a_value_behind_from_is_no_year() -> None:
    assert labs("Troponin T has fallen to 771 from 1984.") == [
        ("771", None, None),
        ("1984", None, "historical"),
    ]
