"""Short texts of kinds that hospitals print: no value is wrong without a flag."""

from __future__ import annotations

import pytest

from tests.support.enriched_text import facts_of


@pytest.mark.parametrize(
    "text", ["Fundal height 28 cm.", "Chair height 45 cm.", "bed height 50 cm"]
)
def test_the_height_of_something_else_is_no_height_of_the_patient(text: str) -> None:
    assert [each.name for each in facts_of(text) if each.category == "vital"] == []


def test_the_height_of_the_patient_is_read_beside_another_height() -> None:
    found = [f.value for f in facts_of("Fundal height 28 cm. Height 165 cm.")]

    assert found == ["165"]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("HOLD: metformin 1000 mg PO BID until 03/15/2024", "on_hold"),
        ("metformin 1000 mg PO BID until 2019", "stopped"),
        ("Take cephalexin 500 mg PO QID until 03/15/2024", "active"),
    ],
)
def test_the_day_of_an_end_does_not_say_that_a_medication_has_ended(text: str, status: str) -> None:
    # Only the day of the encounter tells whether the end is past.
    (each,) = facts_of(text)

    assert each.status == status
