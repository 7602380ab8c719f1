"""Short texts of kinds that hospitals print: no value is wrong without a flag."""

from __future__ import annotations

import pytest

from tests.support.enriched_text import enriched_in, facts_of


@pytest.mark.parametrize(
    "text", ["Fundal height 28 cm.", "Chair height 45 cm.", "bed height 50 cm"]
)
def test_the_height_of_something_else_is_no_height_of_the_patient(text: str) -> None:
    assert [each.name for each in facts_of(text) if each.category == "vital"] == []


def test_the_height_of_the_patient_is_read_beside_another_height() -> None:
    found = [f.value for f in facts_of("Fundal height 28 cm. Height 165 cm.")]

    assert found == ["165"]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("HOLD: metformin 1000 mg PO BID until 03/15/2024", "on_hold"),
        ("metformin 1000 mg PO BID until 2019", "stopped"),
        ("Take cephalexin 500 mg PO QID until 03/15/2024", "active"),
    ],
)
def test_the_day_of_an_end_does_not_say_that_a_medication_has_ended(text: str, status: str) -> None:
    # Only the day of the encounter tells whether the end is past.
    (each,) = facts_of(text)

    assert each.status == status


@pytest.mark.parametrize(
    "text",
    [
        "Hep B #1 given 03/09/2024.",
        "Tetanus (Td) 05/2019, due 05/2029.",
        "Influenza declined 10/2023.",
        "Varicella 2 of 2 on 05/01/2019",
        "Hepatitis B series complete",
    ],
)
def test_a_dose_of_a_vaccine_is_no_disease(text: str) -> None:
    assert [each.name for each in facts_of(text) if each.category == "condition"] == []


@pytest.mark.parametrize("text", ["Hep B.", "Chronic hepatitis B.", "Influenza A.", "Tetanus."])
def test_a_disease_that_has_a_vaccine_is_still_a_disease(text: str) -> None:
    assert [each.category for each in facts_of(text)] == ["condition"]


def test_refills_are_no_rheumatoid_factor() -> None:
    found = facts_of("Metoprolol succ ER 50 mg 1 tab PO qd #30 RF 3.")

    assert [each.category for each in found] == ["medication"]


def test_a_rheumatoid_factor_is_read() -> None:
    assert [(each.name, each.value) for each in facts_of("RF 42 IU/mL.")] == [("RF", "42")]


@pytest.mark.parametrize(
    "text", ["Not taking: simvastatin 20 mg (muscle aches).", "Never started statin (myalgia)."]
)
def test_the_reason_against_a_medication_is_not_denied(text: str) -> None:
    reason = facts_of(text)[-1]

    assert reason.category == "symptom"
    assert reason.negated is None


def test_a_denial_reaches_into_a_parenthesis() -> None:
    found = facts_of("Denies fever (or chills).")

    assert [each.negated for each in found] == [True, True]


def test_another_drug_that_is_tolerated_refutes_no_allergy() -> None:
    (each, *_) = facts_of("Allergies: PCN (hives as child, has since tolerated amoxicillin).")

    assert (each.name, each.negated, each.reaction) == ("PCN", None, "hives as child")


def test_a_tolerated_drug_is_no_part_of_a_reaction() -> None:
    (each, *_) = facts_of("Allergies: codeine (nausea, tolerates hydrocodone without problems)")

    assert each.reaction == "nausea"


def test_an_allergen_that_is_tolerated_since_is_refuted() -> None:
    (each,) = facts_of("Allergies: Cefazolin: rash in infancy, has since tolerated it.")

    assert each.negated is True


def test_an_immunity_is_no_disease() -> None:
    assert [f.name for f in facts_of("Rubella immune.") if f.category == "condition"] == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("No recurrence of melanoma.", "melanoma"),
        ("Without recurrence of atrial fibrillation.", "atrial fibrillation"),
        ("No relapse of lymphoma.", "lymphoma"),
        ("No seizure recurrence since 2019.", "seizure"),
        ("Melanoma excised 2012, no recurrence.", "Melanoma"),
        ("Colon cancer s/p resection 2015 without evidence of recurrence.", "Colon cancer"),
        ("Prostate cancer: no biochemical recurrence.", "Prostate cancer"),
        ("Pancreatitis has not recurred.", "Pancreatitis"),
        ("Breast cancer 2018, NED.", "Breast cancer"),
        ("Varicella: history of disease.", "Varicella"),
    ],
)
def test_what_does_not_come_back_is_past_and_not_denied(text: str, name: str) -> None:
    (found,) = [each for each in facts_of(text) if each.name == name]

    assert (found.negated is True, found.temporality) == (False, "historical")


@pytest.mark.parametrize("text", ["No fever or recurrence of chest pain.", "No fever. Recurrence."])
def test_a_denial_beside_a_recurrence_stays_a_denial(text: str) -> None:
    fever = facts_of(text)[0]

    assert (fever.name, fever.negated) == ("fever", True)


def test_a_recurrence_is_no_history() -> None:
    (melanoma,) = facts_of("Recurrence of melanoma.")

    assert melanoma.temporality is None


@pytest.mark.parametrize(
    "text",
    [
        "Previously diagnosed with lupus, since refuted by rheumatology.",
        "Lupus was suspected and subsequently excluded.",
        "Lupus diagnosis later found to be wrong.",
    ],
)
def test_a_diagnosis_that_was_taken_back_later_is_denied(text: str) -> None:
    assert [each.negated for each in facts_of(text)] == [True]


@pytest.mark.parametrize(
    "text", ["Hearing loss AD.", "Cerumen impaction AU.", "Otitis externa AD, improving."]
)
def test_an_abbreviation_of_an_ear_is_no_disease(text: str) -> None:
    assert len(facts_of(text)) == 1


def test_alzheimer_disease_keeps_its_abbreviation() -> None:
    assert facts_of("History of AD.")[0].name == "AD"


@pytest.mark.parametrize(
    "text",
    [
        "Transfused 2 units PRBC overnight.",
        "Infused 10 mg over one hour.",
        "Transfuse 1 units if symptomatic.",
    ],
)
def test_a_verb_beside_an_amount_is_no_drug(text: str) -> None:
    assert [each for each in facts_of(text) if each.category == "medication"] == []


def test_an_unlisted_name_beside_an_amount_is_still_a_drug() -> None:
    assert [each.name for each in facts_of("Zorbafed 60 mg BID")] == ["Zorbafed"]


@pytest.mark.parametrize(
    "text",
    [
        "Hemoglobin 13.O g/dL",
        "Glucose 1O2 mg/dL",
        "BUN 1.I",
        "Temp 98.O F",
        "Temp 37.l C",
        "Weight 70.S kg",
    ],
)
def test_a_letter_inside_a_number_leaves_the_number_out(text: str) -> None:
    assert [each.value for each in facts_of(text) if each.value] == []


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("BP 120/80.O2 sat 98%", ["120/80", "98"]),
        ("Hgb 13.Plt 200.", ["13", "200"]),
        ("Temp 98.6 F", ["98.6"]),
    ],
)
def test_the_next_name_directly_behind_a_number_is_no_letter_of_the_number(
    text: str, values: list[str]
) -> None:
    assert [each.value for each in facts_of(text)] == values


@pytest.mark.parametrize(
    ("text", "is_as_needed", "count"),
    [
        ("Nitroglycerin 0.4 mg SL q5min x3 prn chest pain", True, 3),
        ("Lorazepam 1 mg PO q4h x 2 PRN", True, 2),
        ("Oxycodone 5 mg PO q6h x 3 days PRN pain", True, None),
        ("Ondansetron 4 mg q8h for 2 days as needed", True, None),
        ("Ketorolac 15 mg IV q6h x 4.", False, 4),
        ("Metformin 500 mg BID x3 months", False, None),
    ],
)
def test_a_length_hides_neither_the_need_nor_the_number_of_doses(
    text: str, is_as_needed: bool, count: int | None
) -> None:
    timing = enriched_in(text)[0][1].attributes["timing"]

    assert (timing["as_needed"], timing.get("count")) == (is_as_needed, count)


def test_a_drug_as_needed_for_some_days_has_no_daily_dose() -> None:
    _, oxycodone = enriched_in("Oxycodone 5 mg PO q6h x 3 days PRN pain")[0]

    assert "daily_dose" not in oxycodone.attributes


@pytest.mark.parametrize("text", ["Denies taking tramadol.", "Denies any use of tramadol."])
def test_a_drug_whose_use_is_denied_is_not_active(text: str) -> None:
    (tramadol,) = facts_of(text)

    assert (tramadol.negated, tramadol.status) == (True, "not_started")


@pytest.mark.parametrize(
    "line", ["Latex - no known", "Latex: none known", "Latex: no known allergy", "Latex -- none"]
)
def test_an_allergen_without_a_known_allergy_is_denied(line: str) -> None:
    sulfa, latex = facts_of(f"ALLERGIES\nSulfa - rash\n{line}")

    assert (sulfa.negated, latex.negated) == (None, True)


@pytest.mark.parametrize(
    "text",
    [
        "Pt was told he had lupus but this was subsequently ruled out.",
        "Suspected lupus, but it was excluded.",
    ],
)
def test_a_diagnosis_is_denied_behind_but(text: str) -> None:
    assert [each.negated for each in facts_of(text)] == [True]


def test_relief_behind_but_denies_nothing() -> None:
    (pain,) = facts_of("Chest pain but it was relieved by rest.")

    assert pain.negated is not True


def test_the_last_event_of_a_year_is_past_and_a_lasting_disease_is_not() -> None:
    (disorder, seizure) = facts_of("Seizure disorder, last seizure 2018.")
    (gout, _) = facts_of("Last gout flare 2019. Hypertension.")

    assert (disorder.temporality, seizure.temporality) == (None, "historical")
    assert gout.temporality is None


def test_a_disease_in_a_list_of_vaccines_is_no_vaccine() -> None:
    found = facts_of(
        "IMMUNIZATIONS:\nTdap: 2019\nVaricella: had disease at age 5\nMeasles: immune by titer\n"
        "Rubella - immune"
    )

    assert [(each.category, each.name) for each in found] == [
        ("immunization", "Tdap"),
        ("condition", "Varicella"),
    ]
    assert found[1].temporality == "historical"


@pytest.mark.parametrize(
    ("text", "doses"),
    [
        ("Amlodipine 10 mg (decreased from 10 to 5 mg on 2/1)", [("5 mg", "10 mg")]),
        ("Lisinopril 10 mg daily, increased from 10 to 20 mg daily today", [("20 mg", "10 mg")]),
        ("Warfarin 5 mg (changed from 7.5 to 5 mg)", [("5 mg", None)]),
        ("Metoprolol 50 mg BID, increased from 25 to 50 mg BID", [("50 mg", None)]),
        ("Amlodipine 20 mg, decreased from 10 to 5 mg", [(None, None)]),
    ],
)
def test_a_change_behind_a_dose_is_one_medication(
    text: str, doses: list[tuple[str | None, str | None]]
) -> None:
    assert [(each.dose, each.previous_dose) for each in facts_of(text)] == doses
