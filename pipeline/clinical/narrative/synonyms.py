"""Other names of measurements and common conditions with exactly the same meaning.

The lists hold ordinary expansions of abbreviations, and no abbreviation with two meanings.
"""

from __future__ import annotations

from functools import cache

from pipeline.clinical.narrative.text import words_of

_GROUPS = (
    "bp|blood pressure|b/p",
    "hr|heart rate|pulse|pulse rate",
    "rr|respiratory rate|resp|resp rate|respirations|respiration",
    "temp|temperature|body temperature",
    "spo2|oxygen saturation|o2 sat|o2 saturation|sao2|sat|pulse oximetry",
    "wt|weight|body weight|weighed|weighs",
    "ht|height|body height",
    "bmi|body mass index",
    "a1c|hba1c|hemoglobin a1c|hgb a1c|glycated hemoglobin|hemoglobin a1c level",
    "hgb|hemoglobin|hb|haemoglobin",
    "hct|hematocrit",
    "wbc|white blood cell count|white blood cells|wbc count",
    "plt|platelets|platelet count",
    "bun|blood urea nitrogen|urea nitrogen",
    "tsh|thyroid stimulating hormone|thyroid-stimulating hormone",
    "alt|alanine aminotransferase",
    "ast|aspartate aminotransferase",
    "alp|alk phos|alkaline phosphatase",
    "crp|c-reactive protein",
    "esr|erythrocyte sedimentation rate|sedimentation rate|sed rate",
    "egfr|estimated glomerular filtration rate",
    "inr|international normalized ratio",
    "bnp|b-type natriuretic peptide|brain natriuretic peptide",
    "rbc|red blood cell count|red blood cells",
    "mcv|mean corpuscular volume",
    "ldh|lactate dehydrogenase",
    "psa|prostate-specific antigen|prostate specific antigen",
    "ldl|ldl cholesterol|ldl-c",
    "hdl|hdl cholesterol|hdl-c",
    "htn|hypertension|high blood pressure",
    "hld|hyperlipidemia",
    "copd|chronic obstructive pulmonary disease",
    "chf|congestive heart failure",
    "cad|coronary artery disease",
    "gerd|gastroesophageal reflux disease",
    "uti|urinary tract infection",
    "dvt|deep vein thrombosis|deep venous thrombosis",
    "ckd|chronic kidney disease",
    "aki|acute kidney injury",
    "osa|obstructive sleep apnea",
    "sob|shortness of breath",
    "t2dm|type 2 diabetes mellitus|type 2 diabetes|diabetes mellitus type 2",
    "t1dm|type 1 diabetes mellitus|type 1 diabetes|diabetes mellitus type 1",
    "afib|atrial fibrillation|a-fib",
    "ecg|ekg|electrocardiogram",
    "cxr|chest x-ray|chest radiograph",
    "hctz|hydrochlorothiazide",
    "flu vaccine|influenza vaccine",
    "covid vaccine|covid-19 vaccine",
)


@cache
def _by_name() -> dict[tuple[str, ...], frozenset[tuple[str, ...]]]:
    found: dict[tuple[str, ...], frozenset[tuple[str, ...]]] = {}
    for group in _GROUPS:
        names = frozenset(words_of(name) for name in group.split("|"))
        for name in names:
            found[name] = names
    return found


def same_names(name: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    """Return the names with the same meaning, the name itself included."""
    return _by_name().get(name, frozenset()) | {name}
