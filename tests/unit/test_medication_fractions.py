"""A dose that the text changes by words, a dose of two drugs, and a stop that the text denies."""

from __future__ import annotations

import pytest

from tests.support.generator.published import Row, published


def row_of(text: str, name: str) -> Row:
    return next(row for row in published(text) if row["name"].lower() == name.lower())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("PLAN\nCut amlodipine 10 mg in half.", "amlodipine"),
        ("PLAN\nHalve her carvedilol 25 mg.", "carvedilol"),
        ("PLAN\nReduce atenolol 100 mg by half.", "atenolol"),
        ("PLAN\nDecrease furosemide 80 mg by 25 %.", "furosemide"),
        ("PLAN\nWean dexamethasone by 2 mg every other day from 8 mg to 0.", "dexamethasone"),
        ("PLAN\nTaper clonazepam 1 mg BID by 0.25 mg weekly.", "clonazepam"),
        ("PLAN\nSkip tomorrow's methotrexate 15 mg.", "methotrexate"),
        ("MEDICATIONS\nSertraline 100 mg daily; take half.", "sertraline"),
        ("HPI\nShe takes two of her glipizide 5 mg tablets daily.", "glipizide"),
        ("MEDICATIONS\nEnalapril/hydrochlorothiazide 10/25 mg daily", "hydrochlorothiazide"),
        ("MEDICATIONS\nTramadol/acetaminophen 37.5/325 mg 1 tab q6h", "acetaminophen"),
    ],
)
def test_a_dose_that_the_page_does_not_print_is_not_published(text: str, name: str) -> None:
    found = row_of(text, name)

    assert "row_not_understood" in found["review_flags"]
    assert found["dose"] is None
    assert found["accepted"] is False


@pytest.mark.parametrize(
    "text",
    [
        "PLAN\nDo not stop ticagrelor 90 mg BID.",
        "PLAN\nPatient did not stop ticagrelor 90 mg BID.",
        "PLAN\nNever abruptly discontinue ticagrelor 90 mg BID.",
        "PLAN\nNo need to hold ticagrelor 90 mg BID before the cleaning.",
        "HPI\nShe does not want to stop ticagrelor 90 mg BID.",
        "HPI\nHe is reluctant to stop ticagrelor 90 mg BID.",
    ],
)
def test_a_denied_stop_does_not_stop_a_drug(text: str) -> None:
    found = row_of(text, "ticagrelor")

    assert found["status"] not in ("stopped", "on_hold", "not_started")
    assert found["negated"] is not True


@pytest.mark.parametrize(
    ("text", "name", "dose", "status"),
    [
        ("PLAN\nDouble the atenolol to 50 mg daily.", "atenolol", "50 mg", "changed"),
        ("PLAN\nIncrease glargine by 4 units to 24 units nightly.", "glargine", "24 units", None),
        ("PLAN\nStop ticagrelor 90 mg BID.", "ticagrelor", "90 mg", "stopped"),
        (
            "MEDICATIONS\nTrazodone 50 mg, half a tablet at bedtime",
            "trazodone",
            "half a tablet",
            "",
        ),
        ("PLAN\nContinue allopurinol 300 mg daily.", "allopurinol", "300 mg", "active"),
        (
            "PLAN\nTo prevent recurrent gout, continue allopurinol 300 mg daily.",
            "allopurinol",
            "300 mg",
            "active",
        ),
    ],
)
def test_a_printed_dose_stays(text: str, name: str, dose: str, status: str | None) -> None:
    found = row_of(text, name)

    assert found["dose"] == dose
    assert found["review_flags"] == []
    assert found["certainty"] != "hypothetical"
    assert not status or found["status"] == status
