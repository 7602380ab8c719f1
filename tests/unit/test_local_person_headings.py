"""Facts below a heading that names another person are never published as the patient's."""

from __future__ import annotations

import pytest

from tests.unit.test_local_provider import ask, page


def persons(text: str) -> dict[str, str | None]:
    return {e.name.lower(): e.experiencer for e in ask(page(text)).entities}


@pytest.mark.parametrize(
    ("text", "name", "person"),
    [
        ("DONOR LABS\nCreatinine 1.0 mg/dL 0.6-1.2\n", "creatinine", "other"),
        ("Donor labs:\nSodium 139 mmol/L\n", "sodium", "other"),
        ("KIDNEY DONOR\nHypertension.\n", "hypertension", "other"),
        ("DONOR INFORMATION\nMedical history: hypertension.\n", "hypertension", "other"),
        ("MOTHER'S MEDICATIONS\nMetformin 500 mg BID\n", "metformin", "family"),
        ("Maternal history:\nGestational diabetes.\n", "gestational diabetes", "family"),
        ("MATERNAL VITALS\nBP 120/80\n", "bp", "family"),
        ("Maternal labs: HIV negative\n", "hiv", "family"),
        ("Partner: gonorrhea.\n", "gonorrhea", "other"),
        ("Father of the baby: sickle cell trait.\n", "sickle cell trait", "family"),
        ("Mother (deceased): asthma.\n", "asthma", "family"),
        ("Household contacts: tuberculosis.\n", "tuberculosis", "other"),
        ("SPOUSE ALLERGIES\nPenicillin - hives\n", "penicillin", "other"),
        (
            "HOSPITAL COURSE\nDelivered by cesarean.\nNEWBORN\nWeight 3.2 kg\n",
            "weight",
            "family",
        ),
    ],
)
def test_a_heading_that_names_another_person_sets_its_part_aside(
    text: str, name: str, person: str
) -> None:
    assert persons(text)[name] == person


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("DONOR LABS\nCreatinine 1.0 mg/dL\nRECIPIENT LABS\nSodium 139 mmol/L\n", "sodium"),
        ("Maternal labs:\nHIV negative\nInfant labs:\nBilirubin 8.2 mg/dL\n", "bilirubin"),
        ("Mother: asthma.\nShe takes lisinopril 10 mg daily.\n", "lisinopril"),
        ("DONOR\nHCV positive\nMEDICATIONS\nTacrolimus 1 mg BID\n", "tacrolimus"),
        ("CONTACT INFORMATION\nPhone 555-0100\nMedications:\nMetformin 500 mg BID\n", "metformin"),
        ("NEWBORN EXAM\nWeight 3.2 kg\n", "weight"),
        ("Partner violence screening: negative. He has gout.\n", "gout"),
        ("Donor site clean. Creatinine 1.0 mg/dL\n", "creatinine"),
    ],
)
def test_a_part_of_another_person_ends_at_the_next_heading(text: str, name: str) -> None:
    assert persons(text)[name] in (None, "patient")


def test_a_donors_medication_has_no_status() -> None:
    (drug,) = ask(page("DONOR MEDICATIONS\nAmlodipine 5 mg daily\n")).entities

    assert (drug.experiencer, drug.status) == ("other", None)


def test_no_known_allergies_of_a_donor_says_nothing_about_the_patient() -> None:
    assert ask(page("DONOR ALLERGIES\nNKDA\n")).no_known_allergies is None


@pytest.mark.parametrize(
    "text", ["LABS\nSodium 139 mmol/L 135-145\n", "VITALS\nBP 120/80\n", "HPI\nHis INR was 2.1.\n"]
)
def test_a_printed_value_is_stated_and_certain(text: str) -> None:
    (found,) = ask(page(text)).entities

    assert (found.negated, found.certainty) == (False, "certain")


def test_the_heart_rate_of_a_fetus_is_not_the_patients() -> None:
    assert persons("VITALS\nFetal heart rate 140 bpm\n") == {"fetal heart rate": "other"}
