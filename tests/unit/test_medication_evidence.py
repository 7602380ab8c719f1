"""What the local engine reads about drugs, allergies, vaccines and procedures for Pass 2."""

from __future__ import annotations

import pytest

from pipeline.clinical.evidence import evidence_of
from pipeline.clinical.facts import EntityFacts
from pipeline.core.types import PageSlice
from pipeline.providers.local.engine import placed_entities, read
from pipeline.providers.local.enrichment.answer import answer_about

_SHOWN = (
    "ingredient", "start", "stop", "indication", "status", "verification", "severity", "substance",
    "reaction", "product", "dose_number", "laterality", "body_site",
)  # fmt: skip


def answers(text: str, *categories: str) -> dict[str, dict[str, str]]:
    """Return the answers of Pass 2 about the entities that Pass 1 finds, by name."""
    part = PageSlice(page=1, start=0, text=text)
    facts = [
        EntityFacts(
            key=f"e{number}", category=each.category, name=each.name, quote=each.quote, page=1,
            start=each.start, end=(each.start or 0) + len(each.quote), strength=each.strength,
            dose=each.dose, route=each.route, frequency=each.frequency, status=each.status,
            reaction=each.reaction, negated=each.negated, temporality=each.temporality,
            certainty=each.certainty, experiencer=each.experiencer, zone_type=each.zone,
        )
        for number, each in enumerate(placed_entities(read((part,)), include_zones=True))
    ]  # fmt: skip
    found = {}
    for each in facts:
        if each.category in categories:
            answer = answer_about(each, evidence_of(each, [part], facts)).model_dump()
            found[each.name] = {n: v for n, v in answer.items() if v and n in _SHOWN}
    return found


MEDICATIONS = [
    ("lisinopril 10 mg daily started 3/2024", "lisinopril", "3/2024", None, None),
    (
        "Started metoprolol 25 mg BID on 3/4/2024 for atrial fibrillation.",
        "metoprolol", "3/4/2024", None, "atrial fibrillation",
    ),
    ("Stopped lisinopril on 2/1/2024.", "lisinopril", None, "2/1/2024", None),
    ("Lisinopril 10 mg PO daily, cough started 3/2024.", "Lisinopril", None, None, None),
    ("Prednisone 40 mg daily for 7 days for COPD exacerbation.", "Prednisone", None, None,
     "COPD exacerbation"),
    ("Prednisone 40 mg daily for 7 days.", "Prednisone", None, None, None),
    ("Aspirin 81 mg daily for now.", "Aspirin", None, None, None),
    ("Prednisone 40 mg daily for a total of 5 days.", "Prednisone", None, None, None),
    ("Ibuprofen 600 mg q6h PRN pain", "Ibuprofen", None, None, "pain"),
    ("Ibuprofen 600 mg q6h as needed for back pain", "Ibuprofen", None, None, "back pain"),
    ("Metformin 500 mg BID (diabetes)", "Metformin", None, None, "diabetes"),
    ("Amlodipine 5 mg daily (HTN)", "Amlodipine", None, None, "HTN"),
    ("Warfarin 5 mg daily d/c'd 5/1/2024, apixaban 5 mg BID started 5/2/2024", "Warfarin", None,
     "5/1/2024", None),
    ("Warfarin 5 mg daily d/c'd 5/1/2024, apixaban 5 mg BID started 5/2/2024", "apixaban",
     "5/2/2024", None, None),
    ("Allopurinol 100 mg daily for gout since 2019.", "Allopurinol", None, None, "gout"),
    ("Amlodipine 5 mg daily (1/2/2020 - 3/4/2021)", "Amlodipine", "1/2/2020", "3/4/2021", None),
    ("For hypertension, continue lisinopril 10 mg daily.", "lisinopril", None, None,
     "hypertension"),
    ("Since 2019 she has been taking levothyroxine 88 mcg daily for hypothyroidism.",
     "levothyroxine", "2019", None, "hypothyroidism"),
    ("Lisinopril 10 mg daily has not been started since 2020", "Lisinopril", None, None, None),
    ("Hold aspirin 81 mg until 5/1/2024.", "aspirin", None, None, None),
    ("Started lisinopril and metoprolol 25 mg BID on 3/1/2024.", "lisinopril", None, None, None),
    ("Amoxicillin 500 mg TID until 6/10/2024 for sinusitis", "Amoxicillin", None, "6/10/2024",
     "sinusitis"),
    ("Trazodone 50 mg at bedtime for sleep", "Trazodone", None, None, "sleep"),
    ("Furosemide 40 mg daily, started in March 2023, stopped 6/5/2024", "Furosemide",
     "March 2023", "6/5/2024", None),
    ("Lisinopril 10 mg daily. Monitor for cough.", "Lisinopril", None, None, None),
    ("Stopped metformin for diarrhea.", "metformin", None, None, None),
    ("Hydrochlorothiazide 25 mg was stopped on 08/19/2022 for hyponatremia.",
     "Hydrochlorothiazide", None, "08/19/2022", None),
    ("Methotrexate 15 mg weekly since 03/2020, folic acid 1 mg daily", "folic acid", None, None,
     None),
    ("Warfarin 5 mg PO daily (last INR 2.3 on 3/14/2024)", "Warfarin", None, None, None),
    ("Lisinopril 10 mg daily, last filled 3/15/2024", "Lisinopril", None, None, None),
    ("Aspirin 81 mg daily, for MI in 2019", "Aspirin", None, None, "MI"),
    ("Apixaban 5 mg BID for AFib and DVT", "Apixaban", None, None, "AFib and DVT"),
    ("On 5/16/2024, started amlodipine 5 mg daily and stopped lisinopril.", "lisinopril", None,
     None, None),
    ("Lisinopril 10 mg daily, metformin 500 mg BID, both started 5/16/2024", "Lisinopril", None,
     None, None),
    ("Medications:\nlosartan 50 mg PO daily hypertension", "losartan", None, None,
     "hypertension"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "start", "stop", "indication"), MEDICATIONS)
def test_dates_and_reasons_belong_to_the_drug(
    text: str, name: str, start: str | None, stop: str | None, indication: str | None
) -> None:
    found = answers(text, "medication")[name]
    assert found.get("start") == start
    assert found.get("stop") == stop
    assert found.get("indication") == indication


def test_the_columns_of_a_table_say_start_stop_and_reason() -> None:
    found = answers(
        "Medication\tDose\tFrequency\tStart Date\tStop Date\tIndication\n"
        "Lisinopril\t10 mg\tdaily\t03/01/2024\t-\tHypertension\n"
        "Warfarin\t5 mg\tdaily\t01/02/2020\t04/05/2024\tAFib\n",
        "medication",
    )
    assert found["Lisinopril"]["start"] == "03/01/2024"
    assert "stop" not in found["Lisinopril"]
    assert found["Lisinopril"]["indication"] == "Hypertension"
    assert (found["Warfarin"]["start"], found["Warfarin"]["stop"]) == ("01/02/2020", "04/05/2024")


def test_a_day_behind_another_act_is_a_day_of_that_act() -> None:
    found = answers(
        "Surgical history: cholecystectomy 3/2001, C-section x2 (1999, 2003)", "procedure"
    )
    assert found["cholecystectomy"]["start"] == "3/2001"
    assert "start" not in found["C-section"]


def test_a_brand_is_no_ingredient() -> None:
    found = answers("Lipitor 20 mg daily. Lisinopril 10 mg daily.", "medication")
    assert "ingredient" not in found["Lipitor"]
    assert found["Lisinopril"]["ingredient"] == "Lisinopril"


def test_severity_is_only_what_is_printed() -> None:
    found = answers(
        "Allergies:\nPenicillin - severe hives\nSulfa: rash (mild)\nAmoxicillin - anaphylaxis\n"
        "Aspirin: mild to moderate asthma\n",
        "allergy",
    )
    assert found["Penicillin"]["severity"] == "severe"
    assert found["Sulfa"]["severity"] == "mild"
    assert "severity" not in found["Amoxicillin"]
    assert "severity" not in found["Aspirin"]


def test_an_allergy_that_is_over_is_not_refuted() -> None:
    found = answers("Allergies: Penicillin (outgrew), denies allergy to latex.", "allergy")
    assert found["Penicillin"].get("status") == "resolved"
    assert "verification" not in found["Penicillin"]
    assert found["latex"]["verification"] == "refuted"


def test_vaccines_have_days_numbers_and_statuses() -> None:
    found = answers(
        "IMMUNIZATIONS:\nTdap 05/23/2016\nHepatitis B vaccine #2 03/04/2020\n"
        "Influenza vaccine declined 10/1/2023\nPneumococcal vaccine due 5/2025\n"
        "MMR dose 1 of 2 given 1/5/1999\n",
        "immunization",
    )
    assert found["Tdap"] == {"product": "Tdap", "start": "05/23/2016", "status": "completed"}
    assert found["Hepatitis B vaccine #2"]["dose_number"] == "#2"
    assert found["Hepatitis B vaccine #2"]["product"] == "Hepatitis B vaccine"
    assert found["Influenza vaccine"]["status"] == "not-done"
    assert "start" not in found["Influenza vaccine"]
    assert found["Pneumococcal vaccine"]["status"] == "planned"
    assert "start" not in found["Pneumococcal vaccine"]
    assert found["MMR"]["dose_number"] == "dose 1 of 2"


def test_procedures_have_days_sides_and_statuses() -> None:
    found = answers(
        "Chest x-ray 06/17/2024: edema. S/p left knee arthroscopy in 2015. Appendectomy, 1974. "
        "Echocardiogram ordered for 5/6/2024. Colonoscopy was not performed.",
        "procedure",
    )
    assert found["Chest x-ray"]["start"] == "06/17/2024"
    assert found["knee arthroscopy"] == {
        "start": "2015", "status": "completed", "laterality": "left", "body_site": "knee",
    }  # fmt: skip
    assert found["Appendectomy"]["start"] == "1974"
    assert found["Echocardiogram"] == {"status": "preparation"}
    assert found["Colonoscopy"] == {"status": "not-done"}
