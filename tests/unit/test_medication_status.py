"""Every medication says in FHIR's terms what is taken: status, strength, dose, old dose, step."""

from __future__ import annotations

from enum import Enum
from typing import get_args

import pytest

from pipeline.models import Certainty, Experiencer, MedicationStatus, Temporality
from pipeline.providers import schemas
from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_provider import ask, page


def drugs(text: str) -> list[FoundEntity]:
    return [e for e in ask(page(text)).entities if e.category == "medication"]


@pytest.mark.parametrize(
    ("values", "choices"),
    [
        (schemas.Temporality, Temporality),
        (schemas.Certainty, Certainty),
        (schemas.Experiencer, Experiencer),
        (schemas.MedicationStatus, MedicationStatus),
    ],
)
def test_the_reply_and_the_table_have_the_same_values(values: object, choices: type[Enum]) -> None:
    assert list(get_args(values)) == [str(c) for c in choices]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("MEDICATIONS\nLosartan 50 mg daily", "active"),
        ("HPI\nHe takes losartan 50 mg daily.", "active"),
        ("PLAN\nStop losartan 50 mg.", "stopped"),
        ("MEDICATIONS\nLosartan 50 mg daily (discontinued 01/2024)", "stopped"),
        ("HPI\nStopped losartan for diarrhea.", "stopped"),
        ("PLAN\nSwitch from losartan 50 mg to amlodipine 5 mg.", "stopped"),
        ("PLAN\nHold losartan 50 mg.", "on_hold"),
        ("MEDICATIONS\nLosartan 50 mg daily - on hold", "on_hold"),
        ("PLAN\nConsider losartan 50 mg daily.", "planned"),
        ("PLAN\nLosartan 50 mg daily, to be started if the pressure stays high.", "planned"),
        ("PLAN\nIf the swelling persists, losartan 50 mg daily is enough.", "planned"),
        ("HPI\nShe received enoxaparin prophylaxis.", "active"),
        ("MEDICATIONS\nLosartan 50 mg daily was never started.", "not_started"),
        ("PLAN\nShe declined losartan 50 mg.", "not_started"),
        ("PLAN\nIncrease to losartan 100 mg daily.", "changed"),
        ("PLAN\nLosartan 50 mg reduced to 25 mg daily.", "changed"),
        ("MEDICATIONS\nLosartan 50 mg daily - entered in error", "entered_in_error"),
        ("HPI\nHer husband takes losartan 50 mg daily.", None),
        ("HPI\nLosartan and its side effects were explained.", None),
        ("HPI\nShould we start losartan?", None),
    ],
)
def test_a_medication_has_the_status_that_the_text_says(text: str, status: str | None) -> None:
    assert drugs(text)[0].status == status


def test_a_statement_about_the_next_medication_says_nothing_about_the_one_before() -> None:
    first, second = drugs("MEDICATIONS\nLosartan 50 mg was stopped in May. Not taking warfarin.")

    assert (first.status, second.status) == ("stopped", "not_started")

    first, second = drugs("MEDICATIONS\nTaking: losartan 50 mg. Not taking: glipizide 5 mg")

    assert (first.status, second.status) == ("active", "not_started")


def test_a_medication_taken_long_ago_is_historical() -> None:
    (drug,) = drugs("HPI\nShe took amoxicillin for 10 days last month.")

    assert (drug.status, drug.temporality) == ("stopped", "historical")


@pytest.mark.parametrize(
    ("line", "strength", "dose"),
    [
        ("Cephalexin 250 mg capsule, two capsules twice daily", "250 mg", "two capsules"),
        ("Cefdinir 125 mg/5 mL suspension, 10 mL daily", "125 mg/5 mL", "10 mL"),
        ("Timolol 0.5% solution, 1 drop twice daily", "0.5%", "1 drop"),
        ("Insulin lispro 100 units/mL, 6 units before meals", "100 units/mL", "6 units"),
        ("Losartan 50 mg daily", None, "50 mg"),
    ],
)
def test_what_a_product_contains_is_not_what_is_taken(
    line: str, strength: str | None, dose: str
) -> None:
    (drug,) = drugs(f"MEDICATIONS\n{line}")

    assert (drug.strength, drug.dose) == (strength, dose)


def test_each_step_of_a_taper_is_an_entity_with_its_number() -> None:
    found = drugs("PLAN\nDexamethasone 8 mg daily for 2 days, then 4 mg daily for 2 days.")

    assert [(d.dose, d.step) for d in found] == [("8 mg", 1), ("4 mg", 2)]
    assert [d.step for d in drugs("MEDICATIONS\nLosartan 50 mg daily")] == [None]


def test_all_steps_of_pieces_have_the_strength_of_the_product() -> None:
    found = drugs(
        "MEDICATIONS\nGabapentin 300 mg capsule, 1 capsule in the morning and 2 capsules at night"
    )

    assert [(d.strength, d.dose, d.step) for d in found] == [
        ("300 mg", "1 capsule", 1),
        ("300 mg", "2 capsules", 2),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Losartan 50 mg increased to 100 mg daily.",
        "Increase losartan from 50 mg to 100 mg daily.",
        "Losartan 100 mg daily (was 50 mg).",
    ],
)
def test_the_dose_before_a_change_is_kept_in_the_entity_of_the_new_dose(text: str) -> None:
    (drug,) = drugs(f"PLAN\n{text}")

    assert (drug.dose, drug.previous_dose, drug.status) == ("100 mg", "50 mg", "changed")
    assert "50 mg" in drug.quote
    assert "100 mg" in drug.quote


def test_prophylaxis_behind_a_drug_is_its_purpose() -> None:
    (drug,) = drugs("HOSPITAL COURSE\nShe received enoxaparin prophylaxis.")

    assert drug.certainty != "hypothetical"
