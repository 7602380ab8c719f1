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


@pytest.mark.parametrize(
    "text",
    [
        "Hep B #1 given 03/09/2024.",
        "Tetanus (Td) 05/2019, due 05/2029.",
        "Influenza declined 10/2023.",
        "Varicella 2 of 2 on 05/01/2019",
        "Hepatitis B series complete",
    ],
)
def test_a_dose_of_a_vaccine_is_no_disease(text: str) -> None:
    assert [each.name for each in facts_of(text) if each.category == "condition"] == []


@pytest.mark.parametrize("text", ["Hep B.", "Chronic hepatitis B.", "Influenza A.", "Tetanus."])
def test_a_disease_that_has_a_vaccine_is_still_a_disease(text: str) -> None:
    assert [each.category for each in facts_of(text)] == ["condition"]


def test_refills_are_no_rheumatoid_factor() -> None:
    found = facts_of("Metoprolol succ ER 50 mg 1 tab PO qd #30 RF 3.")

    assert [each.category for each in found] == ["medication"]


def test_a_rheumatoid_factor_is_read() -> None:
    assert [(each.name, each.value) for each in facts_of("RF 42 IU/mL.")] == [("RF", "42")]


@pytest.mark.parametrize(
    "text", ["Not taking: simvastatin 20 mg (muscle aches).", "Never started statin (myalgia)."]
)
def test_the_reason_against_a_medication_is_not_denied(text: str) -> None:
    reason = facts_of(text)[-1]

    assert reason.category == "symptom"
    assert reason.negated is None


def test_a_denial_reaches_into_a_parenthesis() -> None:
    found = facts_of("Denies fever (or chills).")

    assert [each.negated for each in found] == [True, True]


def test_another_drug_that_is_tolerated_refutes_no_allergy() -> None:
    (each, *_) = facts_of("Allergies: PCN (hives as child, has since tolerated amoxicillin).")

    assert (each.name, each.negated, each.reaction) == ("PCN", None, "hives as child")


def test_a_tolerated_drug_is_no_part_of_a_reaction() -> None:
    (each, *_) = facts_of("Allergies: codeine (nausea, tolerates hydrocodone without problems)")

    assert each.reaction == "nausea"


def test_an_allergen_that_is_tolerated_since_is_refuted() -> None:
    (each,) = facts_of("Allergies: Cefazolin: rash in infancy, has since tolerated it.")

    assert each.negated is True


def test_an_immunity_is_no_disease() -> None:
    assert [f.name for f in facts_of("Rubella immune.") if f.category == "condition"] == []
