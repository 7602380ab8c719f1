"""Several readings of one vital sign are several entities; a threshold is no result."""

from __future__ import annotations

import pytest

from tests.unit.test_local_provider import ask, page


def readings(text: str, category: str = "vital") -> list[tuple[str | None, str | None]]:
    found = ask(page(text)).entities
    return [(e.value, e.temporality) for e in found if e.category == category]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Pain 8/10, after ketorolac 4/10", ["8/10", "4/10"]),
        ("Pain 8/10 before, 4/10 after ketorolac", ["8/10", "4/10"]),
        ("BP 152/94, after labetalol 131/80", ["152/94", "131/80"]),
        ("HR 118 on arrival; 92 now", ["118", "92"]),
        ("RR 26; 18 on recheck", ["26", "18"]),
        ("BP 128/80; 2. Continue the diet.", ["128/80"]),
    ],
)
def test_each_reading_is_an_entity(text: str, values: list[str]) -> None:
    assert [value for value, _ in readings(f"VITALS\n{text}")] == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Weight: 5 lb 2 oz at birth, now 8 lb 9 oz", ["5 lb 2 oz", "8 lb 9 oz"]),
        ("Weight 2.9 kg at birth, 4.4 kg today", ["2.9", "4.4"]),
    ],
)
def test_a_weight_at_birth_is_an_earlier_weight(text: str, values: list[str]) -> None:
    assert readings(f"VITALS\n{text}") == [(values[0], "historical"), (values[1], None)]


@pytest.mark.parametrize(
    "text",
    [
        "Threshold for transfusion is a hemoglobin of 7.5.",
        "The trigger for dialysis is a potassium of 6.5.",
    ],
)
def test_a_threshold_is_no_result(text: str) -> None:
    assert [value for value, _ in readings(f"PLAN\n{text}", "lab") if value] == []


def test_a_goal_that_was_met_does_not_hide_a_result() -> None:
    text = "HPI\nThe goal for discharge was met, hemoglobin was 9.4 today."

    assert [value for value, _ in readings(text, "lab")] == ["9.4"]


def test_an_earlier_value_with_its_month_and_the_value_of_today_are_two_results() -> None:
    text = "HPI\nHer ferritin was 12 in May 2022 and is 48 today."

    assert readings(text, "lab") == [("12", "historical"), ("48", None)]
