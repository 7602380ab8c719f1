"""Facts that the narrative of an encounter states, and words that no narrative may state.

The facts are few: a narrative that leaves one of them out misses the point of the encounter.
"""

from __future__ import annotations

from samples.truth import NarrativeTruth


def _narrative(
    encounter: int | None,
    facts: list[str],
    not_affirmed: list[str] | None = None,
    absent: list[str] | None = None,
) -> NarrativeTruth:
    return NarrativeTruth(
        encounter=encounter,
        facts=[fact.split("|") for fact in facts],
        absent=absent or [],
        not_affirmed=not_affirmed or [],
    )


OTHER_PATIENT = ["Achterman", "318", "10.4", "Furosemida", "Amlodipino", "02/29/2001"]
BY_RECORD: dict[str, list[NarrativeTruth]] = {
    "lab_5p_8enc": [
        _narrative(0, ["Hemoglobin A1c|7.2", "LDL Cholesterol|152"]),
        _narrative(1, ["TSH|6.84"], ["autoimmune thyroiditis"]),
        _narrative(2, ["Potassium|5.6", "eGFR|43"]),
        _narrative(3, ["Creatinine|1.21"], ["hemolysis"]),
        _narrative(4, ["Ferritin|9"]),
        _narrative(5, ["Hemoglobin|10.6", "Creatinine|1.17"]),
        _narrative(6, ["212"]),
        _narrative(7, ["urinary tract infection"]),
    ],
    "visits_20p_4enc": [
        _narrative(
            0,
            ["atrial fibrillation", "apixaban|5 mg", "empagliflozin|10 mg", "Hemoglobin A1c|8.4"],
            ["heart failure", "chest pain", "syncope", "stroke", "breast cancer", "colon cancer"],
        ),
        _narrative(
            1,
            ["COPD exacerbation", "hypokalemia", "metoprolol succinate|50 mg", "Potassium|3.4"],
            ["acute coronary syndrome", "pulmonary embolism", "pneumonia", "cardioversion"],
        ),
        _narrative(
            2,
            [
                "acute decompensated heart failure",
                "sacubitril-valsartan|24 mg",
                "NT-proBNP|6210",
                "thoracentesis",
            ],
            ["pneumonia", "myocardial infarction", "ventricular tachycardia", "pneumothorax"],
        ),
        _narrative(
            3,
            ["heart failure with reduced ejection fraction", "spironolactone|12.5 mg"],
            ["coronary artery disease", "stroke", "rheumatic fever", "pericardial effusion"],
        ),
        _narrative(
            None,
            ["atrial fibrillation", "apixaban|5 mg", "penicillin"],
            ["pulmonary embolism", "colon cancer", "breast cancer", "ibuprofen", "naproxen"],
        ),
    ],
    "traps_10p": [
        _narrative(
            0,
            ["hypertension", "amlodipine|5 mg"],
            ["warfarin", "heart failure", "breast cancer", "colon cancer", "hyponatremia"],
            OTHER_PATIENT,
        ),
        _narrative(1, ["urinary tract infection"], ["pneumonia", "flank pain"], OTHER_PATIENT),
        _narrative(2, ["cardiomegaly"], ["pneumonia", "pneumothorax"], OTHER_PATIENT),
        _narrative(3, ["heart failure", "drug eruption"], ["diabetes", "metformin"], OTHER_PATIENT),
        _narrative(
            5,
            ["acute decompensated heart failure", "carvedilol|3.125 mg", "BNP|640"],
            ["myocardial infarction", "arrhythmia"],
            OTHER_PATIENT,
        ),
        _narrative(None, ["heart failure"], ["warfarin", "breast cancer"], OTHER_PATIENT),
    ],
    "scan_5p": [
        _narrative(0, ["hypertension", "losartan|100 mg", "asthma"], ["stroke", "fever"]),
        _narrative(1, ["Potassium|3.4", "TSH|5.92"]),
        _narrative(
            2,
            ["asthma exacerbation", "hypokalemia", "prednisone|40 mg"],
            ["pneumonia", "pneumothorax", "chest pain"],
        ),
    ],
    "long_72p": [
        _narrative(2, ["osteoarthritis"], ["fracture"]),
        _narrative(
            4,
            ["community-acquired pneumonia", "sepsis", "ceftriaxone|2 g"],
            ["pulmonary embolism", "lung cancer", "stroke", "pneumothorax"],
        ),
        _narrative(7, ["colonoscopy", "diverticulosis"], ["colon cancer", "colitis"]),
        _narrative(None, ["type 2 diabetes", "apixaban|2.5 mg"], ["ovarian cancer", "dementia"]),
    ],
}
