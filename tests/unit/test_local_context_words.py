"""Words of the lexicon that are no entity in their context: tested drugs, headings, adjectives."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_provider import ask, page


def found(text: str, category: str) -> list[FoundEntity]:
    return [each for each in ask(page(text)).entities if each.category == category]


@pytest.mark.parametrize(
    "text",
    [
        (
            "LABORATORY\nAntimicrobial\tInterpretation\nAmpicillin\tResistant\n"
            "Trimethoprim/Sulfa\tResistant\n"
        ),
        "URINE CULTURE\nAmpicillin/sulbactam  >=32  R\nTrimethoprim-sulfamethoxazole  <=20  S\n",
        "LABS\nAmoxicillin/Clavulanate\t<=2\tS\nGentamicin\t<=1\tS\n",
        "URINE ALBUMIN AND VITAMINS\nComponent\tValue\tUnits\nFolate\t12.7\tng/mL\n",
        "STEROIDS AND VITAMINS\nTest\tResult\nCortisol\t12 ug/dL\n",
        "LABS\nUrine drug screen: benzodiazepines negative, opiates positive\n",
        "LABS\nVancomycin trough 15.2 mcg/mL\nLithium 0.8 mEq/L\nTacrolimus 8.1 ng/mL\n",
        "LABS\nPhenytoin\nWarfarin\nCyclosporine\n",
    ],
)
def test_a_drug_that_a_laboratory_tests_is_no_medication(text: str) -> None:
    assert found(text, "medication") == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("LABS\nINR 2.4 while on warfarin\n", "warfarin"),
        ("LABS: Na 140, K 4.0\nStarted lisinopril 10 mg daily.\n", "lisinopril"),
        ("LABS: WBC 14.\nContinue aspirin.\n", "aspirin"),
        ("PATIENT TAKES VITAMINS.\n", "VITAMINS"),
        ("MEDICATIONS\nVITAMINS\n", "VITAMINS"),
    ],
)
def test_a_drug_that_a_patient_takes_is_a_medication_beside_results(text: str, name: str) -> None:
    assert [each.name for each in found(text, "medication")] == [name]


@pytest.mark.parametrize(
    "text",
    [
        (
            "Scheduled medication\tDose\tRoute\tFrequency\tGiven / initials\n"
            "furosemide\t80 mg\tIV\tBID\t0810"
        ),
        "Medication  Dose  Route  Frequency  Supply\nprednisone  40 mg  PO  daily  five days",
        "Drug | Strength | Frequency | Prescriber\nwarfarin | 5 mg | daily | Dr. Smith",
    ],
)
def test_a_column_heading_is_no_symptom(text: str) -> None:
    assert found(text, "symptom") == []


@pytest.mark.parametrize(
    "text", ["Urinary frequency for two days.", "Frequency, urgency, dysuria."]
)
def test_frequency_of_urination_is_a_symptom(text: str) -> None:
    assert "frequency" in [each.name.lower().split()[-1] for each in found(text, "symptom")]


@pytest.mark.parametrize(
    "text",
    [
        "Faint right basal opacity.",
        "There is a faint systolic ejection click.",
        "Faint line on the test strip.",
        "Cardiology on call agrees with discharge.",
        "Family is comfortable with discharge.",
    ],
)
def test_an_adjective_and_the_end_of_a_stay_are_no_symptoms(text: str) -> None:
    assert not {"faint", "discharge"} & {each.name.lower() for each in found(text, "symptom")}


@pytest.mark.parametrize(
    "text", ["She felt faint.", "He was faint and dizzy.", "Faint when standing."]
)
def test_feeling_faint_is_a_symptom(text: str) -> None:
    assert "faint" in {each.name.lower() for each in found(text, "symptom")}


@pytest.mark.parametrize(
    "text",
    [
        "One flat polyp of the ascending colon was removed whole.",
        "The polyp was completely removed.",
        "A sessile polyp was removed by snare.",
        "Two polyps were removed and sent to pathology.",
        "The polyp was removed from the cecum.",
    ],
)
def test_a_finding_that_a_surgeon_removed_was_there(text: str) -> None:
    assert [each.negated for each in found(text, "condition")] in ([None], [False])


@pytest.mark.parametrize(
    "text",
    ["Asthma was removed from the problem list.", "Diabetes: diagnosis withdrawn."],
)
def test_a_diagnosis_that_a_clerk_removed_is_denied(text: str) -> None:
    assert [each.negated for each in found(text, "condition")] == [True]


@pytest.mark.parametrize(
    "text", ["Small osteophytes, more than in 2020.", "Cardiomegaly, as in 2019."]
)
def test_a_year_of_comparison_does_not_date_a_finding(text: str) -> None:
    both = found(text, "condition") + found(text, "symptom")

    assert [each.temporality for each in both] in ([None], ["current"])


@pytest.mark.parametrize(
    "text",
    [
        "He received an antibiotic from a clinic in December.",
        "She was treated with azithromycin in March 2023.",
        "She took prednisone in October.",
    ],
)
def test_a_drug_of_a_past_month_is_not_active(text: str) -> None:
    assert [each.status for each in found(text, "medication")] == ["stopped"]


@pytest.mark.parametrize(
    "text",
    [
        "She asks whether the blood thinner has to be stopped.",
        "He wonders whether he can stop lisinopril.",
        "Patient asked about stopping metformin.",
        "Unsure if aspirin was stopped.",
        "Should we hold warfarin before the procedure?",
        "Can she stop the metformin?",
    ],
)
def test_a_question_about_a_drug_is_not_understood(text: str) -> None:
    (each,) = found(text, "medication")

    assert each.rule is not None
    assert "not-understood" in each.rule


def test_a_tube_for_oxygen_is_no_medication() -> None:
    assert found("Oxygen tubing extended. Oxygen tank empty.", "medication") == []
