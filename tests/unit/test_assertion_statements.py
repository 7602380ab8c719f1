"""Findings that are taken back, over, only believed or another person's are not stated."""

from __future__ import annotations

import pytest

from pipeline.core.types import PageSlice
from pipeline.providers.local.engine import detect
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import FoundEntity


def found_in(text: str, name: str) -> FoundEntity:
    page = PageSlice(page=1, start=0, text=f"HPI\n{text}\n")
    reply = detect(
        Question(kind="entities", item_token="a" * 32, include_zones=False, slices=(page,))
    )
    (found,) = [e for e in reply.entities if name in e.name.lower()]
    return found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Malaria is not felt to be present.", "malaria"),
        ("Gout was not thought to be the cause.", "gout"),
        ("She was misdiagnosed with lupus.", "lupus"),
        ("Wrongly labeled as having epilepsy.", "epilepsy"),
        ("The diagnosis of gout was later withdrawn.", "gout"),
        ("Gout was entered in error.", "gout"),
        ("He denies that he has gout.", "gout"),
        ("Endocarditis effectively excluded.", "endocarditis"),
        ("Fever absent, cough present.", "fever"),
    ],
)
def test_a_finding_that_is_taken_back_is_negated(text: str, name: str) -> None:
    assert found_in(text, name).negated is True


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("He had eczema twelve years ago.", "eczema"),
        ("Eczema in infancy, now fully resolved.", "eczema"),
        ("The vertigo has subsided.", "vertigo"),
        ("Vertigo went away after a week.", "vertigo"),
        ("In remission from leukemia.", "leukemia"),
        ("Cystitis treated last month.", "cystitis"),
    ],
)
def test_a_finding_that_is_over_is_historical(text: str, name: str) -> None:
    assert found_in(text, name).temporality == "historical"


@pytest.mark.parametrize(
    ("text", "name", "certainty"),
    [
        ("Worried that she has lupus.", "lupus", "possible"),
        ("He thinks he has gout.", "gout", "possible"),
        ("Initially thought to have malaria, found to have dengue.", "malaria", "possible"),
        ("Malaria?", "malaria", "possible"),
        ("Malaria ruled out, dengue likely.", "dengue", "possible"),
        ("Borderline hypertension.", "hypertension", "possible"),
        ("Referred for possible narcolepsy.", "narcolepsy", "possible"),
        ("Risks include bleeding, sepsis and stroke.", "sepsis", "hypothetical"),
        ("Signs of sepsis were reviewed with him.", "sepsis", "hypothetical"),
    ],
)
def test_a_belief_or_a_risk_is_not_certain(text: str, name: str, certainty: str) -> None:
    assert found_in(text, name).certainty == certainty


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("She was tested for syphilis and was positive.", "syphilis"),
        ("Screened for hepatitis C, came back positive.", "hepatitis c"),
    ],
)
def test_a_positive_test_states_what_was_tested(text: str, name: str) -> None:
    found = found_in(text, name)

    assert found.certainty == "certain"
    assert found.negated is not True


@pytest.mark.parametrize(
    ("text", "name", "person"),
    [
        ("She lives with her brother, a smoker with emphysema.", "emphysema", ("family",)),
        ("His aunt has gout. She has lupus.", "lupus", ("family",)),
        ("The patient and his brother both have measles.", "measles", (None, "patient")),
        ("His cat has ringworm and he has a rash.", "rash", (None, "patient")),
        ("Her uncle had a stroke. She has vertigo.", "vertigo", (None, "patient")),
    ],
)
def test_a_statement_is_about_its_own_person(
    text: str, name: str, person: tuple[str | None, ...]
) -> None:
    found = found_in(text, name)

    assert found.experiencer in person
    assert "not-understood" not in str(found.rule)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Her aunt has gout and she has lupus.", "lupus"),
        ("Her sister has gout; she takes colchicine 0.6 mg daily.", "colchicine"),
        ("The roommate had measles and she has a rash.", "rash"),
    ],
)
def test_a_pronoun_that_can_mean_two_persons_is_not_understood(text: str, name: str) -> None:
    assert str(found_in(text, name).rule).endswith("not-understood.v1")


@pytest.mark.parametrize(
    ("text", "name"), [("Gout not seen.", "gout"), ("Malaria not identified on smear.", "malaria")]
)
def test_a_bare_not_seen_reaches_back(text: str, name: str) -> None:
    assert found_in(text, name).negated is True


@pytest.mark.parametrize(
    "text",
    ["His tenant was diagnosed with gout.", "Her piano teacher died of gout."],
)
def test_any_noun_of_the_patient_that_falls_ill_is_another_person(text: str) -> None:
    assert found_in(text, "gout").experiencer == "other"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("History of gout.", "gout"),
        ("Medical history of asthma and glaucoma.", "asthma"),
        ("Medical history of asthma and glaucoma.", "glaucoma"),
        ("History of HTN.", "htn"),
        ("History of hyperuricemia.", "hyperuricemia"),
        ("History of acute on chronic heart failure.", "heart failure"),
    ],
)
def test_the_history_of_a_chronic_disease_is_not_over(text: str, name: str) -> None:
    assert found_in(text, name).temporality != "historical"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Remote history of gout.", "gout"),
        ("History of gout, resolved.", "gout"),
        ("History of shingles.", "shingles"),
        ("History of acute kidney injury.", "kidney injury"),
        ("History of gestational diabetes.", "gestational diabetes"),
        ("History of rhabdomyolysis.", "rhabdomyolysis"),
        ("An episode of acute kidney injury in March 2021.", "kidney injury"),
    ],
)
def test_the_history_of_an_acute_or_remote_disease_is_over(text: str, name: str) -> None:
    assert found_in(text, name).temporality == "historical"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Malaria - ruled out 2018", "malaria"),
        ("Pertinent negatives: vertigo, rash.", "rash"),
        ("+ cough, - vertigo, + rash", "vertigo"),
        ("Absent: vertigo", "vertigo"),
        ("Cough (present), vertigo (absent)", "vertigo"),
    ],
)
def test_signs_and_labels_of_absence_negate(text: str, name: str) -> None:
    assert found_in(text, name).negated is True


def test_a_label_of_presence_states_its_finding() -> None:
    assert found_in("Cough (present), vertigo (absent)", "cough").negated is not True


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Patient instructed to report vertigo or bleeding.", "vertigo"),
        ("Treat empirically for malaria.", "malaria"),
        ("Low threshold to treat for malaria.", "malaria"),
    ],
)
def test_instructions_and_empiric_treatment_state_no_finding(text: str, name: str) -> None:
    assert found_in(text, name).certainty in ("possible", "hypothetical")


def test_the_present_tense_holds_against_a_heading_of_the_past() -> None:
    text = "PAST MEDICAL HISTORY\nHeartburn is occasional. Bronchitis is resolved.\n"

    assert found_in(text, "heartburn").temporality != "historical"
    assert found_in(text, "bronchitis").temporality == "historical"
