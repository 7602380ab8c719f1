"""A statement about another person is never published as the patient's."""

from __future__ import annotations

import pytest

from tests.unit.test_local_assertions import judge


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("His fiancée has mumps.", "mumps"),
        ("Flatmate with scabies.", "scabies"),
        ("Her brother-in-law was recently treated for syphilis.", "syphilis"),
        ("The patient's liver donor had hepatitis E.", "hepatitis E"),
        ("A colleague was diagnosed with pertussis on Monday.", "pertussis"),
        ("She cares for her uncle, who has dementia.", "dementia"),
        ("Lives with a friend who has lice.", "lice"),
        ("He says his girlfriend tested positive for gonorrhea.", "gonorrhea"),
        ("Both grandparents died of lung cancer.", "lung cancer"),
        ("Aunt - breast cancer at 40.", "breast cancer"),
        ("Psoriasis in two cousins.", "Psoriasis"),
        ("Her sister's husband has lupus.", "lupus"),
        ("His dog has rabies.", "rabies"),
        ("Her newborn has jaundice.", "jaundice"),
        ("Grandfather had gout and his nephew has gout as well.", "gout"),
        ("Her aunt, who has lupus, came along.", "lupus"),
        ("The patient's uncle takes methotrexate 15 mg weekly.", "methotrexate"),
        ("Gout, asthma and glaucoma in her family.", "Gout"),
        ("No one in the family has glaucoma.", "glaucoma"),
    ],
)
def test_another_persons_disease_is_not_the_patients(text: str, mention: str) -> None:
    assert judge(text, mention).experiencer in ("family", "other")


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("His aunt reports that he has had seizures.", "seizures"),
        ("Roommate noticed a rash on his back.", "rash"),
        ("Accompanied by her partner, who reports vomiting.", "vomiting"),
        ("Lives with her cousin and has gout.", "gout"),
        ("Per husband, patient has fever.", "fever"),
        ("Grandmother died of stroke; patient denies migraine.", "migraine"),
        ("Uncle had leukemia but the patient has no anemia.", "anemia"),
        ("His sister has eczema and he has psoriasis.", "psoriasis"),
        ("Wife with influenza, presents with cough.", "cough"),
        ("Patient is a bone marrow donor with hypertension.", "hypertension"),
        ("Donor site infection.", "infection"),
        ("Contact dermatitis of the wrist.", "dermatitis"),
        ("Nephew is at the bedside. Pneumonia persists.", "Pneumonia"),
        ("The child has croup.", "croup"),
        ("A 44-year-old teacher with gout.", "gout"),
        ("The patient, a teacher, has gout.", "gout"),
        ("28 y/o mother of two with mastitis.", "mastitis"),
        ("Wife gives him insulin at night.", "insulin"),
    ],
)
def test_a_person_who_reports_or_helps_does_not_take_the_disease(text: str, mention: str) -> None:
    assert judge(text, mention).experiencer in (None, "patient")


def test_a_patient_in_a_family_history_stays_the_patient() -> None:
    text = "FAMILY HISTORY\nUncle: epilepsy. Patient denies migraine.\n"

    assert judge(text, "epilepsy").experiencer in ("family", "other")
    assert judge(text, "migraine").experiencer in (None, "patient")
    assert judge(text, "migraine").negated is True
