"""The local engine reads medications with dose, route and frequency as printed."""

from __future__ import annotations

import pytest

from pipeline.providers.local.medications.rule import misspelt
from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_provider import ask, page


def drugs(text: str) -> list[FoundEntity]:
    return [e for e in ask(page(text)).entities if e.category == "medication"]


DIRECTIONS = [
    ("Lisinopril 20 mg PO daily", "Lisinopril", "20 mg", "PO", "daily"),
    ("furosemide 40 mg IV BID", "furosemide", "40 mg", "IV", "BID"),
    ("Augmentin 875/125 mg by mouth twice daily", None, "875/125 mg", "by mouth", "twice daily"),
    ("lorazepam 0.5-1 mg PO q6h PRN", "lorazepam", "0.5-1 mg", "PO", "q6h PRN"),
    ("vitamin D3 1,000 units daily", "vitamin D3", "1,000 units", None, "daily"),
    ("potassium chloride 20 mEq PO once", "potassium chloride", "20 mEq", "PO", "once"),
    ("levothyroxine 75 mcg every morning", "levothyroxine", "75 mcg", None, "every morning"),
    ("Ventolin 2 puffs every 4 hours as needed", None, "2 puffs", None, "every 4 hours as needed"),
    ("glargine 12 units subcut at bedtime", "glargine", "12 units", "subcut", "at bedtime"),
    ("insulin 10 units SC TID", "insulin", "10 units", "SC", "TID"),
    ("acetaminophen 650 mg q4-6h", "acetaminophen", "650 mg", None, "q4-6h"),
    ("metoprolol succinate 25 mg b.i.d.", "metoprolol succinate", "25 mg", None, "b.i.d."),
    ("Take prednisone 40 mg three times a day", "prednisone", "40 mg", None, "three times a day"),
    ("methotrexate 15 mg weekly", "methotrexate", "15 mg", None, "weekly"),
    ("Increase Lasix to 80 mg daily", "Lasix", "80 mg", None, "daily"),
    ("Synthroid one tablet per day", "Synthroid", "one tablet", None, "per day"),
    ("given 20 mg of furosemide", "furosemide", "20 mg", None, None),
    ("Rocephin 50mg/kg IV daily", "Rocephin", "50mg/kg", "IV", "daily"),
    ("sacubitril/valsartan\n24/26 mg twice daily", None, "24/26 mg", None, "twice daily"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "dose", "route", "frequency"), DIRECTIONS)
def test_directions_are_read_as_printed(
    text: str, name: str | None, dose: str, route: str | None, frequency: str | None
) -> None:
    (drug,) = drugs(text)

    assert (drug.dose, drug.route, drug.frequency) == (dose, route, frequency)
    assert name is None or drug.name == name


def test_rows_of_a_table_do_not_run_into_each_other() -> None:
    text = (
        "CURRENT MEDICATIONS\nMedication Dose Route Frequency\n"
        "albuterol 90 mcg inhaled q4h PRN\nmetformin 1000 mg PO BID\nallopurinol 300 mg PO daily\n"
    )

    found = drugs(text)

    assert [(d.name, d.dose, d.frequency) for d in found] == [
        ("albuterol", "90 mcg", "q4h PRN"),
        ("metformin", "1000 mg", "BID"),
        ("allopurinol", "300 mg", "daily"),
    ]
    assert all(d.certainty not in ("possible", "hypothetical") for d in found)


def test_a_list_without_doses_gives_each_name() -> None:
    found = drugs("Meds: Morphine, Flomax and ibuprofen.")

    assert [d.name for d in found] == ["Morphine", "Flomax", "ibuprofen"]


@pytest.mark.parametrize(
    "text",
    [
        "Stop aspirin.",
        "Hold aspirin while bleeding.",
        "Aspirin was discontinued.",
        "Avoid aspirin.",
        "DISCHARGE MEDICATIONS\nSTOP: aspirin 81 mg\n",
    ],
)
def test_a_medicine_that_is_stopped_is_negated(text: str) -> None:
    (drug,) = drugs(text)

    assert drug.negated is True


def test_the_replacement_of_a_stopped_medicine_is_extracted() -> None:
    found = drugs("Lisinopril was discontinued and losartan 50 mg daily was started.")

    assert [(d.name, d.negated) for d in found] == [("Lisinopril", True), ("losartan", False)]


def test_a_mineral_is_a_drug_only_with_a_dose_or_in_a_list_of_drugs() -> None:
    assert drugs("Potassium was discussed and iron is fine.") == []
    assert [d.dose for d in drugs("Give calcium 600 mg daily.")] == ["600 mg"]
    assert [d.name for d in drugs("Medications: calcium.")] == ["calcium"]


def test_an_unknown_name_with_a_dose_is_a_doubtful_medication() -> None:
    (drug,) = drugs("Continue Zzyvoxinal 25 mg daily.")

    assert (drug.name, drug.dose, drug.rule) == ("Zzyvoxinal", "25 mg", "med.sig-only.v1")
    assert drug.engine_confidence <= 0.5


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("Lisinoprel", "lisinopril"),
        ("Gabapentine", "gabapentin"),
        ("tablet", None),
        ("Asthma", None),
    ],
)
def test_a_misspelt_name_is_recognised_and_another_word_is_not(
    word: str, meant: str | None
) -> None:
    assert misspelt(word) == meant


def test_a_row_of_antibiotic_susceptibility_is_no_medication() -> None:
    assert drugs("Nitrofurantoin Susceptible\nCiprofloxacin <=0.25 Resistant\n") == []
