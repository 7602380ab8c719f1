"""What the words around an entity state: dates, severities, sides, statuses, indications.

Each entry names an entity by its encounter, its name and a part of its printed line. `required`
values must be read; `allowed` values follow from the text, but a reader may leave them out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from samples.clinical.codes import Accepted
from samples.clinical.values import Json


@dataclass(frozen=True)
class Special:
    """Values of one entity, or of all entities that match."""

    encounter: int | None
    name: str
    near: str = ""
    required: Json = field(default_factory=dict)
    allowed: Json = field(default_factory=dict)
    icd: Accepted | None = None


def _one(*values: str) -> Json:
    return {"one_of": list(values)}


MILD, MODERATE = {"severity": "mild"}, {"severity": "moderate"}
RESOLVED = {"clinical_status": "resolved"}
IMPROVED = {"clinical_status": _one("active", "resolved", "inactive")}
BOTH, LEFT, RIGHT = ({"laterality": side} for side in ("bilateral", "left", "right"))
PROBABLE = {"verification_status": _one("confirmed", "provisional", "unconfirmed", "differential")}
"""`likely`, `probably`, `presumed`, `consistent with`."""
KNEE: Accepted = ("M17.9", None)


def _on(day: str) -> Json:
    return {"performed": day}


def _given(day: str) -> Json:
    return {"occurrence": day}


def _for(*reasons: str) -> Json:
    return {"indication": _one(*reasons)}


VISITS = (
    Special(0, "type 2 diabetes", "diagnosed 2009", {}, {"onset": "2009"}, (None, "E11", "E11.40")),
    Special(0, "diabetic neuropathy", "Type 2 diabetes", {}, {}, ("E11.40", None)),
    Special(0, "hypertension", "diagnosed 2004", {}, {"onset": "2004"}),
    Special(0, "copd", ", moderate", MODERATE),
    Special(0, "osteoarthritis", "both knees", BOTH, {}, KNEE),
    Special(0, "nephrolithiasis", "1996", {}, {"onset": "1996"}),
    Special(0, "numbness", "both feet", BOTH),
    Special(None, "appendectomy", "1974", _on("1974")),
    Special(0, "inguinal hernia repair", "left", {**_on("2003-06-18"), **LEFT}),
    Special(0, "colonoscopy", "09/30/2019", _on("2019-09-30")),
    Special(0, "penicillin", "", MODERATE),
    Special(0, "codeine", "", MILD),
    Special(0, "influenza vaccine", "", _given("2023-10-02")),
    Special(0, "covid-19 vaccine", "", _given("2023-10-02")),
    Special(0, "pneumococcal vaccine", "", _given("2022-04-14")),
    Special(0, "tdap", "", _given("2017-07-08")),
    Special(0, "aspirin", "prevention", {}, _for("prevention")),
    Special(0, "apixaban", "", {}, _for("atrial fibrillation")),
    Special(0, "metoprolol succinate", "", {}, _for("atrial fibrillation")),
    Special(0, "empagliflozin", "", {}, _for("type 2 diabetes")),
    Special(0, "glipizide", "2.5 mg", {}, _for("type 2 diabetes")),
    Special(0, "atorvastatin", "80 mg", {}, _for("hyperlipidemia")),
    Special(1, "atrial fibrillation", "diagnosed on 03/11/2024", {}, {"onset": "2024-03-11"}),
    Special(1, "shortness of breath", "a little worse", MILD),
    Special(1, "copd exacerbation", "mild", MILD),
    Special(1, "metoprolol succinate", "three days ago", {}, {"status": _one("active", "on_hold")}),
    Special(2, "crackles", "", {}, BOTH),
    Special(2, "pleural effusion", "bilateral", BOTH),
    Special(2, "pleural effusion", "Thoracentesis, right", {}, RIGHT),
    Special(2, "pleural effusion", "drained", {}, IMPROVED),
    Special(2, "hypokalemia", "corrected", {}, IMPROVED),
    Special(2, "mitral regurgitation", "", MODERATE),
    Special(2, "thoracentesis", "right", RIGHT, _on("2024-06-20")),
    Special(2, "thoracentesis", "Thoracentesis on", _on("2024-06-20")),
    Special(2, "chest x-ray", "06/17/2024", _on("2024-06-17")),
    Special(2, "transthoracic echocardiogram", "", {}, _on("2024-06-18")),
    Special(2, "echocardiogram", "06/18/2024", _on("2024-06-18")),
    Special(
        2, "acute decompensated heart failure", "ejection fraction", icd=("I50.21", "I50.9", None)
    ),
    Special(2, "furosemide", "", {}, _for("acute decompensated heart failure")),
    Special(2, "apixaban", "", {}, _for("atrial fibrillation")),
    Special(2, "metformin", "", {}, _for("type 2 diabetes")),
    Special(2, "potassium chloride", "", {}, _for("hypokalemia")),
    Special(2, "sacubitril-valsartan", "", {}, {"start": "2024-06-21"}),
    Special(3, "atrial fibrillation", "found at your office", {}, {"onset": "2024-03-11"}),
    Special(3, "lightheadedness", "on standing", MILD),
    Special(3, "lightheadedness", "mild", MILD),
    Special(3, "sleep apnea", "returned", MILD),
    Special(3, "lisinopril", "replaced", {}, {"stop": "2024-06-21"}),
    Special(3, "metoprolol succinate", "rate control", {}, _for("rate control")),
    Special(3, "transthoracic echocardiogram", "June 18, 2024", _on("2024-06-18")),
    Special(3, "mitral regurgitation", "moderate", MODERATE),
    Special(0, "sinusitis", "presumed", {}, PROBABLE),
    Special(3, "tachycardia-induced cardiomyopathy", "", {}, PROBABLE),
    Special(3, "atrial fibrillation", "persistent", icd=("I48.19", "I48.1", None)),
    Special(3, "orthostatic hypotension", "mild", MILD, {}, ("I95.2", "I95.1")),
    Special(3, "furosemide", "", {}, _for("heart failure", "lightheadedness")),
)
TRAPS = (
    Special(0, "pulmonary embolism", "", {"onset": "1998-07"}),
    Special(0, "diverticulitis", "", RESOLVED, {"onset": "2019-09-14", "abatement": "2019-09-18"}),
    Special(0, "myocardial infarction", "", {}, {"onset": "1971"}),
    Special(0, "mammogram", "", _on("2021-11-14")),
    Special(0, "influenza, high dose", "", _given("2022-10-11")),
    Special(0, "tdap", "", _given("2016-05-23")),
    Special(0, "pneumococcal conjugate 20-valent", "", _given("2022-10-11")),
    Special(0, "aspirin", "", {"start": "2015-06"}),
    Special(0, "vitamin d3", "", {}, _for("supplement")),
    Special(0, "hydrochlorothiazide", "", {"stop": "2022-08-19"}),
    Special(0, "amlodipine", "", {}, _for("hypertension")),
    Special(1, "dysuria", "since 03/14/2023", {"onset": "2023-03-14"}),
    Special(1, "trimethoprim-sulfamethoxazole", "", {}, _for("urinary tract infection")),
    Special(2, "rib fracture", "", RESOLVED, {"onset": "2018"}),
    Special(2, "cardiomegaly", "mild", MILD),
    Special(3, "colonoscopy", "", _on("2015-05-05")),
    Special(3, "heart failure", "likely", {}, PROBABLE, ("I50.9", None)),
    Special(3, "cetirizine", "", {}, _for("drug eruption")),
    Special(3, "furosemide", "", {}, _for("heart failure")),
    Special(
        3,
        "ferrous sulfate",
        "",
        {"daily_dose": {"number": _one("325", "1")}},
        {"daily_dose": {"unit": _one("mg", "{tablet}", "{tbl}")}},
    ),
    Special(5, "echocardiogram", "04/12/2023", _on("2023-04-12")),
    Special(5, "furosemide", "IV", {}, {"start": "2023-06-29"}),
)
SCAN = (
    Special(0, "influenza vaccine", "", {}, _given("2023-09-14")),
    Special(0, "tdap", "", _given("2019-04-22")),
    Special(0, "asthma", "mild persistent", {}, MILD, ("J45.30",)),
    Special(0, "losartan", "100", {}, _for("hypertension")),
    Special(0, "hydrochlorothiazide", "", {}, _for("hypertension")),
    Special(0, "fluticasone", "", {}, _for("asthma")),
    Special(2, "wheezing", "both sides", {}, BOTH),
)
LAB = (
    Special(
        7,
        "urinary tract infection",
        allowed=PROBABLE,
    ),
)
LONG = (
    Special(2, "knee x-ray", "", RIGHT),
    Special(2, "osteoarthritis", "right knee, moderate", {**MODERATE, **RIGHT}, {}, KNEE),
    Special(4, "influenza vaccine", "", _given("2023-10-12")),
    Special(4, "delirium", "resolved", RESOLVED),
    Special(4, "acute kidney injury", "recovered", {}, IMPROVED),
    Special(4, "ct angiography", "", {}, _on("2024-02-14")),
    Special(None, "acute kidney injury", "February", {}, {"onset": "2024-02"}),
    # `Ankles with mild edema`; the words can be on two lines.
    Special(4, "edema", "mild edema", MILD),
    Special(4, "edema", "", {}, MILD),
    Special(None, "anemia", "Anemia: mild", MILD),
    Special(None, "anemia", "", {}, MILD),
    Special(None, "cataract", "", {}, {**LEFT, "onset": "2021"}, (None, "Z98.42")),
    Special(None, "osteoporosis", "", {}, {"onset": "2020"}),
    Special(None, "chronic kidney disease", "", {}, {"onset": "2016"}),
    Special(None, "cough", "now gone", {}, IMPROVED),
    Special(None, "crackles", "", {}, RIGHT),
)
BY_RECORD: dict[str, tuple[Special, ...]] = {
    "visits_20p_4enc": VISITS,
    "traps_10p": TRAPS,
    "scan_5p": SCAN,
    "lab_5p_8enc": LAB,
    "long_72p": LONG,
}


def of(record: str, encounter: int, name: str, line: str) -> list[Special]:
    """Return the entries of an entity, in order."""
    return [
        each
        for each in BY_RECORD.get(record, ())
        if each.encounter in (None, encounter)
        and each.name == name.casefold()
        and each.near in line
    ]
