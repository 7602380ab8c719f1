"""The words of structured attributes and of list entries."""

from __future__ import annotations

from typing import Any

import pytest

from observability.phi.attribute_words import attribute_words, quantity, timing
from observability.phi.list_words import words_of


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"printed": "500mg", "number": "500", "unit": "mg"}, "500 mg"),
        ({"printed": "1-2 tabs", "number": "1", "high": "2", "unit": "{tablet}"}, "1–2 tablet"),
        ({"printed": "<0.50", "number": "0.50", "comparator": "<"}, "< 0.50"),
        ({"printed": "98.8", "number": "98.8", "unit": "[degF]"}, "98.8 °F"),
        ({"printed": "5", "number": "5", "unit": "10*3/uL"}, "5 10³/uL"),
        ({"printed": "9", "number": "9", "unit": "mg/g{creat}"}, "9 mg/g creat"),
        ({"printed": "60", "number": "60", "unit": "mL/min/{1.73_m2}"}, "60 mL/min/1.73 m²"),
        ({"printed": "a few"}, "a few (as printed)"),
        ({"printed": "7", "number": "1E+2", "unit": "mg"}, "100 mg"),
    ],
)
def test_a_quantity_is_number_and_unit_or_the_printed_text(
    value: dict[str, Any], words: str
) -> None:
    assert quantity(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"frequency": "1", "period": "1", "period_unit": "d"}, "once a day"),
        ({"frequency": "3", "period": "1", "period_unit": "d", "when": ["AC"]},
         "3 times a day, before meals"),
        ({"frequency": "1", "period": "8", "period_unit": "h"}, "every 8 hours"),
        ({"frequency": "1", "period": "4", "period_max": "6", "period_unit": "h",
          "as_needed": True}, "every 4–6 hours, as needed"),
        ({"frequency": "1", "frequency_max": "2", "period": "1", "period_unit": "h"},
         "1–2 times an hour"),
        ({"count": 1}, "once only"),
        ({"printed": "as directed"}, "as directed (as printed)"),
    ],
)  # fmt: skip
def test_a_timing_is_times_per_period_or_the_printed_text(
    value: dict[str, Any], words: str
) -> None:
    assert timing(value) == words


def test_attributes_keep_the_order_of_the_model_and_hide_nothing() -> None:
    said = attribute_words(
        "medication",
        {
            "odd": "kept",
            "route": "oral",
            "printed_route": "PO",
            "dose": {"printed": "5 mg", "number": "5", "unit": "mg"},
            "ingredient": "warfarin",
            "strength": [],
            "status": "on_hold",
        },
    )

    assert said == (
        ("ingredient", "warfarin"),
        ("dose", "5 mg"),
        ("route", "oral"),
        ("status", "on hold"),
        ("odd", "kept"),
    )


def test_a_computed_flag_and_a_range_are_words() -> None:
    said = attribute_words(
        "lab",
        {
            "computed_flag": "H",
            "reference_range": {"printed": "0-5", "low": "0", "high": "5"},
            "printed_route": "PO",
        },
    )

    assert said == (
        ("reference range", "0–5"),
        ("flag (computed)", "high (H)"),
        ("route", "PO (as printed)"),
    )


def test_an_entry_says_onset_denials_and_each_of_several_regimens() -> None:
    problem = {"status": "active", "onsets": ["2019", "2020"], "denied": 1}
    regimens = [
        {"dose": {"printed": "40 mg"}, "route": "oral", "date": "2024-06-17"},
        {"dose": {"printed": "80 mg"}, "status": "on_hold", "date": "2024-06-17"},
    ]

    assert words_of("problem", problem) == "active, since 2019 or 2020, denied in 1 other statement"
    assert words_of("medication", {"regimens": regimens}) == (
        "40 mg oral on 2024-06-17 | 80 mg; on hold on 2024-06-17"
    )
    assert (
        words_of("medication", {"regimens": [{"planned": True, "date": "2024-06-17"}]})
        == "planned on 2024-06-17"
    )
    assert words_of("medication", {"current": regimens[0], "regimens": regimens}) == (
        "40 mg oral on 2024-06-17"
    )
