"""Implausible numbers go to a person for review, and plausible numbers are accepted."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1.plausibility import doubts, unquoted


def found(category: str, name: str, value: str, reference_range: str | None = None) -> list[str]:
    entity = FoundEntity.model_validate(
        {
            "category": category,
            "page": 1,
            "quote": "as printed",
            "name": name,
            "value": value,
            "reference_range": reference_range,
        }
    )
    return list(doubts(entity))


@pytest.mark.parametrize(
    ("category", "name", "value", "reference_range"),
    [
        ("lab", "Hemoglobin A1c", "72", "4.0-5.6"),
        ("lab", "HbA1c", "72", None),
        ("lab", "Potassium", "41", "3.5-5.1"),
        ("lab", "Potassium, Serum", "41", None),
        ("lab", "Bilirubin, total", "12", "0.2-1.2"),
        ("vital", "SpO2", "8", None),
        ("vital", "BP", "1180/76", None),
        ("vital", "Temperature", "986", None),
    ],
)
def test_a_number_that_no_living_patient_shows_is_doubted(
    category: str, name: str, value: str, reference_range: str | None
) -> None:
    assert found(category, name, value, reference_range) == ["implausible_value"]


@pytest.mark.parametrize(
    ("category", "name", "value", "reference_range"),
    [
        ("lab", "Hemoglobin A1c", "7.2", "4.0-5.6"),
        ("lab", "Thyroid peroxidase antibody", "214", "<34"),
        ("lab", "Transferrin saturation", "6", "15-55"),
        ("lab", "WBC, urine", "50", "0-5"),
        ("lab", "Microalbumin, urine", "62.5", None),
        ("lab", "Albumin/Creatinine ratio", "71", "0-29"),
        ("lab", "Platelet count", "212,000", "150,000-400,000"),
        ("lab", "Troponin", "0.42", "<0.04"),
        ("lab", "Influenza A antigen", "negative", None),
        ("vital", "BP", "118/76", None),
        ("vital", "Temperature", "98.6", None),
        ("medication", "lisinopril", "9999", None),
    ],
)
def test_a_number_that_disease_explains_is_believed(
    category: str, name: str, value: str, reference_range: str | None
) -> None:
    assert found(category, name, value, reference_range) == []


def reported(quote: str, **parts: str) -> list[str]:
    entity = FoundEntity.model_validate(
        {"category": "medication", "page": 1, "quote": quote, "name": "x", **parts}
    )
    return list(unquoted(entity, quote))


@pytest.mark.parametrize(
    ("quote", "parts"),
    [
        ("lisinopril 20 mg daily", {"dose": "200 mg"}),
        ("Potassium 4.1 mmol/L 3.5-5.1", {"value": "41"}),
        ("Potassium 4.1 mmol/L 3.5-5.1", {"value": "4.1", "reference_range": "3.5-5.7"}),
        ("BP 118/76", {"value": "118/67"}),
        ("Glucose high", {"value": "180"}),
        ("WBC 12,500", {"value": "12.5"}),
    ],
)
def test_a_number_that_its_quote_does_not_show_is_doubted(
    quote: str, parts: dict[str, str]
) -> None:
    assert reported(quote, **parts) == ["number_not_in_quote"]


@pytest.mark.parametrize(
    ("quote", "parts"),
    [
        ("lisinopril 20mg daily", {"dose": "20 mg"}),
        ("levothyroxine .5 mg", {"dose": "0.5 mg"}),
        ("Platelets 250,000 /uL", {"value": "250000"}),
        ("Kalium 4,1", {"value": "4.1"}),
        ("TSH <0.01", {"value": "<0.01"}),
        ("Glucose negative", {"value": "negative"}),
    ],
)
def test_a_number_that_occurs_in_its_quote_is_believed(quote: str, parts: dict[str, str]) -> None:
    assert reported(quote, **parts) == []


@pytest.mark.parametrize(
    ("name", "value", "unit", "reference_range", "doubted"),
    [
        ("Albumin", "41", "g/L", None, False),
        ("Albumin", "41", None, "35-50", False),
        ("Albumin", "41", "g/dL", "3.5-5.0", True),
        ("Creatinine", "88", "umol/L", "60-110", False),
        ("Creatinine", "88", "mg/dL", "0.6-1.3", True),
        ("HbA1c", "51", "mmol/mol", None, False),
        ("Glucose", "5.4", "mmol/L", "3.9-5.5", False),
        ("Hemoglobin", "141", "g/L", "120-160", False),
        ("Hemoglobin", "1410", "g/L", "120-160", True),
    ],
)
def test_the_bounds_of_life_follow_the_unit(
    name: str, value: str, unit: str | None, reference_range: str | None, *, doubted: bool
) -> None:
    entity = FoundEntity.model_validate(
        {
            "category": "lab",
            "page": 1,
            "quote": "as printed",
            "name": name,
            "value": value,
            "unit": unit,
            "reference_range": reference_range,
        }
    )

    assert bool(list(doubts(entity))) is doubted
