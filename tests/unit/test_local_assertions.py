"""The local engine recognizes negation, history, hypothesis and family, phrase by phrase."""

from __future__ import annotations

import pytest

from pipeline.core.types import PageSlice
from pipeline.providers.local.assertions.judgement import Assertion
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.text.document import compose


def judge(text: str, mention: str) -> Assertion:
    reading = DocumentState.of(compose([PageSlice(page=1, start=0, text=text)]))
    start = text.index(mention)
    return reading.judge(start, start + len(mention))


NEGATED = [
    ("Denies fever, chills, or cough.", "fever"),
    ("Denies fever, chills, or cough.", "chills"),
    ("Denies fever, chills, or cough.", "cough"),
    ("He denies chest pain,\nnausea and vomiting.", "vomiting"),
    ("No evidence of pneumonia.", "pneumonia"),
    ("No signs or symptoms of infection.", "infection"),
    ("There is not any lymphadenopathy.", "lymphadenopathy"),
    ("There are no wheezes, rales, nor rhonchi.", "rhonchi"),
    ("Lungs clear without wheezing.", "wheezing"),
    ("Pneumonia was ruled out.", "Pneumonia"),
    ("Myocardial infarction has been ruled out by enzymes.", "Myocardial infarction"),
    ("DVT was considered and excluded.", "DVT"),
    ("Ultrasound for DVT is negative.", "DVT"),
    ("Chest x-ray: no pneumothorax.", "pneumothorax"),
    ("Fever: no. Cough: yes.", "Fever"),
    ("Negative for hematuria and dysuria.", "dysuria"),
    ("No history of diabetes.", "diabetes"),
    ("The patient did not have any seizures.", "seizures"),
    ("She has never had asthma.", "asthma"),
    ("Abdomen is non-tender.", "tender"),
    ("CV: No m/r/g.", "m/r/g"),
    ("Constitutional: Denies fevers or weight loss.", "weight loss"),
    ("Neither edema nor cyanosis was seen.", "cyanosis"),
    ("Glomerulonephritis is unlikely.", "Glomerulonephritis"),
    ("CT ruled out appendicitis.", "appendicitis"),
    ("He no longer has headaches.", "headaches"),
    ("Cardiac: (-) chest pain, (+) palpitations", "chest pain"),
    ("Patient is negative for sarcoidosis.", "sarcoidosis"),
    ("Smears have repeatedly been negative for malaria.", "malaria"),
    ("He was tested and came back negative for mumps.", "mumps"),
    ("She was not found to have celiac disease.", "celiac disease"),
    ("She was found not to have celiac disease.", "celiac disease"),
    ("He had never been diagnosed with gout.", "gout"),
    ("He isn't thought to have lupus.", "lupus"),
    ("Lupus has since been excluded.", "Lupus"),
    ("Endocarditis was felt to be very unlikely.", "Endocarditis"),
    ("It is unlikely that he has measles.", "measles"),
    ("Imaging argues against osteomyelitis.", "osteomyelitis"),
    ("I do not believe this is cellulitis.", "cellulitis"),
    ("Gout was considered but excluded.", "Gout"),
    ("Malaria could not be demonstrated.", "Malaria"),
    ("No radiographic evidence or signs of pneumonia.", "pneumonia"),
    ("Low suspicion for meningitis.", "meningitis"),
]
NOT_NEGATED = [
    ("No increase in pain.", "pain"),
    ("Not only cough but fever.", "cough"),
    ("No fever but has cough.", "cough"),
    ("Denies fever; reports headache.", "headache"),
    ("No fever, she complains of cough.", "cough"),
    ("Denies chest pain. Endorses fatigue.", "fatigue"),
    ("No wheezing and there are crackles at both bases.", "crackles"),
    ("Pneumonia cannot be excluded.", "Pneumonia"),
    ("Not without pneumonia.", "pneumonia"),
    ("No acute distress, however rash is present.", "rash"),
    ("Positive for cough. Negative for fever.", "cough"),
    ("Umbilical hernia was seen, however the ultrasound was negative.", "Umbilical hernia"),
    ("Gram negative bacteremia.", "bacteremia"),
    ("CT ruled out appendicitis.", "CT"),
    ("Cardiac: (-) chest pain, (+) palpitations", "palpitations"),
    ("No murmur.\nEdema of both legs.", "Edema"),
    ("Meningitis has not yet been excluded.", "Meningitis"),
    ("We are unable to rule out sarcoidosis.", "sarcoidosis"),
    ("Her gout has not been seen by rheumatology.", "gout"),
    ("She does not remember when her asthma began.", "asthma"),
    ("Negative pressure therapy for the abscess.", "abscess"),
    ("Negative for influenza but shows pneumonia.", "pneumonia"),
    ("Swab negative for mumps but positive for measles.", "measles"),
]


@pytest.mark.parametrize(("text", "mention"), NEGATED)
def test_a_negated_mention_is_said_to_be_negated(text: str, mention: str) -> None:
    said = judge(text, mention)

    assert said.negated is True
    assert said.certainty not in ("possible", "hypothetical")


@pytest.mark.parametrize(("text", "mention"), NOT_NEGATED)
def test_a_cue_that_does_not_reach_a_mention_leaves_it_alone(text: str, mention: str) -> None:
    said = judge(text, mention)

    assert said.negated is not True


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("History of pneumonia.", "pneumonia"),
        ("S/p appendectomy in 1999.", "appendectomy"),
        ("She had pneumonia two years ago.", "pneumonia"),
        ("PAST MEDICAL HISTORY\nPneumonia\n", "Pneumonia"),
        ("Previous stroke.", "stroke"),
        ("Delirium, resolved", "Delirium"),
        ("Pneumonia in March 2012.", "Pneumonia"),
        ("Measles as a young child.", "Measles"),
    ],
)
def test_a_past_condition_is_historical(text: str, mention: str) -> None:
    assert judge(text, mention).temporality == "historical"


def test_the_onset_of_a_lasting_disease_is_not_its_end() -> None:
    text = "Diabetes diagnosed in 2011.\n"
    reading = DocumentState.of(compose([PageSlice(page=1, start=0, text=text)]))

    assert reading.judge(0, 8, lasting=True).temporality is None


def test_a_lasting_disease_in_a_history_is_not_said_to_be_over() -> None:
    text = "PAST MEDICAL HISTORY\nHypertension\n"
    reading = DocumentState.of(compose([PageSlice(page=1, start=0, text=text)]))
    start = text.index("Hypertension")

    said = reading.judge(start, start + 12, lasting=True)

    assert said.temporality is None
    assert said.negated is False


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("Possible pneumonia.", "pneumonia"),
        ("Ultrasound to r/o DVT.", "DVT"),
        ("Return for fever or bleeding.", "bleeding"),
        ("If seizures recur, call the clinic.", "seizures"),
        ("Pneumonia cannot be excluded.", "Pneumonia"),
        ("Concern for appendicitis.", "appendicitis"),
        ("I considered pulmonary embolism.", "pulmonary embolism"),
        ("Meningitis has not yet been excluded.", "Meningitis"),
        ("We are unable to rule out sarcoidosis.", "sarcoidosis"),
        ("Rule out gout vs. cellulitis.", "cellulitis"),
        ("Gout versus cellulitis.", "cellulitis"),
        ("Screen for osteoporosis.", "osteoporosis"),
        ("Watch for signs of bleeding.", "bleeding"),
        ("At increased risk for falls.", "falls"),
        ("Call if he has fever or gets a rash.", "rash"),
        ("Should cellulitis develop, return.", "cellulitis"),
        ("Afraid of dementia.", "dementia"),
        ("Exposure to measles at school.", "measles"),
    ],
)
def test_a_planned_or_considered_mention_is_hypothetical(text: str, mention: str) -> None:
    assert judge(text, mention).certainty in ("possible", "hypothetical")


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("Mother had breast cancer.", "breast cancer"),
        ("Father died at 58 of myocardial infarction.", "myocardial infarction"),
        ("FAMILY HISTORY\nDiabetes.\n", "Diabetes"),
        ("Family history of colon cancer.", "colon cancer"),
        ("Diabetes in her mother.", "Diabetes"),
    ],
)
def test_a_relatives_disease_is_the_familys(text: str, mention: str) -> None:
    assert judge(text, mention).experiencer in ("family", "other")


def test_a_report_by_a_relative_belongs_to_the_patient() -> None:
    assert judge("Her mother reports fever at home.", "fever").experiencer in (None, "patient")


def test_an_undecided_property_is_none_and_not_false() -> None:
    assert judge("Abdominal pain", "Abdominal pain") == Assertion(None, None, None, None)
