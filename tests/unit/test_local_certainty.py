"""Possible is not hypothetical, planned is not done, and a spouse is no relative."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_assertions import judge
from tests.unit.test_local_provider import ask, page


def of_category(text: str, category: str) -> list[FoundEntity]:
    return [e for e in ask(page(text)).entities if e.category == category]


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("Suspected cholangitis.", "cholangitis"),
        ("Probable gout of the left toe.", "gout"),
        ("Sarcoidosis cannot be excluded.", "Sarcoidosis"),
        ("Unable to rule out endocarditis.", "endocarditis"),
        ("Concern for meningitis.", "meningitis"),
        ("Lupus versus scleroderma.", "scleroderma"),
        ("The differential includes vasculitis.", "vasculitis"),
        ("Findings suggestive of pancreatitis.", "pancreatitis"),
        ("Findings consistent with pancreatitis.", "pancreatitis"),
        ("Imaging is compatible with cirrhosis.", "cirrhosis"),
        ("Labs in keeping with sarcoidosis.", "sarcoidosis"),
        ("The antibody supports lupus in the right setting.", "lupus"),
        ("Findings support gout.", "gout"),
        ("Evaluate for anemia.", "anemia"),
        ("It is unclear whether she has sarcoidosis.", "sarcoidosis"),
        ("It is likely that he has gout.", "gout"),
        ("He may have had a seizure.", "seizure"),
        ("Work up for lupus.", "lupus"),
        ("?DVT", "DVT"),
        ("? cellulitis", "cellulitis"),
        ("Unconfirmed celiac disease.", "celiac disease"),
    ],
)
def test_a_suspicion_is_possible(text: str, mention: str) -> None:
    assert judge(text, mention).certainty == "possible"


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("Come back if vomiting occurs.", "vomiting"),
        ("If there is concern for sepsis, call the clinic.", "sepsis"),
        ("Increased risk of stroke.", "stroke"),
        ("Heparin given for DVT prophylaxis.", "DVT"),
        ("Place on seizure precautions.", "seizure"),
        ("Screening for osteoporosis.", "osteoporosis"),
        ("This drug may cause drowsiness.", "drowsiness"),
        ("Monitor for hypoglycemia.", "hypoglycemia"),
        ("Vaccinated against tetanus.", "tetanus"),
    ],
)
def test_a_condition_a_risk_and_prevention_are_hypothetical(text: str, mention: str) -> None:
    assert judge(text, mention).certainty == "hypothetical"


def test_a_doubt_ends_where_the_sentence_turns() -> None:
    text = "There is concern that he has sepsis, but he has gout."

    assert judge(text, "sepsis").certainty == "possible"
    assert judge(text, "gout").certainty == "certain"


def test_a_risk_behind_the_next_mention_does_not_reach_back() -> None:
    assert judge("She has gout, fall risk is low.", "gout").certainty == "certain"


@pytest.mark.parametrize(
    "text",
    [
        "PLAN\nScheduled for colonoscopy on 04/12/2025.",
        "PLAN\nThe patient will undergo colonoscopy.",
        "PLAN\nColonoscopy recommended.",
        "PLAN\nColonoscopy in 3 months.",
        "PLAN\n1. Iron tablets.\n2. Obtain colonoscopy.",
        "HPI\nShe is awaiting a colonoscopy.",
        "HPI\nPlanned colonoscopy.",
        "PLAN\nRefer for colonoscopy next week.",
        "PLAN\nReferral placed for colonoscopy.",
        "PLAN\nShe is on the waiting list for colonoscopy.",
    ],
)
def test_a_procedure_that_is_not_done_yet_is_planned(text: str) -> None:
    (found,) = of_category(text, "procedure")

    assert (found.temporality, found.certainty) == ("planned", "hypothetical")


@pytest.mark.parametrize(
    "text",
    [
        "HPI\nColonoscopy ordered by her doctor showed two polyps.",
        "HPI\nThe colonoscopy was done 2 years ago.",
        "HPI\nShe underwent colonoscopy.",
        "HPI\nColonoscopy ordered last month was normal.",
        "HPI\nThe planned colonoscopy was performed without complications.",
    ],
)
def test_a_procedure_with_a_result_is_done(text: str) -> None:
    (found,) = of_category(text, "procedure")

    assert found.temporality != "planned"
    assert found.certainty in (None, "certain")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IMMUNIZATIONS\nShingrix scheduled for May.", ("planned", "hypothetical", None)),
        ("IMMUNIZATIONS\nHepatitis B vaccine #2 due.", ("planned", "hypothetical", None)),
        ("PLAN\nDiscussed Tdap; given today.", (None, "certain", False)),
        ("IMMUNIZATIONS\nTdap declined.", (None, None, True)),
    ],
)
def test_a_vaccine_is_planned_given_or_refused(
    text: str, expected: tuple[str | None, str | None, bool | None]
) -> None:
    (found,) = of_category(text, "immunization")

    assert (found.temporality, found.certainty, found.negated) == expected


@pytest.mark.parametrize(
    ("text", "mention", "person"),
    [
        ("Her mother has lupus.", "lupus", "family"),
        ("His daughter has asthma.", "asthma", "family"),
        ("Family history of glaucoma.", "glaucoma", "family"),
        ("His wife has influenza.", "influenza", "other"),
        ("The kidney donor had hepatitis C.", "hepatitis C", "other"),
        ("Roommate with scabies.", "scabies", "other"),
        ("Her mother-in-law has shingles.", "shingles", "other"),
        ("Her stepfather had gout.", "gout", "other"),
        ("Her mother reports that the patient has a rash.", "rash", "patient"),
    ],
)
def test_the_experiencer_is_the_patient_a_relative_or_another_person(
    text: str, mention: str, person: str
) -> None:
    assert judge(text, mention).experiencer == person


@pytest.mark.parametrize(
    ("text", "person"),
    [
        ("HPI\nHer husband takes warfarin 5 mg daily.", "other"),
        ("HPI\nHis mother takes warfarin 5 mg daily.", "family"),
    ],
)
def test_another_persons_medication_names_the_person(text: str, person: str) -> None:
    (found,) = of_category(text, "medication")

    assert found.experiencer == person


@pytest.mark.parametrize(
    ("text", "temporality"),
    [
        ("PAST SURGICAL HISTORY\nAppendectomy\n", "historical"),
        ("PAST SURGICAL HISTORY\nAppendectomy, 1974\n", "historical"),
        (
            "Date of Service: 03/14/2025\nHPI\nAppendectomy of June 18, 2023: no findings.",
            "historical",
        ),
        ("Date of Service: 03/14/2025\nHPI\nAppendectomy 05/15/2026\n", "planned"),
        ("RECOMMENDATIONS\n1. Appendectomy before the end of the month.\n", "planned"),
        ("ORDERS\nAppendectomy, routine\n", "planned"),
        ("PLAN\nAppendectomy today: normal findings.\n", None),
        ("HPI\nAppendectomy\n", None),
    ],
)
def test_a_date_and_a_heading_give_a_procedure_its_time(text: str, temporality: str | None) -> None:
    (found,) = of_category(text, "procedure")

    assert found.temporality == temporality


@pytest.mark.parametrize(
    ("text", "mention", "temporality"),
    [
        ("He was operated on in 2021 for a cataract.", "cataract", "historical"),
        ("Admitted in 2019 with pneumonia.", "pneumonia", "historical"),
        ("She quit smoking in 2010 and has a cough.", "cough", None),
    ],
)
def test_a_past_time_governs_what_happened_then(
    text: str, mention: str, temporality: str | None
) -> None:
    assert judge(text, mention).temporality == temporality


def test_a_reason_to_go_to_an_emergency_department_is_hypothetical() -> None:
    text = "Go to the emergency department for chest pain or fainting."

    assert judge(text, "fainting").certainty == "hypothetical"
    text = "He came to the emergency department for chest pain."
    assert judge(text, "chest pain").certainty != "hypothetical"


def test_a_chronic_disease_goes_on_after_its_diagnosis() -> None:
    (found,) = of_category("HPI\nDiagnosed in 2019 with diabetes.", "condition")

    assert found.temporality is None
