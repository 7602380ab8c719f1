"""One code is chosen only if the text supports the whole display, and nothing is left out.

The codes of conditions and their displays are those of ICD-10-CM, April 2026. The other codes are
numbers without a meaning.
"""

from __future__ import annotations

import pytest

from pipeline.clinical.facts import Candidate, EntityFacts
from pipeline.providers.local.enrichment.code_choice import CodeChoice, choose
from tests.support.enriched_text import evidence_in, facts_of

DIABETES = (
    ("E11.9", "Type 2 diabetes mellitus without complications"),
    ("E11.21", "Type 2 diabetes mellitus with diabetic nephropathy"),
    ("E11.65", "Type 2 diabetes mellitus with hyperglycemia"),
    ("E10.9", "Type 1 diabetes mellitus without complications"),
    ("E11", "Type 2 diabetes mellitus"),
)
ASTHMA = (
    ("J45.909", "Unspecified asthma, uncomplicated"),
    ("J45.901", "Unspecified asthma with (acute) exacerbation"),
    ("J45.40", "Moderate persistent asthma, uncomplicated"),
    ("J45.21", "Mild intermittent asthma with (acute) exacerbation"),
)
PRESSURE = (
    ("I10", "Essential (primary) hypertension"),
    ("I15.9", "Secondary hypertension, unspecified"),
    ("I27.20", "Pulmonary hypertension, unspecified"),
    (
        "O13.9",
        (
            "Gestational [pregnancy-induced] hypertension without significant proteinuria,"
            " unspecified trimester"
        ),
    ),
)
DEPRESSION = (
    ("F32.A", "Depression, unspecified"),
    ("F33.9", "Major depressive disorder, recurrent, unspecified"),
    ("F33.2", "Major depressive disorder, recurrent severe without psychotic features"),
)
BREAST = (
    ("C50.919", "Malignant neoplasm of unspecified site of unspecified female breast"),
    ("Z85.3", "Personal history of malignant neoplasm of breast"),
    ("Z80.3", "Family history of malignant neoplasm of breast"),
)
REFLUX = (
    ("K21.9", "Gastro-esophageal reflux disease without esophagitis"),
    ("K21.00", "Gastro-esophageal reflux disease with esophagitis, without bleeding"),
)
HEART = (
    ("I50.9", "Heart failure, unspecified"),
    ("I50.23", "Acute on chronic systolic (congestive) heart failure"),
    ("I50.32", "Chronic diastolic (congestive) heart failure"),
)
CASES: tuple[tuple[str, str, tuple[tuple[str, str], ...], str | None], ...] = (
    ("Type 2 diabetes mellitus.", "Type 2 diabetes mellitus", DIABETES, None),
    ("Type 2 diabetes without complications.", "Type 2 diabetes", DIABETES, "E11.9"),
    ("T2DM with nephropathy.", "T2DM", DIABETES, "E11.21"),
    ("Type 2 diabetes with hyperglycemia.", "Type 2 diabetes", DIABETES, "E11.65"),
    ("Type 2 diabetes with foot ulcer.", "Type 2 diabetes", DIABETES, None),
    ("T2DM, nephropathy.", "T2DM", DIABETES, None),
    ("Diabetes.", "Diabetes", DIABETES, None),
    ("Uncontrolled type 2 diabetes.", "Uncontrolled type 2 diabetes", DIABETES, None),
    ("Denies type 2 diabetes.", "type 2 diabetes", DIABETES, None),
    ("Asthma.", "Asthma", ASTHMA, None),
    ("Asthma without complications.", "Asthma", ASTHMA, "J45.909"),
    ("Moderate persistent asthma.", "Moderate persistent asthma", ASTHMA, None),
    ("Severe persistent asthma.", "Severe persistent asthma", ASTHMA, None),
    ("Mild intermittent asthma with acute exacerbation.", "Mild intermittent asthma", ASTHMA,
     "J45.21"),
    ("Husband has asthma.", "asthma", ASTHMA, None),
    ("HTN.", "HTN", PRESSURE, "I10"),
    ("White coat hypertension.", "hypertension", PRESSURE, None),
    ("Pulmonary hypertension.", "Pulmonary hypertension", PRESSURE, "I27.20"),
    ("Hypertension with CKD stage 3.", "Hypertension", PRESSURE, None),
    ("Depression.", "Depression", DEPRESSION, "F32.A"),
    ("Depression, recurrent.", "Depression", DEPRESSION, None),
    ("Major depressive disorder, recurrent, severe without psychotic features.",
     "Major depressive disorder", DEPRESSION, "F33.2"),
    ("History of breast cancer.", "breast cancer", BREAST, "Z85.3"),
    ("Family history of breast cancer.", "breast cancer", BREAST, "Z80.3"),
    ("Breast cancer.", "Breast cancer", BREAST, None),
    ("GERD.", "GERD", REFLUX, None),
    ("GERD without esophagitis.", "GERD", REFLUX, "K21.9"),
    ("GERD with esophagitis.", "GERD", REFLUX, None),
    ("GERD with esophagitis, without bleeding.", "GERD", REFLUX, "K21.00"),
    ("CHF.", "CHF", HEART, "I50.9"),
    ("Acute CHF exacerbation.", "CHF", HEART, None),
    ("Acute on chronic systolic heart failure.", "Acute on chronic systolic heart failure", HEART,
     "I50.23"),
    ("Chronic diastolic CHF.", "CHF", HEART, "I50.32"),
)  # fmt: skip


def _chosen(
    text: str, quote: str, codes: tuple[tuple[str, str], ...], system: str = "ICD10CM"
) -> CodeChoice:
    offered = tuple(
        Candidate(system=system, code=code, display=display, score=0.5) for code, display in codes
    )
    facts = facts_of(text)
    (each,) = (f for f in facts if f.quote.startswith(quote))
    found, evidence = evidence_in(text, each, facts, candidates=offered)
    return choose(found, evidence)


@pytest.mark.parametrize(
    ("text", "quote", "codes", "code"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES]
)
def test_a_code_supported_by_the_text_is_chosen(
    text: str, quote: str, codes: tuple[tuple[str, str], ...], code: str | None
) -> None:
    chosen = _chosen(text, quote, codes).code

    assert (chosen.code if chosen else None) == code


def test_two_codes_that_fit_equally_well_are_uncertain() -> None:
    codes = (("A", "Asthma, unspecified"), ("B", "Unspecified asthma"))

    assert _chosen("Asthma.", "Asthma", codes) == CodeChoice(is_uncertain=True)


DRUGS = (
    ("1", "WARFARIN"),
    ("2", "METOPROLOL TARTRATE"),
    ("3", "METOPROLOL"),
    ("4", "ACETAMINOPHEN"),
)


@pytest.mark.parametrize(
    ("text", "quote", "display"),
    [
        ("warfarin 5 mg PO daily", "warfarin", "WARFARIN"),
        ("metoprolol 25 mg PO BID", "metoprolol", "METOPROLOL"),
        ("metoprolol tartrate 25 mg PO BID", "metoprolol tartrate", "METOPROLOL TARTRATE"),
        ("Tylenol 500 mg PO daily", "Tylenol", "ACETAMINOPHEN"),
        ("apixaban 5 mg PO BID", "apixaban", None),
    ],
)
def test_a_drug_is_coded_by_its_exact_name(text: str, quote: str, display: str | None) -> None:
    chosen = _chosen(text, quote, DRUGS, "UNII").code

    assert (chosen.display if chosen else None) == display


GLUCOSE = (
    ("1", "Glucose [Mass/volume] in Serum or Plasma"),
    ("2", "Glucose [Moles/volume] in Serum or Plasma"),
    ("3", "Glucose [Mass/volume] in Urine by Test strip"),
)


@pytest.mark.parametrize(
    ("text", "is_coded"),
    [
        ("Triglycerides 150 mg/dL", True),
        ("Triglycerides 1.7 mmol/L", False),
        ("Triglycerides 150", False),
        ("Triglycerides, urine 150 mg/dL", False),
    ],
)
def test_a_number_of_a_mass_codes_no_amount_of_substance(text: str, is_coded: bool) -> None:
    # `labunits` gives LOINC 2571-8 the conventional unit mg/dL.
    facts = facts_of(text)
    chosen = _chosen(text, facts[0].quote, (("2571-8", "Triglycerides"),), "LOINC").code

    assert (chosen is not None) == is_coded


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Glucose 198 mg/dL 70-99", "1"),
        ("Glucose 5.4 mmol/L 3.9-5.5", "2"),
        ("Glucose, urine 50 mg/dL", None),
        ("Fasting glucose 98 mg/dL", None),
    ],
)
def test_a_lab_is_coded_by_analyte_specimen_and_unit(text: str, code: str | None) -> None:
    facts = facts_of(text)
    chosen = _chosen(text, facts[0].quote, GLUCOSE, "LOINC").code

    assert (chosen.code if chosen else None) == code


VITALS = (
    ("85354-9", "Blood pressure panel with all children optional"),
    ("8480-6", "Systolic blood pressure"),
    ("8867-4", "Heart rate"),
    ("9279-1", "Respiratory rate"),
    ("8310-5", "Body temperature"),
    ("2708-6", "Oxygen saturation in Arterial blood"),
    ("29463-7", "Body weight"),
)


@pytest.mark.parametrize(
    ("name", "value", "unit", "code"),
    [
        ("BP", "152/86", "mmHg", "85354-9"),
        ("BP", "152", "mmHg", None),
        ("HR", "72", "bpm", "8867-4"),
        ("Resp", "18", "/min", "9279-1"),
        ("HR", "72", "%", None),
        ("Temp", "98.1", "°F", "8310-5"),
        ("SpO2", "94", "%", "2708-6"),
        ("Weight", "214", "lb", "29463-7"),
        ("Weight", "214", None, None),
        ("Ventricular rate", "140", "bpm", None),
        ("SvO2", "70", "%", None),
    ],
)
def test_a_vital_sign_is_coded_by_kind_unit_and_form(
    name: str, value: str, unit: str | None, code: str | None
) -> None:
    quote = f"{name} {value} {unit or ''}".strip()
    facts = EntityFacts(
        key="v", category="vital", name=name, quote=quote, page=1, start=0, end=len(quote),
        page_end=1, value=value, unit=unit,
    )  # fmt: skip
    offered = tuple(
        Candidate(system="LOINC", code=each, display=display, score=0.5) for each, display in VITALS
    )
    found, evidence = evidence_in(quote, facts, [facts], candidates=offered)
    chosen = choose(found, evidence).code

    assert (chosen.code if chosen else None) == code


VEINS = (
    (
        "I82.409",
        "Acute embolism and thrombosis of unspecified deep veins of unspecified lower extremity",
        "Deep vein thrombosis NOS, unspecified",
    ),
    (
        "I82.402",
        "Acute embolism and thrombosis of unspecified deep veins of left lower extremity",
        "Deep vein thrombosis NOS, left",
    ),
    ("E03.9", "Hypothyroidism, unspecified", "Myxedema NOS"),
    ("Z33.1", "Pregnant state, incidental", "Pregnancy NOS"),
)


@pytest.mark.parametrize(
    ("text", "quote", "code"),
    [
        ("DVT.", "DVT", "I82.409"),
        ("Upper extremity DVT.", "DVT", None),
        ("DVT, left popliteal vein.", "DVT", None),
        ("Hypothyroidism.", "Hypothyroidism", "E03.9"),
        ("Hypothyroidism, stable.", "Hypothyroidism", "E03.9"),
        ("Hypothyroidism, postsurgical.", "Hypothyroidism", None),
        ("Hypertension in pregnancy.", "pregnancy", None),
    ],
)
def test_a_term_hides_no_detail_of_its_code(text: str, quote: str, code: str | None) -> None:
    offered = tuple(
        Candidate(system="ICD10CM", code=each, display=display, score=0.5, term=term)
        for each, display, term in VEINS
    )
    facts = facts_of(text)
    (each,) = (f for f in facts if f.quote.startswith(quote))
    found, evidence = evidence_in(text, each, facts, candidates=offered)
    chosen = choose(found, evidence).code

    assert (chosen.code if chosen else None) == code
