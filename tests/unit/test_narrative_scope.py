"""What a sentence says of several names: each class with a true sentence and an untrue one."""

from __future__ import annotations

import pytest

from pipeline.clinical.narrative import check
from tests.support.narrative_judge import FACTS


def is_supported(keys: str, text: str) -> bool:
    return check(text, [FACTS[key] for key in keys.split()]) == ()


UNTRUE = {
    "a number behind a verb is said of each name of the subject": (
        "fe16 fe17",
        "Both carvedilol and spironolactone are taken at a dose of 25 mg.",
    ),
    "a route behind a verb is said of each name of the subject": (
        "fe17 ge21",
        "Spironolactone 25 mg and filgrastim 480 mcg are given subcutaneously.",
    ),
    "a route before a list is said of each name of the list": (
        "ne16 ne20",
        "Intravenous vancomycin 1 g daily and heparin 5000 units every 8 hours were given.",
    ),
    "a frequency before the subject is said of each medication": (
        "fe15 fe17",
        "Twice daily, the patient takes furosemide 80 mg and spironolactone 25 mg.",
    ),
    "a reaction behind `each` is said of each allergy": (
        "fe24 fe25",
        "Allergies include ciprofloxacin and iodinated contrast, each causing urticaria.",
    ),
    "`both` in a clause of its own is said of two results": (
        "fe27 fe30",
        "Creatinine was 2.1 mg/dL and magnesium was 1.9 mg/dL, both within normal limits.",
    ),
    "`all` is said of all results": (
        "fe27 fe30 fe28",
        "Creatinine was 2.1 mg/dL, magnesium was 1.9 mg/dL, and potassium was 3.2 mmol/L, all low.",
    ),
    "a flag behind `were` is said of the whole subject": (
        "fe27 fe28",
        "Creatinine (2.1 mg/dL) and potassium (3.2 mmol/L) were low.",
    ),
    "a flag before a list is said of the whole list": (
        "fe27 fe28",
        "Elevated creatinine of 2.1 mg/dL and potassium of 3.2 mmol/L were noted.",
    ),
    "a heading with a flag is said of the whole list": (
        "fe27 fe30",
        "Abnormal results included creatinine 2.1 mg/dL and magnesium 1.9 mg/dL.",
    ),
    "a general noun tells of more than the names": (
        "fe30",
        "Laboratory testing was normal, including magnesium 1.9 mg/dL.",
    ),
    "`any symptoms` denies more than the names": (
        "fe4",
        "The patient denied any symptoms, including chest pain.",
    ),
    "`both ears` tells both sides": ("ie13", "Acute otitis media was diagnosed in both ears."),
    "a plural tells both sides": ("ie13", "Acute otitis media was diagnosed in the ears."),
    "a site belongs to the name before the site": (
        "fe11 ge1",
        (
            "Colon adenocarcinoma of the heart was diagnosed with acute on chronic systolic heart "
            "failure."
        ),
    ),
    "`then` orders two facts in time": (
        "he33 he34",
        "The Tdap vaccine was given on January 15, 2024, and then the influenza vaccine.",
    ),
    "`prior to` orders two facts in time": (
        "je35 je39",
        "Cardioversion was performed prior to coronary artery bypass grafting.",
    ),
    "`except` takes a name out of a denial": (
        "fe4 fe5",
        "The patient denied chest pain except palpitations.",
    ),
    "`no longer has` tells an earlier symptom": ("fe4", "The patient no longer has chest pain."),
    "a condition of the patient does not run in the family": (
        "ge1 ge12",
        "Colon adenocarcinoma runs in the family with colon cancer.",
    ),
    "`in the past` behind `and` may tell of either condition": (
        "fe7 fe9",
        "The patient has deep vein thrombosis and, in the past, had type 2 diabetes mellitus.",
    ),
    "a planned procedure was not performed": (
        "fe37",
        "A right heart catheterization was planned and performed.",
    ),
    "a planned procedure did not take place": (
        "fe37",
        "The patient underwent the planned right heart catheterization.",
    ),
    "a held medication is not given": ("fe21", "Digoxin was held and is being given."),
    "a stopped medication is not taken": ("fe19", "Metformin was discontinued and is taken."),
    "`up to` tells the largest dose": ("fe23", "Apixaban up to 5 mg twice daily is taken."),
    "breaths are no beats": (
        "fe32 fe33",
        (
            "The heart rate was 104 breaths per minute and the respiratory rate was 26 beats per "
            "minute."
        ),
    ),
}

TRUE = {
    "both results": ("ie30 ie31", "Rapid strep test and RSV antigen were both negative."),
    "an addition with a history": (
        "ie8 ie9 ie10",
        "The patient has asthma and eczema, with a history of bronchiolitis.",
    ),
    "an addition that is planned": (
        "ke36 ke37",
        "A CT of the abdomen was obtained on December 7, 2023, with MRCP scheduled.",
    ),
    "a heading that prints chronic conditions": (
        "fe9 fe10 fe7",
        (
            "Past medical history is notable for type 2 diabetes mellitus, chronic obstructive "
            "pulmonary disease, and a prior deep vein thrombosis."
        ),
    ),
    "a reaction with another verb": (
        "fe25",
        "Exposure to iodinated contrast results in urticaria.",
    ),
    "a range with two units": (
        "je31",
        "Hemoglobin A1c was 6.4%, which is above the reference range of 4.0% to 5.6%.",
    ),
    "a change with one unit": (
        "je19",
        "The metoprolol tartrate dose was lowered from 50 to 25 mg twice daily.",
    ),
    "a dose that is now another dose": (
        "ge22 ge21",
        (
            "Duloxetine, formerly 30 mg, is now 60 mg daily, and filgrastim 480 mcg is given "
            "subcutaneously each day."
        ),
    ),
    "a previous dose in a clause of its own": (
        "le20",
        "Lamotrigine has been increased to 150 mg twice daily; the previous dose was 100 mg.",
    ),
    "a verb that falls": (
        "fe30",
        (
            "Magnesium came back at 1.9 mg/dL, which falls within the reference range of 1.7-2.2 "
            "mg/dL."
        ),
    ),
    "no longer taken": ("he18", "Isotretinoin is no longer being taken."),
    "no longer takes, in a clause of its own": (
        "le24 le25",
        (
            "The patient no longer takes topiramate, and carbamazepine was stopped on February 20, "
            "2024."
        ),
    ),
    "stopped since a day": ("le25", "Since February 20, 2024, carbamazepine has been stopped."),
    "a family": ("ie11 ie12", "Asthma and allergic rhinitis run in the family."),
    "a review of systems": (
        "ke3 ke4 ke5 ke6",
        "Review of systems was negative for hematemesis, melena, dysuria, and jaundice.",
    ),
    "a site before its procedure": ("le37", "Brain MRI was completed on 05/13/2024."),
    "two dates in order": (
        "he33 he34",
        (
            "Tdap and influenza vaccines were given on January 15, 2024, and October 2, 2023, "
            "respectively."
        ),
    ),
    "despite": (
        "ge6 ge10 ge11",
        "Despite fatigue, the patient denies weight loss and night sweats.",
    ),
    "a plural predicate": (
        "le38 le39",
        "An electroencephalogram and a nerve conduction study are upcoming.",
    ),
}


@pytest.mark.parametrize("name", UNTRUE)
def test_refuses_what_is_said_of_a_name_without_that_fact(name: str) -> None:
    assert not is_supported(*UNTRUE[name])


@pytest.mark.parametrize("name", TRUE)
def test_supports_what_is_said_of_several_names(name: str) -> None:
    assert is_supported(*TRUE[name])
