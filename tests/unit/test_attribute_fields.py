"""The form of a correction has each attribute that a person can judge, and no other."""

from __future__ import annotations

import pytest

from observability.phi.attribute_fields import attribute_fields
from pipeline.clinical.attributes import ATTRIBUTES
from pipeline.clinical.facts import EntityFacts
from pipeline.operations.review.attribute_changes import COMPUTED, with_changes

COMPUTED_NAMES = {name for names in COMPUTED.values() for name in names}
OF_THE_PAGE = {"printed_route", "printed_onset", "printed_flag"}


def _lab(value: str) -> EntityFacts:
    return EntityFacts(
        key="e1", category="lab", name="glucose", quote="glucose", page=1, value=value
    )


@pytest.mark.parametrize("category", ATTRIBUTES)
def test_each_attribute_is_a_field_unless_it_is_computed_or_printed(category: str) -> None:
    fields = attribute_fields(category, {})

    names = {each.name.split(".")[1] for each in fields}
    assert names == set(ATTRIBUTES[category].model_fields) - COMPUTED_NAMES - OF_THE_PAGE
    assert not any(each.is_read for each in fields)


def test_a_list_has_room_for_one_more_and_a_blood_pressure_for_two() -> None:
    strengths = [{"printed": "5 mg", "number": "5"}]

    of_drug = {each.name: each for each in attribute_fields("medication", {"strength": strengths})}
    of_vital = {each.name for each in attribute_fields("vital", {"components": strengths})}

    assert of_drug["attributes.strength.0.number"].value == "5"
    assert of_drug["attributes.strength.0.unit"].is_read
    assert not of_drug["attributes.strength.1.number"].is_read
    assert "attributes.strength.2.number" not in of_drug
    assert "attributes.components.1.number" in of_vital
    assert "attributes.components.2.number" not in of_vital


def test_a_new_number_has_the_printed_words_of_its_entity() -> None:
    of = _lab("5,4")

    changed = with_changes(of, {}, {"attributes.value.number": "5.4", "attributes.value.unit": "%"})

    assert changed == {"value": {"printed": "5,4", "number": "5.4", "unit": "%"}}


def test_computed_values_go_with_their_source_unless_the_source_is_another() -> None:
    value = {"printed": "5", "number": "5", "unit": "mg/dL"}
    stored = {"value": value, "converted": {"printed": "5", "number": "9"}, "computed_flag": "H"}
    of = _lab("5")

    by_value = with_changes(of, stored, {"attributes.value.number": "6"})
    by_day = with_changes(of, stored, {"attributes.effective": "2024-05-02"})

    assert by_value == {"value": {**value, "number": "6"}}
    assert by_day == {**stored, "effective": "2024-05-02"}
