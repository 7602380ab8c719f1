"""Implausible numbers go to a person for review, and plausible numbers are accepted."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1.plausibility import doubts


def found(
    category: str,
    name: str,
    value: str,
    reference_range: str | None = None,
    unit: str | None = None,
) -> list[str]:
    entity = FoundEntity.model_validate(
        {
            "category": category,
            "page": 1,
            "quote": "as printed",
            "name": name,
            "value": value,
            "reference_range": reference_range,
            "unit": unit,
        }
    )
    return list(doubts(entity))


@pytest.mark.parametrize(
    ("category", "name", "value", "reference_range"),
    [
        ("lab", "Hemoglobin A1c", "72", "4.0-5.6"),
        ("lab", "Potassium", "41", "3.5-5.1"),
        ("lab", "Potassium, Serum", "41", None),
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


def test_a_number_without_a_unit_that_fits_another_unit_has_an_unusual_size() -> None:
    assert found("lab", "HbA1c", "72", None) == ["unusual_size"]
    assert found("lab", "Albumin", "38", None) == ["unusual_size"]


def test_a_number_far_above_its_range_is_doubted_without_bounds_of_its_analyte() -> None:
    assert found("lab", "Bilirubin, total", "12", "0.2-1.2") == ["unusual_size"]


@pytest.mark.parametrize(
    ("name", "value", "unit", "reference_range"),
    [
        ("RPR titer", "1:64", None, "<1:1"),
        ("ANA", "<1:80", "titer", None),
        ("Protein, urine", "3+", None, None),
        ("Albumin", "38", "g/L", "35-50"),
        ("Albumin", "38", None, "35-50"),
        ("Albumin", "41.2", "mg/L", None),
        ("Hemoglobin", "132", "g/L", None),
        ("Creatinine", "640", "µmol/L", "60-110"),
        ("Calcium", "1.19", "mmol/L", None),
        ("Hemoglobin A1c", "58", "mmol/mol", None),
        ("Hematocrit", "0.41", None, None),
        ("WBC", "11,200", "/µL", None),
        ("Platelets", "212", "10³/µL", None),
        ("pH", "5.5", None, None),
    ],
)
def test_a_bound_applies_only_to_its_own_unit(
    name: str, value: str, unit: str | None, reference_range: str | None
) -> None:
    assert found("lab", name, value, reference_range, unit) == []


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("Albumin", "380", "g/L"),
        ("Albumin", "38", "g/dL"),
        ("Creatinine", "6400", "umol/L"),
        ("Calcium", "11.9", "mmol/L"),
    ],
)
def test_a_value_outside_the_bounds_of_its_unit_is_doubted(
    name: str, value: str, unit: str
) -> None:
    assert found("lab", name, value, None, unit) == ["implausible_value"]


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
    assert bool(found("lab", name, value, reference_range, unit)) is doubted
