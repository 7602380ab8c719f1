"""The local engine finds allergies, their denial, vaccines, and terms of the lexicon."""

from __future__ import annotations

import pytest

from pipeline.core.types import PageSlice
from pipeline.providers.local.names.lexicon import lexicon
from pipeline.providers.local.names.morphology import category_of
from tests.unit.test_local_provider import ask, page


@pytest.mark.parametrize(
    "text",
    [
        "Allergies: NKDA",
        "ALLERGIES\nNo known drug allergies.\n",
        "Allergies: None",
        "He has no known drug or food allergies.",
        "She denies any drug allergies.",
    ],
)
def test_no_known_allergies_is_a_statement_and_no_entity(text: str) -> None:
    reply = ask(page(text))

    assert reply.no_known_allergies is True
    assert reply.entities == []


def test_silence_about_allergies_is_not_said_to_be_none() -> None:
    assert ask(page("Takes aspirin.")).no_known_allergies is None


def test_a_statement_on_a_context_page_is_not_this_batchs() -> None:
    reply = ask(PageSlice(page=1, start=0, text="NKDA", context=True), page("No cough.", 2))

    assert reply.no_known_allergies is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Allergies: Penicillin (hives), sulfa - rash.",
            [("Penicillin", "hives"), ("sulfa", "rash")],
        ),
        (
            "ALLERGIES\nAllergen Reaction Severity\nPenicillin hives moderate\n",
            [("Penicillin", "hives")],
        ),
        (
            "ALLERGIES\nSulfa antibiotics (skin rash, noted 03/31/2023).",
            [("Sulfa antibiotics", "skin rash")],
        ),
        ("She is allergic to shellfish.", [("shellfish", None)]),
        ("Reports a penicillin allergy.", [("penicillin", None)]),
        ("All: lisinopril.", [("lisinopril", None)]),
        ("PENICILLIN (hives), latex\n", []),
    ],
)
def test_an_allergy_carries_its_reaction(text: str, expected: list[tuple[str, str | None]]) -> None:
    entities = ask(page(text)).entities

    assert [(e.name, e.reaction) for e in entities if e.category == "allergy"] == expected


def test_a_medicine_outside_the_section_of_allergies_is_a_medicine() -> None:
    text = (
        "ALLERGIES\nPenicillin (hives)\n"
        "ADMISSION ASSESSMENT\n1. Atrial fibrillation. Apixaban 5 mg PO BID.\n"
    )

    categories = {e.name: e.category for e in ask(page(text)).entities}

    assert categories == {
        "Penicillin": "allergy",
        "Atrial fibrillation": "condition",
        "Apixaban": "medication",
    }


@pytest.mark.parametrize(
    ("text", "name", "date"),
    [
        ("Influenza vaccine given 04/05/2023, seen 04/28/2023.", "Influenza vaccine", "2023-04-05"),
        ("Influenza vaccine given 04/05/2023, seen 28/04/2023.", "Influenza vaccine", "2023-05-04"),
        ("Influenza vaccine given 04/05/2023.", "Influenza vaccine", None),
        ("IMMUNIZATIONS\nZoster recombinant 02/29/2001\n", "Zoster recombinant", None),
        ("IMMUNIZATIONS\nTdap 2017-07-08\n", "Tdap", "2017-07-08"),
        ("She received her flu shot.", "flu shot", None),
    ],
)
def test_a_vaccine_carries_a_date_that_exists(text: str, name: str, date: str | None) -> None:
    (vaccine,) = ask(page(text)).entities

    assert (vaccine.category, vaccine.name, vaccine.date) == ("immunization", name, date)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Acute on chronic systolic heart failure", ["Acute on chronic systolic heart failure"]),
        ("Chronic kidney disease, stage 3", ["Chronic kidney disease, stage 3"]),
        ("HTN, DM2, s/p CABG, UTI", ["HTN", "DM2", "CABG", "UTI"]),
        ("Crohns disease and Crohn's disease", ["Crohns disease", "Crohn's disease"]),
        ("She was seen at the Diabetes Clinic", []),
        ("PE: lungs clear", []),
        ("Accession: TR-240415-0009", []),
        ("Order 2024-0042/MS, chart HTN00417", []),
        ("HIV-1, CKD-3", ["HIV", "CKD-3"]),
        ("discharge to home", []),
        ("vaginal discharge", ["vaginal discharge"]),
        ("as needed, AS is severe", ["AS"]),
        ("n/v/d since Monday", ["nausea", "vomiting", "diarrhea"]),
        ("pyomyositis after colonoscopy", ["pyomyositis", "colonoscopy"]),
    ],
)
def test_terms_are_found_with_the_words_that_belong_to_them(text: str, names: list[str]) -> None:
    assert [e.name for e in ask(page(text)).entities] == names


def test_the_lexicon_is_broad_and_reads_the_longest_term() -> None:
    terms = lexicon()

    assert terms.size > 7_000
    assert terms.lookup("x-ray") == terms.lookup("X ray") != ()
    assert terms.lookup("os") == ()


@pytest.mark.parametrize(
    ("word", "category"),
    [
        ("pancreatolithiasis", "condition"),
        ("cystourethroscopy", "procedure"),
        ("mastalgia", "symptom"),
        ("zorelumab", "medication"),
        ("diagnosis", None),
        ("coma", None),
        ("sympathy", None),
    ],
)
def test_an_ending_tells_what_a_word_is(word: str, category: str | None) -> None:
    assert category_of(word) == category


@pytest.mark.parametrize(
    "text",
    [
        "ALLERGIES\nNo known allergies other than codeine.",
        "NKDA except codeine (rash).",
        "NKDA. Codeine - itching.\nALLERGIES\nCodeine - itching.",
        "ALLERGIES\nNKDA\nLatex (hives)\n",
    ],
)
def test_a_named_allergy_takes_back_that_there_are_none(text: str) -> None:
    reply = ask(page(text))

    assert reply.no_known_allergies is not True
    assert any(e.category == "allergy" and not e.negated for e in reply.entities)


def test_an_allergy_of_a_relative_leaves_the_statement_alone() -> None:
    reply = ask(page("Her aunt is allergic to codeine. Patient has NKDA."))

    assert reply.no_known_allergies is True
    assert [(e.category, e.experiencer) for e in reply.entities] == [("allergy", "family")]


@pytest.mark.parametrize(
    "text",
    [
        "ALLERGIES\nAmpicillin allergy delabeled in 2020.",
        "ALLERGIES\nAmpicillin - outgrown.",
        "ALLERGIES\nAmpicillin (hives): ruled out by skin test.",
        "She is not allergic to ampicillin.",
        "He denies any allergy to ampicillin.",
        "ALLERGIES\nAmpicillin - cough (not a true allergy).",
    ],
)
def test_an_allergy_that_is_taken_back_is_negated(text: str) -> None:
    found = [e for e in ask(page(text)).entities if e.category == "allergy"]

    assert [(e.name.lower(), e.negated) for e in found] == [("ampicillin", True)]


@pytest.mark.parametrize(
    "text",
    [
        "ALLERGIES\nCodeine - rash. Tolerates cefazolin.",
        "ALLERGIES\nCodeine - rash, has taken cefazolin and cefepime without reaction.",
        "ALLERGIES\nCodeine - rash, treated with diphenhydramine.",
        "ALLERGIES\nCodeine - rash. Declined cefazolin challenge.",
    ],
)
def test_a_tolerated_or_declined_medicine_is_no_allergy(text: str) -> None:
    found = [e.name for e in ask(page(text)).entities if e.category == "allergy"]

    assert found == ["Codeine"]


def test_a_possible_allergy_is_hypothetical() -> None:
    (found,) = ask(page("Possible codeine allergy.")).entities

    assert (found.category, found.certainty) == ("allergy", "possible")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "ALLERGIES MEDICATIONS\nCodeine - itching Ramipril 5 mg daily\n",
            [("allergy", "Codeine"), ("medication", "Ramipril")],
        ),
        ("MEDICATIONS ALLERGIES\nRamipril Codeine\n", []),
        ("Allergies:  Medications:\nCodeine Ramipril\n", []),
        ("FAMILY HISTORY PAST MEDICAL HISTORY\nGout Asthma\n", []),
        (
            "PROBLEMS ALLERGIES\nGout Codeine (rash)\n",
            [("condition", "Gout"), ("allergy", "Codeine")],
        ),
        (
            "Allergies: Codeine Medications: Ramipril 5 mg\n",
            [("allergy", "Codeine"), ("medication", "Ramipril")],
        ),
    ],
)
def test_headings_side_by_side_decide_nothing(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(e.category, e.name) for e in ask(page(text)).entities] == expected


@pytest.mark.parametrize(
    ("text", "negated", "hypothetical", "family"),
    [
        ("IMMUNIZATIONS\nInfluenza vaccine refused.\n", True, None, None),
        ("He declined the influenza vaccine.", True, None, None),
        ("IMMUNIZATIONS\nInfluenza vaccine - overdue\n", None, True, None),
        ("Influenza vaccine was not given.", True, None, None),
        ("Her uncle received influenza vaccine 02/03/2020.", None, None, True),
    ],
)
def test_a_vaccine_that_the_patient_did_not_get_says_so(
    text: str, negated: bool | None, hypothetical: bool | None, family: bool | None
) -> None:
    (vaccine,) = (e for e in ask(page(text)).entities if e.category == "immunization")

    assert "nfluenza vaccine" in vaccine.name
    assert "refused" not in vaccine.name
    assert (vaccine.negated is True) is (negated is True)
    assert (vaccine.certainty in ("possible", "hypothetical")) is (hypothetical is True)
    assert (vaccine.experiencer in ("family", "other")) is (family is True)


@pytest.mark.parametrize(
    ("text", "reaction", "negated"),
    [
        ("Cefazolin - tolerates ampicillin", None, None),
        ("Cefazolin: rash in infancy, tolerated since", "rash in infancy", True),
        ("~~Cefazolin~~", None, True),
        ("Cefazolin\tsevere", None, None),
        ("Cefazolin\thives", "hives", None),
    ],
)
def test_the_words_beside_an_allergen_are_its_reaction_only_if_they_name_one(
    text: str, reaction: str | None, negated: bool | None
) -> None:
    reply = ask(page(f"ALLERGIES\n{text}\n"))

    (found,) = [e for e in reply.entities if e.category == "allergy"]
    assert (found.reaction, found.negated) == (reaction, negated)


def test_no_known_allergies_with_an_exception_is_no_statement_of_none() -> None:
    reply = ask(page("HPI\nNo known drug allergies, but she gets hives from mussels.\n"))

    assert reply.no_known_allergies is not True


def test_a_drug_before_allergic_is_an_allergen_and_no_medication() -> None:
    reply = ask(page("HPI\nShe is cefazolin-allergic.\n"))

    assert [e.category for e in reply.entities] == ["allergy"]


@pytest.mark.parametrize(
    "text",
    [
        "Wants to wait on the Tdap.",
        "Reaction to Tdap in the past: fever.",
        "Contraindication to Tdap.",
    ],
)
def test_a_vaccine_beside_unexplained_words_is_not_understood(text: str) -> None:
    reply = ask(page(f"HPI\n{text}\n"))

    (found,) = [e for e in reply.entities if e.category == "immunization"]
    assert str(found.rule).endswith("not-understood.v1")


@pytest.mark.parametrize("text", ["Tdap: patient declined", "Tdap offered and declined"])
def test_a_vaccine_that_the_patient_declines_is_not_given(text: str) -> None:
    reply = ask(page(f"IMMUNIZATIONS\n{text}\n"))

    (found,) = [e for e in reply.entities if e.category == "immunization"]
    assert found.negated is True
