"""Every attribute of an entity occurs in its quote or in the row of the quote, or is flagged."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.providers.schemas import FoundEntity
from tests.support.pass1_rows import rows_of


def missing(text: str, quote: str | None = None, **fields: Any) -> list[str]:
    """Return the attributes that the page does not show."""
    entity = {"category": "lab", "page": 1, "quote": quote or text, "name": "Ferritin", **fields}
    (row,) = rows_of([FoundEntity.model_validate(entity)], text)
    return [
        flag.removeprefix("not_in_quote:")
        for flag in row["review_flags"]
        if flag.startswith("not_in_quote:")
    ]


def drug(text: str, quote: str | None = None, **fields: Any) -> list[str]:
    return missing(text, quote, **{"category": "medication", "name": "Zolamine", **fields})


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("Ferritin < 0.50 ng/mL", {"value": "<0.50"}),
        ("Ferritin less than 0.5", {"value": "<0.5"}),
        ("Ferritin -2.5", {"value": "-2.5"}),
        ("Ferritin 250,000 /uL", {"value": "250000"}),
        ("Ferritin 4,1 g/L", {"value": "4.1"}),
        ("Ferritin 1.234,5", {"value": "1234.5"}),
        ("Ferritin .5", {"value": "0.5"}),
        ("Ferritin 1 : 64", {"value": "1:64"}),
        ("Ferritin 98 ¹ ng/mL", {"value": "98", "unit": "ng/mL"}),
        ("Ferritin went from 11.0 to 23.7", {"value": "23.7"}),
        ("Ferritin 12 µg/L", {"value": "12", "unit": "mcg/L"}),
        ("Ferritin 5.2 10³/µL", {"value": "5.2", "unit": "K/uL"}),
        ("Ferritin 5.2 x10^3/uL", {"value": "5.2", "unit": "10*3/uL"}),
        ("Ferritin 7.7 10*3/mm3 4.0-9.0", {"value": "7.7", "unit": "10*3/mm3"}),
        ("Ferritin 44 sec. 20-40", {"value": "44", "unit": "sec."}),
        ("Ferritin 12 (H) 3.5 - 5.1", {"value": "12", "reference_range": "3.5-5.1"}),
        ("Ferritin 12 H", {"value": "12", "abnormal_flag": "High"}),
        ("Ferritin not detected", {"value": "Not detected"}),
        ("Ferritin 12 on 03/04/2025", {"value": "12", "date": "2025-03-04"}),
        ("Ferritin 12 on Mar 4, 2025", {"value": "12", "date": "2025-03-04"}),
    ],
)
def test_another_spelling_of_the_same_result_is_believed(text: str, fields: dict[str, Any]) -> None:
    assert missing(text, **fields) == []


@pytest.mark.parametrize(
    ("text", "fields", "attribute"),
    [
        ("Ferritin <0.50", {"value": "0.50"}, "value"),
        ("Ferritin 0.50", {"value": "<0.50"}, "value"),
        ("Ferritin > 20.00 <0.50", {"value": "20.00"}, "value"),
        ("Ferritin less than 0.5", {"value": "0.5"}, "value"),
        ("Ferritin -2.5", {"value": "2.5"}, "value"),
        ("Ferritin 10", {"value": "1.0"}, "value"),
        ("Ferritin 7.2", {"value": "72"}, "value"),
        ("Ferritin 98 ¹", {"value": "981"}, "value"),
        ("Ferritin 12 3.5-5.1", {"value": "3.5"}, "value"),
        ("Ferritin 12 <5", {"value": "<5", "reference_range": "<5"}, "value"),
        ("Ferritin 1:64", {"value": "64"}, "value"),
        ("Ferritin 2+", {"value": "2"}, "value"),
        ("Ferritin ~~41~~ 14", {"value": "41"}, "value"),
        ("Ferritin 12 mg/L", {"value": "12", "unit": "mcg/L"}, "unit"),
        ("Ferritin 12 mg/dL", {"value": "12", "unit": "mg"}, "unit"),
        ("Ferritin 12 mg/dL (1.3 mmol/L)", {"value": "12", "unit": "mmol/L"}, "unit"),
        ("Ferritin 12 3.5-5.1", {"value": "12", "reference_range": "3.5-5.7"}, "reference_range"),
        ("Ferritin 12 H", {"value": "12", "abnormal_flag": "L"}, "abnormal_flag"),
        ("Ferritin 12 on 03/04/2025", {"value": "12", "date": "2025-03-05"}, "date"),
        ("Ferritin 12", {"value": "12", "name": "Transferrin"}, "name"),
    ],
)
def test_a_result_that_the_page_does_not_show_is_named(
    text: str, fields: dict[str, Any], attribute: str
) -> None:
    assert missing(text, **fields) == [attribute]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("Zolamine 75 mcg PO BID", {"dose": "75 µg", "route": "by mouth"}),
        ("Zolamine 20mg twice daily", {"dose": "20 mg", "frequency": "BID"}),
        ("Zolamine 5 mg q6h prn pain", {"dose": "5 mg", "frequency": "every 6 hours as needed"}),
        ("Zolamine 5 mg QHS", {"frequency": "daily at bedtime"}),
        ("Zolamine 500 mg capsule, two capsules TDS", {"strength": "500 mg", "dose": "2 capsules"}),
        ("Zolamine half a tablet daily", {"dose": "0.5 tablet", "frequency": "daily"}),
        ("Zolamine 1-0-1", {"frequency": "1-0-1"}),
        ("Zolamine 10 mg -> 20 mg daily", {"dose": "20 mg", "previous_dose": "10 mg"}),
        ("Zolamine ~~10 mg~~ 20 mg", {"dose": "20 mg", "previous_dose": "10 mg"}),
    ],
)
def test_another_spelling_of_the_same_directions_is_believed(
    text: str, fields: dict[str, Any]
) -> None:
    assert drug(text, **fields) == []


@pytest.mark.parametrize(
    ("text", "fields", "attribute"),
    [
        ("Zolamine 75 mcg daily", {"dose": "75 mg"}, "dose"),
        ("Zolamine 20 mg", {"dose": "200 mg"}, "dose"),
        ("Zolamine 10-20 mg", {"dose": "20 mg"}, "dose"),
        ("Zolamine 40 mg/0.4 mL", {"dose": "40 mg"}, "dose"),
        ("Zolamine ~~10 mg~~ 20 mg", {"dose": "10 mg"}, "dose"),
        ("Zolamine 20 mg twice daily", {"frequency": "daily"}, "frequency"),
        ("Zolamine 20 mg daily", {"frequency": "QID"}, "frequency"),
        ("Zolamine 20 mg q12h", {"frequency": "q2h"}, "frequency"),
        ("Zolamine 20 mg daily", {"frequency": "daily as needed"}, "frequency"),
        ("Zolamine 20 mg PO", {"route": "IV"}, "route"),
        ("Zolamine 500 mg tablet", {"strength": "50 mg"}, "strength"),
        ("Zolamine 20 mg", {"previous_dose": "10 mg"}, "previous_dose"),
    ],
)
def test_directions_that_the_page_does_not_show_are_named(
    text: str, fields: dict[str, Any], attribute: str
) -> None:
    assert drug(text, **fields) == [attribute]


def test_a_short_quote_is_completed_by_its_row_up_to_the_next_drug() -> None:
    text = "Zolamine 20 mg daily, Brevanol 5 mg BID"

    assert drug(text, "Zolamine", dose="20 mg", frequency="daily") == []
    both = [
        FoundEntity(category="medication", page=1, quote=n, name=n, dose=d)
        for n, d in (("Zolamine", "5 mg"), ("Brevanol", "20 mg"))
    ]
    assert [row["review_flags"] for row in rows_of(both, text)] == [["not_in_quote:dose"]] * 2


def test_a_quote_that_states_a_dose_takes_none_from_the_rest_of_the_row() -> None:
    text = "Zolamine 40 mg for 3 days, then 20 mg for 3 days"

    assert drug(text, "Zolamine 40 mg", dose="20 mg") == ["dose"]
    assert drug(text, "Zolamine 40 mg", dose="40 mg") == []


def test_name_and_unit_of_a_cell_come_from_the_heading_of_its_column() -> None:
    text = "Day\tBP (mmHg)\tHR (bpm)\nMonday\t126/73\t79"

    def cell(name: str, unit: str) -> list[str]:
        return missing(text, "79", category="vital", name=name, value="79", unit=unit)

    assert cell("HR", "bpm") == []
    assert cell("heart rate", "bpm") == []
    assert cell("BP", "mmHg") == ["name", "unit"]


@pytest.mark.parametrize(
    ("date", "shown"),
    [("2025-03-06", True), ("2025-03-07", False), ("2025-04-06", False), ("2024-03-06", False)],
)
def test_a_row_with_day_and_month_takes_the_year_that_is_printed_above(
    date: str, *, shown: bool
) -> None:
    text = "Visit of March 9, 2025\n\nDay\tBP (mmHg)\tHR (bpm)\nMarch 6\t126/73\t79"

    fields: dict[str, Any] = {"category": "vital", "page": 1, "date": date}
    pressure = FoundEntity(quote="126/73", name="BP", value="126/73", **fields)
    rate = FoundEntity(quote="79", name="HR", value="79", **fields)

    flags = [row["review_flags"] for row in rows_of([pressure, rate], text)]

    assert [("not_in_quote:date" in each) for each in flags] == [not shown, not shown]


@pytest.mark.parametrize(
    ("category", "text", "name", "named"),
    [
        ("condition", "HTN, controlled", "hypertension", True),
        ("condition", "hyper-\ntension", "hypertension", True),
        ("condition", "cancer of the breast", "breast cancer", True),
        ("medication", "Tylenol as needed", "acetaminophen", True),
        ("medication", "acetaminophen as needed", "Tylenol", False),
        ("condition", "RBBB", "LBBB", False),
        ("condition", "right bundle branch block", "left bundle branch block", False),
        ("symptom", "dizziness", "syncope", False),
        ("procedure", "sleep study", "craniotomy", False),
        ("medication", "metoprolol succinate 50 mg", "metoprolol", True),
        ("medication", "metoprolol 50 mg", "metformin", False),
    ],
)
def test_a_name_is_printed_or_its_normal_form(
    category: str, text: str, name: str, *, named: bool
) -> None:
    assert missing(text, category=category, name=name) == ([] if named else ["name"])


def test_what_the_page_does_not_show_is_not_accepted() -> None:
    entity = FoundEntity(
        category="medication", page=1, quote="Zolamine 75 mcg", name="Zolamine", dose="75 mg"
    )

    (row,) = rows_of([entity], "Zolamine 75 mcg daily")

    assert (row["accepted"], row["dose"]) == (False, "75 mg")
