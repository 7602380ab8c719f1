"""Tests of the local answer of Pass 2 about measurements."""

from __future__ import annotations

from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.enrichment.measurements import read
from tests.support.enriched_text import enriched_in


def test_a_measurement_keeps_the_printed_attributes_of_pass_1() -> None:
    facts = EntityFacts(
        key="e1",
        category="lab",
        name="Glucose",
        quote="Glucose 126 H mg/dL 70-99",
        page=1,
        value="126",
        unit="mg/dL",
        reference_range="70-99",
        abnormal_flag="H",
        dose="5 mg",
    )

    assert read(facts, Evidence(quote=facts.quote)) == {
        "value": "126",
        "unit": "mg/dL",
        "reference_range": "70-99",
        "abnormal_flag": "H",
    }


_ROWS = "LABS\nTEST RESULT UNITS REFERENCE\n"


def _numbers(text: str) -> dict[str, str | None]:
    return {
        facts.name: (found.attributes.get("value") or {}).get("number")
        for facts, found in enriched_in(text)
        if facts.category == "lab"
    }


def test_the_page_of_a_result_proves_its_decimal_sign() -> None:
    point = f"{_ROWS}Potassium 4.4 mmol/L 3.5-5.1\nBNP 2,480 pg/mL <100\n"
    comma = f"{_ROWS}Potassium 4,4 mmol/L 3,5-5,1\nBNP 2.480 pg/mL <100\n"
    both = f"{_ROWS}Potassium 4,4 mmol/L 3,5-5,1\nUrea 6.1 mmol/L 2.5-7.8\nBNP 2,480 pg/mL <100\n"
    none = f"{_ROWS}BNP 2,480 pg/mL <100\n"

    assert _numbers(point) == {"Potassium": "4.4", "BNP": "2480"}
    assert _numbers(comma) == {"Potassium": "4.4", "BNP": "2480"}
    assert _numbers(both)["BNP"] is None
    assert _numbers(none) == {"BNP": None}
