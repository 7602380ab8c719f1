"""Two names of one subject are one entry, and no known drug allergies are a statement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest

from pipeline.clinical.record_lists.allergies import NoDrugAllergies
from pipeline.clinical.record_lists.build import record_lists
from pipeline.clinical.record_lists.items import ContradictionKind, ListedFact
from tests.support.listed_facts import FIRST, condition, fact, lab


@pytest.mark.parametrize(
    "pair",
    [
        (
            condition("Breast cancer", attributes={"laterality": "left", "body_site": "Breast"}),
            condition("Left breast cancer", attributes={"laterality": "left"}, encounter=1),
        ),
        (
            condition("R knee osteoarthritis", attributes={"laterality": "right"}),
            condition("Knee osteoarthritis, right", attributes={"laterality": "right"}),
        ),
        (condition("T2DM"), condition("Type 2 diabetes mellitus", encounter=1)),
        (lab("Hemoglobin", "12.1", "g/dL"), lab("Hgb", "11.8", "g/dL", encounter=1)),
        (lab("HbA1c", "7.2", "%"), lab("Hemoglobin A1c", "7.9", "%", encounter=1)),
    ],
)
def test_two_names_of_one_subject_are_one_entry(pair: tuple[ListedFact, ListedFact]) -> None:
    assert len(record_lists(pair)) == 1


@pytest.mark.parametrize(
    "pair",
    [
        (
            condition("Left breast cancer", attributes={"laterality": "left"}),
            condition("Right breast cancer", attributes={"laterality": "right"}),
        ),
        (
            condition("Left bundle branch block"),
            condition("Right bundle branch block"),
        ),
        (condition("T1DM"), condition("T2DM")),
        (lab("Hemoglobin", "12.1", "g/dL"), lab("HbA1c", "7.2", "%")),
    ],
)
def test_names_that_differ_in_side_or_meaning_are_two_entries(
    pair: tuple[ListedFact, ListedFact],
) -> None:
    assert len(record_lists(pair)) == 2


def no_drug_allergies(*days: date | None, drugs: Sequence[str] = ("penicillin",)) -> Any:
    return NoDrugAllergies(days=days, drugs=frozenset(drugs))


@pytest.mark.parametrize("day", [FIRST, FIRST + timedelta(days=60), None])
def test_no_known_drug_allergies_contradict_an_earlier_drug_allergy(day: date | None) -> None:
    (item,) = record_lists(
        [fact("allergy", "Penicillin")], no_drug_allergies=no_drug_allergies(day)
    )

    (found,) = item.contradictions
    assert found.kind is ContradictionKind.ALLERGIC_AND_TOLERATED
    assert (str(day) in found.message) == (day is not None)


@pytest.mark.parametrize(
    "stated",
    [
        no_drug_allergies(),
        no_drug_allergies(FIRST - timedelta(days=60)),
        no_drug_allergies(FIRST, drugs=["codeine"]),
    ],
)
def test_no_known_drug_allergies_say_nothing_about_food_or_a_later_allergy(stated: Any) -> None:
    (item,) = record_lists([fact("allergy", "Penicillin")], no_drug_allergies=stated)

    assert item.contradictions == ()
