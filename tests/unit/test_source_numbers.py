"""A source has one decimal sign; a number that two signs can read is flagged if both occur."""

from __future__ import annotations

import pytest

from pipeline.core.types import PageText
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1.source_numbers import SourceNumbers

LAB = "Northgate Community Hospital\n"
CLINIC = "Southmere Family Clinic\n"


def reasons(value: str, *texts: str) -> list[str]:
    pages = {n: PageText(number=n, text=text) for n, text in enumerate(texts, start=1)}
    entity = FoundEntity(category="lab", page=1, quote="Platelets", name="Platelets", value=value)
    return list(SourceNumbers(pages).doubts(entity, 1))


FLAG = ["decimal_sign_contradicts:value"]


@pytest.mark.parametrize(
    ("value", "texts", "expected"),
    [
        ("1,234", ["Glucose 5.4 mmol/L, potassium 4,5 mmol/L"], FLAG),
        ("1.234", ["Glucose 5.4 mmol/L, protein 1.234,5 mg/dL"], FLAG),
        ("1,234", ["Glucose 5.4 mmol/L, sodium 139 mmol/L"], []),
        ("1.234", ["Glucose 5,4 mmol/L, sodium 139 mmol/L"], []),
        ("250,000", ["Hemoglobin 13.5 g/dL. Seen in 1,2 or 3 days."], []),
        ("13.5", ["Glucose 5.4 mmol/L, potassium 4,5 mmol/L"], []),
        ("1,234", [LAB + "Glucose 5.4 mmol/L", CLINIC + "Potassium 4,5 mmol/L"], []),
        ("1,234", [LAB + "Glucose 5.4 mmol/L", LAB + "Potassium 4,5 mmol/L"], FLAG),
        ("1,234", ["25-OH vitamin D 1,25 dihydroxy, glucose 5.4 mmol/L"], []),
    ],
)
def test_a_number_with_two_readings_is_flagged_if_its_source_has_both_decimal_signs(
    value: str, texts: list[str], expected: list[str]
) -> None:
    assert reasons(value, *texts) == expected


def test_the_flag_names_the_attribute() -> None:
    pages = {1: PageText(number=1, text="Glucose 5.4 mmol/L, potassium 4,5 mmol/L")}
    drug = FoundEntity(
        category="medication", page=1, quote="heparin", name="heparin", dose="5.000 units"
    )

    assert list(SourceNumbers(pages).doubts(drug, 1)) == ["decimal_sign_contradicts:dose"]
