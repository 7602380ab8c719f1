"""The entities that the sentences of the narrative tests cite, by key, all of one visit."""

from __future__ import annotations

from datetime import date
from typing import Any

from pipeline.clinical.facts import EntityFacts

VISIT = date(2024, 3, 5)


def made_fact(key: str, category: str, name: str, **changed: Any) -> EntityFacts:
    """Return an entity of the visit; a condition or a symptom is present."""
    values: dict[str, Any] = {
        "quote": name,
        "page": 1,
        "encounter_date": VISIT,
        "encounter_type": "office_visit",
    }
    if category in ("condition", "symptom"):
        values["negated"] = False
    return EntityFacts(key=key, category=category, name=name, **(values | changed))


def made_drug(key: str, name: str, **changed: Any) -> EntityFacts:
    """Return a medication that the patient takes."""
    return made_fact(key, "medication", name, **({"status": "active", "negated": False} | changed))


FACTS: dict[str, EntityFacts] = {
    each.key: each
    for each in (
        made_drug("lis", "lisinopril", dose="10 mg", route="PO", frequency="daily"),
        made_drug("met", "metoprolol succinate", dose="25 mg", route="PO", frequency="BID"),
        made_drug(
            "mtf",
            "metformin",
            dose="1000 mg",
            route="PO",
            frequency="BID",
            quote="metformin 1000 mg PO BID type 2 diabetes",
            attributes={"indication": "type 2 diabetes"},
        ),
        made_drug("fur", "furosemide", dose="40 mg", route="IV", frequency="q12h"),
        made_drug("alb", "albuterol", dose="90 mcg", route="inhaled", frequency="q4h PRN"),
        made_drug(
            "ator",
            "atorvastatin",
            dose="80 mg",
            previous_dose="40 mg",
            route="PO",
            frequency="at bedtime",
            status="changed",
        ),
        made_drug(
            "glip",
            "glipizide",
            dose="2.5 mg",
            previous_dose="5 mg",
            frequency="daily",
            status="changed",
        ),
        made_drug(
            "new",
            "apixaban",
            dose="5 mg",
            frequency="BID",
            quote="started apixaban 5 mg BID",
            attributes={"start": "2024-03-05"},
        ),
        made_drug(
            "war",
            "warfarin",
            dose="5 mg",
            frequency="daily",
            status="stopped",
            negated=True,
            temporality="historical",
        ),
        made_drug(
            "asa",
            "aspirin",
            status="stopped",
            negated=True,
            temporality="historical",
            attributes={"stop": "2024-03-05"},
        ),
        made_drug(
            "hold",
            "spironolactone",
            dose="25 mg",
            status="on_hold",
            negated=True,
            certainty="hypothetical",
        ),
        made_drug(
            "plan",
            "empagliflozin",
            dose="10 mg",
            frequency="daily",
            status="planned",
            temporality="planned",
        ),
        made_drug("decl", "gabapentin", status="not_started", negated=True),
        made_drug(
            "ins", "insulin glargine", dose="12 units", route="subcutaneous", frequency="at bedtime"
        ),
        made_drug("pred1", "prednisone", dose="40 mg", frequency="daily", step=1),
        made_drug("pred2", "prednisone", dose="20 mg", frequency="daily", step=2),
        made_fact(
            "glu",
            "lab",
            "Glucose",
            value="168",
            unit="mg/dL",
            reference_range="70-99",
            abnormal_flag="H",
        ),
        made_fact(
            "cre", "lab", "Creatinine", value="1.18", unit="mg/dL", reference_range="0.76-1.27"
        ),
        made_fact(
            "a1c",
            "lab",
            "Hemoglobin A1c",
            value="8.4",
            unit="%",
            reference_range="4.0-5.6",
            abnormal_flag="H",
        ),
        made_fact(
            "k",
            "lab",
            "Potassium",
            value="3.4",
            unit="mmol/L",
            reference_range="3.5-5.1",
            abnormal_flag="L",
        ),
        made_fact("na", "lab", "Sodium", value="140", unit="mmol/L", reference_range="135-145"),
        made_fact("trop", "lab", "Troponin T", value="<0.01", unit="ng/mL"),
        made_fact(
            "hgb",
            "lab",
            "Hemoglobin",
            value="10.6",
            unit="g/dL",
            abnormal_flag="L",
            attributes={"computed_flag": "L"},
        ),
        made_fact(
            "plt", "lab", "Platelets", value="244", unit="K/uL", attributes={"computed_flag": "N"}
        ),
        made_fact("flu", "lab", "Influenza A PCR", value="Negative"),
        made_fact("hiv", "lab", "HIV antibody", value="Non-reactive"),
        made_fact(
            "oldk",
            "lab",
            "Potassium",
            value="4.1",
            unit="mmol/L",
            temporality="historical",
            entity_date=date(2023, 11, 20),
        ),
        made_fact("bp", "vital", "BP", value="152/86", unit="mmHg"),
        made_fact("hr", "vital", "Heart rate", value="88", unit="bpm"),
        made_fact("temp", "vital", "Temp", value="98.1", unit="°F"),
        made_fact("sat", "vital", "SpO2", value="94", unit="%"),
        made_fact("wt", "vital", "Weight", value="214", unit="lb"),
        made_fact("rr", "vital", "Resp", value="18", unit="/min"),
        made_fact("htn", "condition", "Hypertension", temporality="current"),
        made_fact("dm", "condition", "Type 2 diabetes"),
        made_fact("copd", "condition", "COPD"),
        made_fact(
            "af", "condition", "atrial fibrillation", temporality="current", certainty="certain"
        ),
        made_fact("hf", "condition", "heart failure", certainty="possible"),
        made_fact("pna", "condition", "pneumonia", certainty="possible"),
        made_fact("stone", "condition", "nephrolithiasis", temporality="historical"),
        made_fact(
            "mi",
            "condition",
            "myocardial infarction",
            temporality="historical",
            attributes={"onset": "2015"},
        ),
        made_fact(
            "fst", "condition", "stroke", experiencer="family", quote="Father: stroke at age 70"
        ),
        made_fact(
            "fbc",
            "condition",
            "breast cancer",
            experiencer="family",
            quote="mother with breast cancer",
        ),
        made_fact("fcc", "condition", "colon cancer", experiencer="family", negated=True),
        made_fact(
            "wflu", "condition", "influenza", experiencer="other", quote="wife has influenza"
        ),
        made_fact("sprain", "condition", "ankle sprain", attributes={"laterality": "left"}),
        made_fact("opac", "condition", "right basal opacity"),
        made_fact("hip", "condition", "hip fracture", attributes={"laterality": "right"}),
        made_fact("edema", "symptom", "bilateral leg edema"),
        made_fact("knee", "symptom", "left knee pain"),
        made_fact("sob", "symptom", "shortness of breath", temporality="current"),
        made_fact("cough", "symptom", "cough"),
        made_fact("fat", "symptom", "fatigue", attributes={"severity": "mild"}),
        made_fact("fever", "symptom", "fever", negated=True),
        made_fact("chills", "symptom", "chills", negated=True),
        made_fact("cp", "symptom", "chest pain", negated=True),
        made_fact("syn", "symptom", "syncope", negated=True),
        made_fact("rash", "symptom", "rash", negated=True),
        made_fact("pen", "allergy", "Penicillin", reaction="hives"),
        made_fact("cod", "allergy", "Codeine", reaction="vomiting"),
        made_fact("lat", "allergy", "Latex"),
        made_fact("fluv", "immunization", "Influenza vaccine", entity_date=date(2023, 10, 2)),
        made_fact("tdap", "immunization", "Tdap", entity_date=date(2017, 7, 8)),
        made_fact("shing", "immunization", "zoster vaccine", negated=True),
        made_fact("app", "procedure", "Appendectomy", temporality="historical"),
        made_fact("ecg", "procedure", "Electrocardiogram"),
        made_fact(
            "echo", "procedure", "Echocardiogram", temporality="planned", certainty="hypothetical"
        ),
        made_fact(
            "colo",
            "procedure",
            "Colonoscopy",
            entity_date=date(2022, 4, 14),
            temporality="historical",
        ),
        made_fact(
            "fdm", "condition", "diabetes", experiencer="family", quote="Mother has diabetes"
        ),
        made_fact("dm0", "condition", "diabetes", negated=True),
        made_fact("cpn", "symptom", "chest pain on exertion", negated=True),
        made_drug(
            "l20", "lisinopril", dose="20 mg", frequency="daily", encounter_date=date(2024, 6, 1)
        ),
        made_drug("tab", "metformin", strength="500 mg", dose="2 tablets", frequency="BID"),
        made_fact("ckd", "condition", "chronic kidney disease stage 3"),
        made_fact("lowb", "symptom", "low back pain"),
        made_fact("sup", "lab", "Glucose", value="138", unit="mg/dL", accepted=False),
        made_fact("disp", "lab", "Sodium", value="130", unit="mmol/L", flags=("disputed:value",)),
        made_fact("nkda", "allergy", "No known drug allergies"),
        made_fact("hyp", "symptom", "bleeding", certainty="hypothetical"),
        made_drug("err", "digoxin", dose="0.125 mg", status="entered_in_error", negated=True),
        made_fact("ana", "lab", "ANA", value="1:40"),
        made_fact("be", "lab", "Base excess", value="-2.4", unit="mmol/L"),
        made_fact(
            "don",
            "lab",
            "Creatinine",
            value="0.9",
            unit="mg/dL",
            experiencer="other",
            quote="donor creatinine 0.9",
        ),
        made_drug(
            "cond",
            "amoxicillin",
            dose="500 mg",
            status="planned",
            temporality="planned",
            certainty="hypothetical",
        ),
        made_fact(
            "res",
            "condition",
            "cellulitis",
            temporality="historical",
            attributes={"clinical_status": "resolved"},
            quote="cellulitis, resolved",
        ),
        made_drug("mor", "morphine", dose="2 mg", route="IV", frequency="q4h PRN"),
        made_fact(
            "vt",
            "lab",
            "Vitamin D, 25-Hydroxy",
            value="18.9",
            unit="ng/mL",
            reference_range="30.0-100.0",
            abnormal_flag="L",
        ),
        made_fact("hl", "condition", "hyperlipidemia"),
        made_fact("hc", "condition", "high cholesterol"),
        made_fact("nst", "condition", "Non-ST elevation myocardial infarction"),
        made_fact(
            "dmw",
            "condition",
            "diabetes",
            code="ICD10CM|E11.9",
            code_display="Type 2 diabetes mellitus without complications",
        ),
        made_fact("neg", "condition", "HIV infection", negated=True),
        made_fact("pt", "procedure", "colectomy", negated=True),
        made_fact("as1", "condition", "asthma", quote="No wheezing, asthma stable"),
        made_drug(
            "fdg",
            "digoxin",
            dose="0.125 mg",
            frequency="daily",
            experiencer="family",
            quote="mother takes digoxin",
        ),
        made_fact("t1", "lab", "Troponin I", value="0.03", unit="ng/mL"),
        made_fact("t2", "lab", "Troponin T", value="0.30", unit="ng/mL"),
        made_fact("ca", "lab", "Calcium", value="9.1", unit="mg/dL"),
        made_fact("cai", "lab", "Ionized calcium", value="1.2", unit="mmol/L"),
        made_drug("d1", "sertraline", dose="50 mg", frequency="daily"),
        made_drug(
            "d2",
            "sertraline",
            dose="100 mg",
            frequency="daily",
            status="planned",
            temporality="planned",
        ),
        made_drug(
            "q1",
            "lisinopril",
            dose="10 mg",
            frequency="daily",
            quote="Changed metoprolol 50 mg to lisinopril 10 mg daily",
        ),
        made_drug(
            "s1",
            "prednisone",
            dose="20 mg",
            frequency="daily",
            attributes={
                "start": "2024-02-01",
                "stop": "2024-02-10",
                "daily_dose": {"printed": "20 mg", "number": "20", "unit": "mg"},
            },
        ),
        made_drug(
            "s2",
            "metformin",
            dose="500 mg",
            frequency="BID",
            attributes={
                "dose": {"printed": "500 mg", "number": "500", "unit": "mg"},
                "daily_dose": {"printed": "1000 mg/d", "number": "1000", "unit": "mg/d"},
                "timing": {"printed": "BID", "frequency": "2", "period": "1", "period_unit": "d"},
            },
        ),
        made_fact(
            "c1",
            "condition",
            "edema",
            attributes={"laterality": "left", "severity": "moderate", "body_site": "leg"},
            quote="moderate left leg edema",
        ),
        made_fact(
            "c2",
            "condition",
            "asthma",
            attributes={"clinical_status": "remission", "onset": "2010"},
        ),
        made_fact("c3", "condition", "sepsis", attributes={"verification_status": "refuted"}),
        made_fact("c4", "condition", "lupus", attributes={"verification_status": "provisional"}),
        made_fact(
            "im",
            "immunization",
            "COVID-19 vaccine",
            attributes={"occurrence": "2021-03-01", "dose_number": 2},
        ),
        made_fact(
            "lg",
            "lab",
            "Hepatitis C antibody",
            value="Negative",
            quote="Hepatitis C antibody Negative",
        ),
        made_fact(
            "lr",
            "lab",
            "Potassium",
            value="5.0",
            unit="mmol/L",
            flags=("flag_differs",),
            abnormal_flag="H",
            attributes={"printed_flag": "H", "computed_flag": "N"},
        ),
        made_fact(
            "long",
            "condition",
            "migraine",
            quote="Patient with migraine, her mother has lupus and she denies fever",
        ),
        made_fact(
            "hx", "condition", "hernia", temporality="historical", entity_date=date(2019, 5, 2)
        ),
        made_fact(
            "mi2",
            "condition",
            "myocardial infarction",
            temporality="historical",
            attributes={"onset": "2015"},
        ),
    )
}
