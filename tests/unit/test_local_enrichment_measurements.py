"""Tests of the local answer of Pass 2 about measurements."""

from __future__ import annotations

from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts
from pipeline.providers.local.enrichment.measurements import read


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
