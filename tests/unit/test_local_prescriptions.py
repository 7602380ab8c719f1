"""The grammar of prescriptions: strength, steps, changes, corrections, limits and states."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_provider import ask, page


def drugs(text: str) -> list[FoundEntity]:
    return [e for e in ask(page(text)).entities if e.category == "medication"]


def is_taken(drug: FoundEntity) -> bool:
    return not (
        drug.negated
        or drug.temporality == "historical"
        or drug.certainty in ("possible", "hypothetical")
        or drug.experiencer in ("family", "other")
    )


def doses(text: str) -> list[tuple[str | None, str | None]]:
    return [(d.dose, d.frequency) for d in drugs(text) if is_taken(d)]


@pytest.mark.parametrize(
    ("text", "dose", "frequency"),
    [
        ("Gabapentin 300 mg capsules, 2 capsules every night", "2 capsules", "every night"),
        ("Ibuprofen 100 mg/5 mL, 7.5 mL every 8 hours", "7.5 mL", "every 8 hours"),
        ("Clonazepam 0.5 mg 1/2 tab qhs", "1/2 tab", "qhs"),
        ("Sertraline 50 mg, one and a half tablets daily", "one and a half tablets", "daily"),
        ("Lantus 100 units/mL, inject 22 units nightly", "22 units", "nightly"),
        ("Fluticasone 110 mcg/actuation, 2 puffs BID", "2 puffs", "BID"),
        ("Semaglutide 1 mg/0.75 mL pen, inject 1 mg once a week", "1 mg", "once a week"),
        ("Metformin 500 mg tablets, 1000 mg twice daily", "1000 mg", "twice daily"),
        ("Atorvastatin (Lipitor) 40 mg tablet, take 1 tablet nightly", "1 tablet", "nightly"),
        ("Amoxicillin 250 mg (5 mL) TID", "250 mg", "TID"),
        ("Prednisone 40 mg (two 20 mg tablets) daily", "40 mg", "daily"),
        ("Naproxen 250 mg tablets\nTake 2 tablets with food", "2 tablets", "with food"),
    ],
)  # fmt: skip
def test_the_dose_is_what_is_taken_and_not_what_the_product_contains(
    text: str, dose: str, frequency: str
) -> None:
    assert doses(f"MEDICATIONS\n{text}\n") == [(dose, frequency)]


@pytest.mark.parametrize(
    ("text", "frequency"),
    [
        ("Ramipril 5 mg OD", "OD"),
        ("Naproxen 500 mg BD", "BD"),
        ("Paracetamol 1 g QDS", "QDS"),
        ("Flucloxacillin 500 mg TDS", "TDS"),
        ("Pantoprazole 40 mg 1-0-0", "1-0-0"),
        ("Rosuvastatin 10 mg 0-0-1-0", "0-0-1-0"),
        ("Metformin 500 mg 1-0-1 after meals", "1-0-1 after meals"),
        ("Ramipril 5 mg nocte", "nocte"),
        ("Risedronate 35 mg once a week on Monday", "once a week on Monday"),
        ("Meloxicam 15 mg every other day", "every other day"),
        ("Digoxin 125 mcg Monday to Friday", "Monday to Friday"),
        ("Buprenorphine 10 mcg/hr patch every 7 days", "every 7 days"),
    ],
)
def test_a_frequency_is_read_as_printed(text: str, frequency: str) -> None:
    (drug,) = drugs(f"MEDICATIONS\n{text}\n")

    assert drug.frequency == frequency


def test_od_after_drops_is_the_right_eye() -> None:
    (drug,) = drugs("MEDICATIONS\nTimolol 0.5% 1 drop OD BID\n")

    assert (drug.dose, drug.route, drug.frequency) == ("1 drop", "OD", "BID")


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (
            "Lamotrigine 25 mg daily for 2 weeks, then 50 mg daily for 2 weeks, then 100 mg daily",
            [("25 mg", "daily"), ("50 mg", "daily"), ("100 mg", "daily")],
        ),
        ("Dexamethasone taper: 8 mg x 3 days, 4 mg x 3 days", [("8 mg", None), ("4 mg", None)]),
        ("Prednisone: days 1-3: 30 mg, days 4-6: 15 mg", [("30 mg", None), ("15 mg", None)]),
        ("Insulin NPH 20 units in the morning and 10 units at bedtime",
         [("20 units", "in the morning"), ("10 units", "at bedtime")]),
        ("Levetiracetam 500 mg AM, 750 mg PM", [("500 mg", "AM"), ("750 mg", "PM")]),
        ("Quetiapine 25 mg qam, 50 mg noon, 200 mg qhs",
         [("25 mg", "qam"), ("50 mg", "noon"), ("200 mg", "qhs")]),
        ("Warfarin 7.5 mg Mon/Wed/Fri, 5 mg all other days",
         [("7.5 mg", "Mon/Wed/Fri"), ("5 mg", "all other days")]),
        ("Apixaban 10 mg BID x 7 days then 5 mg BID", [("10 mg", "BID"), ("5 mg", "BID")]),
        ("Prednisone 10 mg tablets: 3 tablets daily x 3 days, 2 tablets daily x 3 days",
         [("3 tablets", "daily"), ("2 tablets", "daily")]),
        ("Warfarin 5 mg daily except 2.5 mg on Wednesday",
         [("5 mg", "daily"), ("2.5 mg", "on Wednesday")]),
        ("Furosemide 40 mg twice a day for 3 days then once a day",
         [("40 mg", "twice a day"), ("40 mg", "once a day")]),
        ("Metformin 500 mg BID x 1 week, then increase to 1000 mg BID",
         [("500 mg", "BID"), ("1000 mg", "BID")]),
        ("Prednisone 40 mg daily x5d -> 20 mg daily x5d", [("40 mg", "daily"), ("20 mg", "daily")]),
        ("Insulin 70/30: 20 units before breakfast, 10 units before supper",
         [("20 units", "before breakfast"), ("10 units", "before supper")]),
        ("Lithium 300 mg qAM / 600 mg qHS", [("300 mg", "qAM"), ("600 mg", "qHS")]),
        ("Amiodarone 400 mg BID for 1 week; then 200 mg daily",
         [("400 mg", "BID"), ("200 mg", "daily")]),
    ],
)  # fmt: skip
def test_each_step_is_an_entity_in_the_order_of_the_text(
    text: str, steps: list[tuple[str, str | None]]
) -> None:
    assert doses(f"PLAN\n{text}.\n") == steps
    for drug in drugs(f"PLAN\n{text}.\n"):
        assert drug.dose is not None
        assert drug.dose in drug.quote


@pytest.mark.parametrize(
    ("text", "now"),
    [
        ("Raise amlodipine from 2.5 mg to 5 mg daily", ("5 mg", "daily")),
        ("Levothyroxine 75 mcg daily, changed to 88 mcg daily", ("88 mcg", "daily")),
        ("Carvedilol lowered to 6.25 mg BID from 12.5 mg BID", ("6.25 mg", "BID")),
        ("Amlodipine 5 mg -> 10 mg daily", ("10 mg", "daily")),
        ("Lisinopril increased 10 mg to 20 mg daily", ("20 mg", "daily")),
        ("Lamotrigine raised from 100 to 150 mg daily", ("150 mg", "daily")),
        ("Amlodipine 10 mg daily (was 5 mg)", ("10 mg", "daily")),
        ("Citalopram 20 mg daily; increase to 40 mg daily", ("40 mg", "daily")),
        ("Metformin 500 mg daily, changed to BID", ("500 mg", "BID")),
        ("Bumetanide 1 mg daily titrate up to 2 mg daily", ("1 mg", "daily")),
        ("Sertraline 50 mg daily, may increase to 100 mg daily", ("50 mg", "daily")),
        ("Metoprolol succinate 25 mg daily, target dose 200 mg daily", ("25 mg", "daily")),
        ("Warfarin dose is 1.5 mg daily, not 15 mg", ("1.5 mg", "daily")),
        ("Lisinopril 40 mg should read 4 mg daily", ("4 mg", "daily")),
        ("Tramadol 50 mg q6h (maximum 400 mg/day)", ("50 mg", "q6h")),
    ],
)
def test_the_dose_after_a_change_or_correction_is_the_only_current_dose(
    text: str, now: tuple[str, str]
) -> None:
    assert doses(f"PLAN\n{text}.\n") == [now]


@pytest.mark.parametrize(
    "text",
    [
        "Do not exceed ibuprofen 2.4 g per day.",
        "Titrate carvedilol up to 25 mg BID.",
        "Do not take more than 4 g of acetaminophen per day.",
        "Increase insulin glargine by 4 units.",
    ],
)
def test_a_limit_a_target_or_a_difference_is_no_current_dose(text: str) -> None:
    found = drugs(f"PLAN\n{text}\n")

    assert found
    assert not [d.dose for d in found if d.dose is not None and is_taken(d)]


@pytest.mark.parametrize(
    "text",
    [
        "Lisinopril 10 mg 20 mg daily",
        "Lisinopril 10 mg or 20 mg daily",
        "Lisinopril 10 daily",
        "Levothyroxine 50 mcg daily, 2 tablets on Sunday",
        "Prednisone taper 60-40-20 mg",
    ],
)
def test_an_amount_without_a_role_makes_the_line_not_understood(text: str) -> None:
    (drug,) = drugs(f"MEDICATIONS\n{text}\n")

    assert drug.rule.endswith("not-understood.v1")
    assert (drug.dose, drug.route, drug.frequency) == (None, None, None)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MEDICATIONS\nAmlodipine 5 mg daily (stopped 03/2023)", "amlodipine"),
        ("MEDICATIONS\nAmlodipine 5 mg daily - d/c'd 3/1/24", "amlodipine"),
        ("MEDICATIONS\nSertraline 50 mg daily (not taking: cost)", "sertraline"),
        ("MEDICATIONS\nClopidogrel 75 mg daily, on hold until Friday", "clopidogrel"),
        ("MEDICATIONS\nGlipizide 5 mg BID - charted in error", "glipizide"),
        ("MEDICATIONS\nAtorvastatin 20 mg nightly; patient never filled", "atorvastatin"),
        ("MEDICATIONS\nRanitidine 150 mg BID. Discontinued 2020.", "ranitidine"),
        ("MEDICATIONS\nRanitidine 150 mg BID Discontinued", "ranitidine"),
        ("MEDICATIONS\nMeds discontinued today:\nRanitidine 150 mg BID", "ranitidine"),
        ("PREVIOUS MEDICATIONS\nSimvastatin 40 mg daily", "simvastatin"),
        ("MEDICATIONS\nNaproxen 250 mg BID - patient reports not taking", "naproxen"),
        ("MEDICATIONS\nNaproxen 250 mg BID (prescribed but never picked up)", "naproxen"),
        ("MEDICATIONS\nNaproxen 250 mg BID - restart after the procedure", "naproxen"),
        ("MEDICATIONS\nThe following drugs were stopped:\nNaproxen 250 mg BID", "naproxen"),
        ("DISCHARGE MEDICATIONS\nStop taking:\nNaproxen 250 mg BID", "naproxen"),
        ("PLAN\nSwitched to celecoxib 100 mg daily from naproxen 250 mg.", "naproxen"),
        ("PLAN\nSubstitute celecoxib 100 mg for naproxen 250 mg.", "naproxen"),
        ("PLAN\nWhen ferritin is back, start naproxen 250 mg BID.", "naproxen"),
        ("MEDICATIONS\nRefused by the family:\nNaproxen 250 mg BID", "naproxen"),
        ("MEDICATIONS ON HOLD\nApixaban 5 mg BID", "apixaban"),
        ("HPI\nShe used to take fluoxetine 20 mg daily.", "fluoxetine"),
        ("HPI\nUnable to tolerate gabapentin 600 mg.", "gabapentin"),
        ("PLAN\nReplace simvastatin 40 mg with rosuvastatin 10 mg.", "simvastatin"),
        ("PLAN\nDabigatran was switched to apixaban 5 mg BID.", "dabigatran"),
        ("PLAN\nStart losartan 50 mg daily instead of lisinopril 10 mg.", "lisinopril"),
        ("PLAN\nConsider adding empagliflozin 10 mg daily.", "empagliflozin"),
        ("PLAN\nAdd amlodipine 5 mg daily if BP remains high.", "amlodipine"),
        ("PLAN\nWe will begin semaglutide 0.25 mg weekly once labs return.", "semaglutide"),
        ("PLAN\nRestart apixaban 5 mg BID after the colonoscopy.", "apixaban"),
        ("PLAN\nPatient refused atorvastatin 40 mg.", "atorvastatin"),
        ("HPI\nHis wife takes zolpidem 10 mg nightly.", "zolpidem"),
        ("HPI\nThe patient's roommate was prescribed oxycodone 5 mg.", "oxycodone"),
        ("HPI\nShe took her husband's zolpidem 10 mg.", "zolpidem"),
    ],
)
def test_a_medication_that_the_patient_does_not_take_says_so(text: str, name: str) -> None:
    found = [d for d in drugs(text + "\n") if d.name.lower() == name]

    assert found
    assert not any(is_taken(d) for d in found)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("PLAN\nReplace simvastatin 40 mg with rosuvastatin 10 mg.", "rosuvastatin"),
        ("PLAN\nSwitched from digoxin 0.25 mg to bisoprolol 5 mg daily.", "bisoprolol"),
        ("PLAN\nTransition from heparin to enoxaparin 80 mg BID.", "enoxaparin"),
        ("PLAN\nStop lisinopril and start losartan 50 mg daily.", "losartan"),
        ("PLAN\nContinue aspirin 81 mg daily, stop clopidogrel 75 mg daily.", "aspirin"),
        ("PLAN\nAspirin 81 mg held yesterday, now resumed.", "aspirin"),
        ("PLAN\nMetoprolol 50 mg BID, hold for SBP < 100.", "metoprolol"),
        ("PLAN\nPrednisone 40 mg daily for 3 days, then stop.", "prednisone"),
        ("PLAN\nStart cephalexin 500 mg QID after meals.", "cephalexin"),
        ("HPI\nHer daughter gives her acetaminophen 500 mg BID.", "acetaminophen"),
        ("HPI\nHer mother is on warfarin 5 mg. She takes aspirin 81 mg daily.", "aspirin"),
        ("HPI\nMother reports he takes cetirizine 10 mg daily.", "cetirizine"),
        (
            "DISCHARGE MEDICATIONS\nStop taking:\nNaproxen\nContinue:\nAspirin 81 mg daily",
            "aspirin",
        ),
        ("PLAN\nSubstitute celecoxib 100 mg for naproxen 250 mg.", "celecoxib"),
        ("MEDICATIONS\nApixaban 5 mg BID\n\nStopped medications:\nNaproxen 250 mg", "apixaban"),
        ("MEDICATIONS PRIOR TO ADMISSION\nApixaban 5 mg BID", "apixaban"),
        (
            (
                "MEDICATIONS\nMeds discontinued today:\nRanitidine 150 mg BID\n"
                "Current medications:\nLisinopril 10 mg daily"
            ),
            "lisinopril",
        ),
        (
            (
                "MEDICATION ADMINISTRATION RECORD\nScheduled medication Dose Given\n"
                "apixaban 5 mg PO BID refused"
            ),
            "apixaban",
        ),
    ],
)
def test_a_medication_that_the_patient_takes_is_taken(text: str, name: str) -> None:
    found = [d for d in drugs(text + "\n") if d.name.lower() == name]

    assert [is_taken(d) for d in found] == [True]


def test_ns_is_a_drug_only_beside_an_amount_or_an_infusion() -> None:
    assert drugs("Exam: NS. Labs NS.\n") == []
    assert [d.dose for d in drugs("Given NS 1 L bolus.\n")] == ["1 L"]


def test_a_surname_in_a_list_of_drugs_is_no_misspelt_drug() -> None:
    text = "MEDICATIONS\nLisinopril 10 mg daily\nReviewed by A. Lipitar, RN\n"

    assert [d.name for d in drugs(text)] == ["Lisinopril"]


def test_a_struck_dose_is_the_previous_dose() -> None:
    (found,) = drugs("Ramipril ~~5 mg~~ 10 mg ~~daily~~ BD")

    assert (found.dose, found.previous_dose, found.frequency) == ("10 mg", "5 mg", "BD")
    assert found.status == "changed"


def test_steps_on_lines_below_the_name_belong_to_the_name() -> None:
    found = drugs("Prednisolone:\n- 30 mg daily for 3 days\n- 15 mg daily for 3 days")

    assert [(e.dose, e.step) for e in found] == [("30 mg", 1), ("15 mg", 2)]


def test_directions_behind_sig_leave_the_amount_of_the_product_as_strength() -> None:
    (found,) = drugs("Ramipril 5 mg capsule. Sig: take 2 capsules daily. Disp: 60.")

    assert (found.strength, found.dose, found.frequency) == ("5 mg", "2 capsules", "daily")


@pytest.mark.parametrize(
    ("text", "dose", "previous", "status"),
    [
        ("Ramipril dose doubled to 10 mg daily.", "10 mg", None, "changed"),
        ("Halve the dose of ramipril to 2.5 mg.", "2.5 mg", None, "changed"),
        ("Ramipril 5 \N{RIGHTWARDS ARROW} 10 mg daily", "10 mg", None, "changed"),
        ("Ramipril: old dose 5 mg, new dose 10 mg daily", "10 mg", "5 mg", "changed"),
        ("Titrate ramipril from 5 mg to 10 mg daily.", "10 mg", "5 mg", "changed"),
        ("Lower ramipril to 2.5 mg.", "2.5 mg", None, "changed"),
    ],
)
def test_a_change_gives_the_new_dose(
    text: str, dose: str, previous: str | None, status: str
) -> None:
    (found,) = drugs(text)

    assert (found.dose, found.previous_dose, found.status) == (dose, previous, status)


@pytest.mark.parametrize(
    ("text", "dose"),
    [
        ("Ramipril 5 mg daily, hold if SBP < 100", "5 mg"),
        ("Levetiracetam 500 mg BID (1000 mg total daily)", "500 mg"),
        ("Gabapentin 300 mg TID (900 mg/day)", "300 mg"),
        ("Ramipril 5 mg oral tablet 1 tablet by mouth every evening", "1 tablet"),
        ("ramipril (ALTACE, RAMICARD) 5 MG capsule Take 5 mg by mouth daily.", "5 mg"),
        ("Nicotine patch 21 mg/24 hr daily", "21 mg/24 hr"),
        ("Warfarin 5 mg M/W/F", "5 mg"),
    ],
)
def test_amounts_that_only_explain_the_dose_are_no_second_dose(text: str, dose: str) -> None:
    (found,) = drugs(text)

    assert found.dose == dose
    assert "not-understood" not in str(found.rule)


def test_a_state_of_all_drugs_behind_a_list_leaves_no_drug_as_taken() -> None:
    found = drugs("MEDICATIONS\nRamipril 5 mg daily, metformin 500 mg BID (both stopped)")

    assert len(found) == 2
    assert all(str(e.rule).endswith("not-understood.v1") for e in found)


def test_a_state_in_brackets_belongs_to_the_drug_before() -> None:
    text = "MEDICATIONS\nRamipril 5 mg daily [discontinued], metformin 500 mg BID"

    first, second = drugs(text)

    assert not is_taken(first)
    assert is_taken(second)


@pytest.mark.parametrize("frequency", ["q.d.", "b.i.d.", "t.i.d."])
def test_the_dots_of_a_frequency_end_no_statement(frequency: str) -> None:
    (found,) = drugs(f"MEDICATIONS\nRamipril 5 mg {frequency} - stopped")

    assert (found.frequency, found.status) == (frequency, "stopped")
