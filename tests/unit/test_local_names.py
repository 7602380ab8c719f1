"""A name is a drug, a disease or a procedure only where the words around the name allow it."""

from __future__ import annotations

import pytest

from pipeline.providers.local.names.misspellings import misspelt_drug
from tests.unit.test_local_provider import ask, page

_HEAD = "OFFICE VISIT\nDate of Service: 02/11/2025\n\n"


def _names(text: str, category: str) -> list[str]:
    return [e.name for e in ask(page(_HEAD + text)).entities if e.category == category]


@pytest.mark.parametrize(
    "text",
    [
        "HPI\nHer cousin Ella drove her here. Yasmin stayed at home.",
        "HPI\nHe is well versed in his diet and wants to refresh his memory.",
        "HPI\nSu madre es dominicana y tiene el colesterol alto.",
        "HPI\nElle est de nationalité jamaïcaine; sa sœur est mexicaine.",
        "HPI\nQuattro persone vivono in casa.",
        "HPI\nDr. Procida and Dr. Abate reviewed the film.",
        "HPI\nThe Sector team used the Quest portal and the Muse system.",
        "HPI\nHer mom cooks without sugar, uses honey and drinks water.",
        "HPI\nShe plays a sonata. Nix that idea.",
        "LABS\nCollagen/epinephrine closure time was prolonged.",
        "HPI\nHistamine receptors and dopamine metabolism were explained.",
        "HPI\nShe had a lamb chop, aka dinner.",
    ],
)
def test_an_ordinary_or_foreign_word_is_no_drug(text: str) -> None:
    assert _names(text, "medication") == []


@pytest.mark.parametrize(
    ("text", "drug"),
    [
        ("HPI\nShe was given Versed 1 mg IV.", "Versed"),
        ("HPI\nHe takes Allegra for hay fever.", "Allegra"),
        ("MEDICATIONS\nuplizna 300 mg IV every 6 months", "uplizna"),
        ("HPI\nShe received Kymriah in May.", "Kymriah"),
        ("HPI\nHe tolerated zongertinib well.", "zongertinib"),
        ("HPI\nTreated with fosfomycin.", "fosfomycin"),
        ("HPI\nShe inhaled Sevofluorane during the operation.", "Sevofluorane"),
    ],
)
def test_a_brand_beside_its_use_and_an_official_name_are_drugs(text: str, drug: str) -> None:
    assert _names(text, "medication") == [drug]


@pytest.mark.parametrize(
    ("word", "drug"),
    [
        ("atorvastattin", "atorvastatin"),
        ("metoprollol", "metoprolol"),
        ("levothyroxin", "levothyroxine"),
        ("prednisolone", None),
        ("conversation", None),
        ("mediation", None),
        ("penicilline", "penicillin"),
    ],
)
def test_a_long_word_one_letter_from_one_drug_is_that_drug(word: str, drug: str | None) -> None:
    assert misspelt_drug(word) == drug


def test_the_dose_behind_an_unlisted_drug_is_not_the_dose_of_the_drug_before() -> None:
    entities = ask(page(_HEAD + "HPI\nShe got sevoflurane and remifentanyl 0.2 mg.")).entities

    doses = {e.name: e.dose for e in entities if e.category == "medication"}
    assert doses == {"sevoflurane": None, "remifentanyl": "0.2 mg"}


@pytest.mark.parametrize(
    "text",
    [
        "EXAM\nGlasses and hearing aids are in place.",
        "HPI\nShe walks her pet and will prom with Lee.",
        "HPI\nThe renal artery and the left ventricle are of normal size.",
        "HPI\nEscherichia coli grew.",
        "HPI\nHeart\tFailure to attend twice",
        "HPI\nThe valve closes. The teeth are fine.",
    ],
)
def test_a_part_of_the_body_and_an_ordinary_word_are_no_disease(text: str) -> None:
    assert _names(text, "condition") == []


@pytest.mark.parametrize(
    ("text", "disease"),
    [
        ("ASSESSMENT\nDe Quervain thyroiditis.", "De Quervain thyroiditis"),
        ("ASSESSMENT\nPellagra.", "Pellagra"),
        ("ASSESSMENT\nTransient global amnesia.", "Transient global amnesia"),
        ("ASSESSMENT\nCancer of the pylorus.", "Cancer of the pylorus"),
        ("ASSESSMENT\nRupture of chordae tendineae.", "Rupture of chordae tendineae"),
    ],
)
def test_a_disease_of_the_classification_is_found(text: str, disease: str) -> None:
    assert _names(text, "condition") == [disease]


@pytest.mark.parametrize(
    "text",
    [
        "LABS\nCBC, urine culture and a lipid panel were sent.",
        "Specialty: Vascular Surgery",
        "HPI\nReferred to the Orthopedic Surgery team and the Endoscopy Center.",
        "EXAM\nABI 0.7 on the left, ABI > 1 on the right.",
        "HPI\nIn lead aVR no change is seen.",
        "HPI\nThe sutures are clean. IV access was difficult.",
    ],
)
def test_a_laboratory_test_a_team_and_a_measurement_are_no_procedures(text: str) -> None:
    assert _names(text, "procedure") == []


def test_an_operation_and_an_examination_are_procedures() -> None:
    found = _names("HISTORY\nVascular surgery in 2011; CT chest; suture removal.", "procedure")

    assert found == ["Vascular surgery", "CT chest", "suture removal"]


@pytest.mark.parametrize(
    ("text", "diseases"),
    [
        ("HPI\nFracture of the left femur.", ["Fracture of the left femur"]),
        ("HPI\nHe has lateral epicondylitis (LE). LE is worse.", ["lateral epicondylitis", "LE"]),
        ("HPI\nPellagra (Monday). Monday was warm.", ["Pellagra"]),
        ("HPI\nPlantar fasciitis (OK). OK was said.", ["Plantar fasciitis"]),
    ],
)
def test_a_side_and_an_abbreviation_that_the_text_defines_are_read(
    text: str, diseases: list[str]
) -> None:
    assert _names(text, "condition") == diseases


@pytest.mark.parametrize(
    "text",
    [
        "PLAN\nAsthma action plan given; diabetes educator and stroke support group next week.",
        "PLAN\nMigraine diary and a heart failure handout were handed over.",
        "HPI\nShe is a cancer nurse at the Gout Institute.",
        "PLAN\nCode stroke was called. Sepsis protocol and sepsis bundle were followed.",
        "LABS\nHepatitis C antibody was drawn. Leukemia panel was sent. Lyme disease titer.",
        "HPI\nDepression questionnaire and anxiety inventory were filled in.",
    ],
)
def test_a_disease_inside_the_name_of_another_thing_is_no_disease(text: str) -> None:
    assert _names(text, "condition") == []


def test_a_class_of_heart_failure_belongs_to_the_disease() -> None:
    assert _names("ASSESSMENT\nHeart failure, class III.", "condition") == [
        "Heart failure, class III"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "HPI\nFollowed by the warfarin clinic under the heparin protocol.",
        "HPI\nTheophylline level is pending. Amikacin peak was drawn.",
        "HPI\nA dobutamine stress echo and a dexamethasone suppression test are planned.",
        "HPI\nAmiodarone-induced hyperthyroidism and antibiotic-associated colitis.",
        "HPI\nIbuprofen overdose in 2009; digoxin toxicity in 2011.",
        "LABS\nUrine toxicology screen: methadone negative, oxycodone: positive",
        "HPI\nKlebsiella grew, resistant to ampicillin and sensitive to cefepime.",
        "HPI\nThe isolate was susceptible to gentamicin, tobramycin and meropenem.",
    ],
)
def test_a_drug_inside_another_name_or_beside_a_germ_is_no_drug_of_the_patient(text: str) -> None:
    found = [e.name for e in ask(page(_HEAD + text)).entities]

    assert not {"medication", "allergy"} & {e.category for e in ask(page(_HEAD + text)).entities}, (
        found
    )


def test_a_patient_who_is_sensitive_to_a_drug_has_an_allergy() -> None:
    assert _names("HPI\nShe is sensitive to cefepime.", "allergy") == ["cefepime"]


@pytest.mark.parametrize(
    "text",
    [
        "HPI\nShe lives in CA and was born in PA.",
        "HPI\nHe moved to the US and became a US citizen.",
        "VITALS\nRA sat 96%.",
        "HPI\nTwins conceived via IVF in 2012.",
        "HPI\nTraverse City, MI 49684",
    ],
)
def test_an_abbreviation_with_another_meaning_is_not_published(text: str) -> None:
    names = {e.category for e in ask(page(_HEAD + text)).entities}

    assert not names & {"condition", "procedure", "medication"}


@pytest.mark.parametrize(
    ("text", "diseases"),
    [
        ("HPI\nNon-ST elevation MI in 2019.", ["Non-ST elevation MI"]),
        ("HPI\nNon-alcoholic fatty liver disease.", ["Non-alcoholic fatty liver disease"]),
        ("HPI\nHe has Kienböck disease.", ["Kienböck disease"]),
        ("HPI\nShe has Sjögren syndrome.", ["Sjögren syndrome"]),
        ("HPI\nStroke-like spells. Melanoma free. Pseudo-seizure.", []),
    ],
)
def test_the_words_that_make_another_disease_belong_to_the_name(
    text: str, diseases: list[str]
) -> None:
    found = [e for e in ask(page(_HEAD + text)).entities if e.category == "condition"]

    assert [e.name for e in found] == diseases
    assert not any(e.negated for e in found)


def test_non_denies_only_the_word_to_which_it_belongs() -> None:
    text = "HPI\nNon-smoking man with hypertension and a non-tender hernia; non-cardiac chest pain."

    found = {e.name: e.negated for e in ask(page(_HEAD + text)).entities}

    assert found == {
        "hypertension": None,
        "tender": True,
        "hernia": None,
        "non-cardiac chest pain": None,
    }
