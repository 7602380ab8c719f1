"""Directions of real prescriptions: dose, timing, strength and daily dose as structured values."""

from __future__ import annotations

import pytest

from pipeline.clinical.attributes import MedicationAttributes, Quantity, Timing
from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.medications.structure import medication_attributes
from pipeline.clinical.structured import Printed

# dose | frequency | strength | route => dose => timing => daily dose => flags
# A timing: times/period unit, codes of FHIR EventTiming, PRN, `n=` total number of doses.
SIGS = """
20 mg | daily | | PO => 20 mg => 1/1 d => 20 mg/d =>
2.5 mg | BID | | PO => 2.5 mg => 2/1 d => 5 mg/d =>
500 mg | TID | | PO => 500 mg => 3/1 d => 1500 mg/d =>
250 mg | QID | | PO => 250 mg => 4/1 d => 1000 mg/d =>
1,000 mg | twice daily | | => 1000 mg => 2/1 d => 2000 mg/d =>
2 g | q8h | | IV => 2 g => 1/8 h => 6 g/d =>
650 mg | q6h PRN | | PO => 650 mg => 1/6 h PRN => =>
650 mg | q4-6h | | PO => 650 mg => 1/4-6 h => 2600-3900 mg/d =>
5-10 mg | q4-6h PRN | | PO => 5-10 mg => 1/4-6 h PRN => =>
5-10 mg | daily | | PO => => 1/1 d => => dose
5 to 10 mg | daily | | PO => 5-10 mg => 1/1 d => 5-10 mg/d =>
14 units | at bedtime | | subcut => 14 {unit} => 1/1 d HS => 14 {unit}/d =>
10 units | TID with meals | | SC => 10 {unit} => 3/1 d C => 30 {unit}/d =>
10 IU | daily | | IM => 10 [IU] => 1/1 d => 10 [IU]/d =>
10 U | daily | | SC => => 1/1 d => => dose
10U | BID | | SC => => 2/1 d => => dose
½ tablet | daily | 50 mg | PO => 0.5 {tablet} => 1/1 d => 25 mg/d =>
1/2 tab | BID | 25 mg | PO => 0.5 {tablet} => 2/1 d => 25 mg/d =>
half a tablet | at night | 10 mg | => 0.5 {tablet} => 1/1 d NIGHT => 5 mg/d =>
1½ tablets | daily | 5 mg | PO => 1.5 {tablet} => 1/1 d => 7.5 mg/d =>
1 1/2 tablets | daily | | PO => 1.5 {tablet} => 1/1 d => 1.5 {tablet}/d =>
1-1/2 tablets | daily | | PO => => 1/1 d => => dose
one and a half tablets | daily | | PO => 1.5 {tablet} => 1/1 d => 1.5 {tablet}/d =>
1-2 tabs | q6h prn | 5-325 mg | PO => 1-2 {tablet} => 1/6 h PRN => =>
1-2 tablets | BID | 500 mg | PO => 1-2 {tablet} => 2/1 d => 1000-2000 mg/d =>
1 or 2 tablets | daily | | => 1-2 {tablet} => 1/1 d => 1-2 {tablet}/d =>
two tablets | three times a day | 200 mg | by mouth => 2 {tablet} => 3/1 d => 1200 mg/d =>
two (2) tablets | daily | 81 mg | => 2 {tablet} => 1/1 d => 162 mg/d =>
two (3) tablets | daily | 81 mg | => => 1/1 d => => dose
2 tablets | daily | 800/160 mg | PO => 2 {tablet} => 1/1 d => 2 {tablet}/d =>
1 tablet | BID | 800-160 mg | PO => 1 {tablet} => 2/1 d => 2 {tablet}/d =>
1 capsule | TID | 300 mg | PO => 1 {capsule} => 3/1 d => 900 mg/d =>
2 caps | qhs | 25 mg | PO => 2 {capsule} => 1/1 d HS => 50 mg/d =>
2 puffs | BID | 160/4.5 mcg | inhaled => 2 {puff} => 2/1 d => 4 {puff}/d =>
2 puffs | BID | 110 mcg/actuation | inhaled => 2 {puff} => 2/1 d => 440 ug/d =>
2 puffs | BID | 110 mcg | inhaled => 2 {puff} => 2/1 d => 4 {puff}/d =>
2 puffs | q4h PRN | 90 mcg/act | inhaled => 2 {puff} => 1/4 h PRN => =>
90 mcg | q4h PRN | | inhaled => 90 ug => 1/4 h PRN => =>
5 mL | TID | 250 mg/5 mL | PO => 5 mL => 3/1 d => 750 mg/d =>
10 mL | q12h | 400 mg/5 mL | PO => 10 mL => 1/12 h => 1600 mg/d =>
7.5 mL | twice a day | 160 mg/5 mL | => 7.5 mL => 2/1 d => 480 mg/d =>
3 mL | q6h | 2.5 mg/3 mL | nebulized => 3 mL => 1/6 h => 12 mL/d =>
5 mL | BID | | PO => 5 mL => 2/1 d => 10 mL/d =>
1 tsp | BID | 250 mg/5 mL | PO => 1 {teaspoon} => 2/1 d => 2 {teaspoon}/d =>
1 drop | BID | | OU => 1 {drop} => 2/1 d => =>
1 drop | OD | | => 1 {drop} => => => timing
1 drop | OD | | OD => 1 {drop} => => => timing
2 mg | OD | | => 2 mg => => => timing
2 mg | OD | | intravitreal => 2 mg => => => timing
5 mg | OD | | PO => 5 mg => 1/1 d => 5 mg/d =>
1 tab | OD | 5 mg | => 1 {tablet} => 1/1 d => 5 mg/d =>
500 mg | BD | | PO => 500 mg => 2/1 d => 1000 mg/d =>
500 mg | TDS | | PO => 500 mg => 3/1 d => 1500 mg/d =>
1 g | QDS | | PO => 1 g => 4/1 d => 4 g/d =>
5 mg | QD | | PO => 5 mg => 1/1 d => 5 mg/d =>
5 mg | QOD | | PO => 5 mg => 1/2 d => =>
5 mg | Q0D | | PO => 5 mg => => => timing
40 mg | every other day | | PO => 40 mg => 1/2 d => =>
70 mg | weekly | | PO => 70 mg => 1/1 wk => =>
70 mg | once weekly | | PO => 70 mg => 1/1 wk => =>
15 mg | once a week | | PO => 15 mg => 1/1 wk => =>
50,000 units | every 2 weeks | | => 50000 {unit} => 1/2 wk => =>
1,000 mcg | monthly | | IM => 1000 ug => 1/1 mo => =>
150 mg | every 3 months | | IM => 150 mg => 1/3 mo => =>
60 mg | every 6 months | | SC => 60 mg => 1/6 mo => =>
50 mg | twice weekly | | => 50 mg => 2/1 wk => =>
5 mg | MWF | | => 5 mg => 3/1 wk => =>
5 mg | Mon, Wed, Fri | | => 5 mg => 3/1 wk => =>
7.5 mg | on Monday and Thursday | | => 7.5 mg => 2/1 wk => =>
5 mg | daily except Sunday | | => 5 mg => => => timing
10 mg | every Sunday | | => 10 mg => 1/1 wk => =>
10 mg | every other Monday | | => 10 mg => => => timing
10 mg | biweekly | | => 10 mg => => => timing
1 patch | every 72 hours | 25 mcg/hr | transdermal => 1 {patch} => 1/72 h => =>
1 patch | daily | 21 mg | transdermal => 1 {patch} => 1/1 d => 1 {patch}/d =>
25 mcg/hr | every 3 days | | transdermal => 25 ug/h => 1/3 d => =>
0.1 mg/24 hr | weekly | | transdermal => 0.1 mg/(24.h) => 1/1 wk => =>
0.1 mg/24 hr | daily | | transdermal => 0.1 mg/(24.h) => 1/1 d => =>
40 mg | every other week | | SC => 40 mg => 1/2 wk => =>
15 mg/kg | q8h | | IV => 15 mg/kg => 1/8 h => 45 mg/kg/d =>
15 mg/kg/day | q8h | | IV => 15 mg/kg/d => 1/8 h => =>
0.05 mcg/kg/min | continuous | | IV => 0.05 ug/kg/min => => =>
80 mg/kg/dose | BID | | => 80 mg/kg/{dose} => 2/1 d => =>
1 g | once | | IV => 1 g => n=1 => =>
2 mg | x1 | | IV => 2 mg => n=1 => =>
4 mg | IV once | | => 4 mg => => => timing
40 mEq | once | | PO => 40 meq => n=1 => =>
20 mEq | daily | | PO => 20 meq => 1/1 d => 20 meq/d =>
17 g | daily | | PO => 17 g => 1/1 d => 17 g/d =>
60 mg | daily x 5 days | | PO => 60 mg => 1/1 d => 60 mg/d =>
500 mg | BID x 7 days | | PO => 500 mg => 2/1 d => 1000 mg/d =>
500 mg | BID for 10 days | | PO => 500 mg => 2/1 d => 1000 mg/d =>
875/125 mg | BID | | PO => => 2/1 d => =>
875-125 mg | BID | | PO => => 2/1 d => =>
0.4 mg | every 5 minutes x 3 doses | | SL => 0.4 mg => 1/5 min n=3 => =>
0.4 mg | PRN chest pain | | SL => 0.4 mg => PRN => =>
25 mg | every 6 hours as needed for itching | | PO => 25 mg => 1/6 h PRN => =>
25 mg | every morning and evening | | PO => 25 mg => 2/1 d MORN EVE => 50 mg/d =>
25 mg | every morning | | PO => 25 mg => 1/1 d MORN => 25 mg/d =>
25 mg | qAM | | PO => 25 mg => 1/1 d MORN => 25 mg/d =>
25 mg | qPM | | PO => 25 mg => 1/1 d EVE => 25 mg/d =>
20 mg | nightly | | PO => 20 mg => 1/1 d NIGHT => 20 mg/d =>
20 mg | every night at bedtime | | PO => 20 mg => 1/1 d NIGHT HS => 20 mg/d =>
20 mg | daily before breakfast | | PO => 20 mg => 1/1 d ACM => 20 mg/d =>
40 mg | every morning before breakfast | | PO => 40 mg => 1/1 d MORN ACM => 40 mg/d =>
500 mg | twice daily with meals | | PO => 500 mg => 2/1 d C => 1000 mg/d =>
500 mg | with breakfast and dinner | | PO => 500 mg => 2/1 d CM CV => 1000 mg/d =>
500 mg | with meals | | PO => 500 mg => C => =>
800 mg | TID with meals | | PO => 800 mg => 3/1 d C => 2400 mg/d =>
10 mL | before meals and at bedtime | | PO => 10 mL => AC HS => =>
500 mg | 1-0-1 | | PO => 500 mg => 2/1 d => 1000 mg/d =>
1 tab | 1-1-1 | 500 mg | PO => 1 {tablet} => 3/1 d => 1500 mg/d =>
2 tabs | 1-0-1 | 500 mg | PO => 2 {tablet} => 2/1 d => => dose
500 mg | 1-0-2 | | PO => 500 mg => => => timing
500 mg | 2-0-2 | | PO => 500 mg => => => timing
500 mg | 0-0-1 | | PO => 500 mg => 1/1 d => 500 mg/d =>
500 mg | once daily | | PO => 500 mg => 1/1 d => 500 mg/d =>
500 mg | once a day | | PO => 500 mg => 1/1 d => 500 mg/d =>
500 mg | 1 time per day | | PO => 500 mg => 1/1 d => 500 mg/d =>
500 mg | 2 times per day | | PO => 500 mg => 2/1 d => 1000 mg/d =>
500 mg | 4 times daily | | PO => 500 mg => 4/1 d => 2000 mg/d =>
500 mg | 2-3 times a day | | PO => 500 mg => 2-3/1 d => 1000-1500 mg/d =>
500 mg | q24h | | IV => 500 mg => 1/24 h => 500 mg/d =>
500 mg | q48h | | IV => 500 mg => 1/48 h => =>
500 mg | q5h | | IV => 500 mg => 1/5 h => =>
500 mg | q6 | | IV => 500 mg => => => timing
500 mg | every twelve hours | | IV => 500 mg => 1/12 h => 1000 mg/d =>
500 mg | every 6-8 hours | | PO => 500 mg => 1/6-8 h => 1500-2000 mg/d =>
500 mg | BID, TID | | PO => 500 mg => => => timing
500 mg | daily BID | | PO => 500 mg => => => timing
500 mg | BID at bedtime | | PO => 500 mg => => => timing
500 mg | daily and at bedtime | | PO => 500 mg => => => timing
500 mg | three times daily and at bedtime | | PO => 500 mg => => => timing
500 mg | up to 3 times a day | | PO => 500 mg => => => timing
500 mg | q6h while awake | | PO => 500 mg => => => timing
500 mg | as directed | | PO => 500 mg => => => timing
500 mg | at 8 am and 8 pm | | PO => 500 mg => => => timing
500 mg | BID at 8 am and 8 pm | | PO => 500 mg => 2/1 d => 1000 mg/d =>
2.4 million units | weekly | | IM => 2400000 {unit} => 1/1 wk => =>
5 million units | q4h | | IV => 5000000 {unit} => 1/4 h => 30000000 {unit}/d =>
20 mg (2 tablets) | daily | | PO => 20 mg => 1/1 d => 20 mg/d =>
20 mg (two 10 mg tablets) | daily | | PO => 20 mg => 1/1 d => 20 mg/d =>
20 mg (two 20 mg tablets) | daily | | PO => => 1/1 d => => dose
5 mL (250 mg) | TID | | PO => 250 mg => 3/1 d => 750 mg/d =>
2 tablets (50 mg total) | daily | | PO => 50 mg => 1/1 d => 50 mg/d =>
2 tabs = 20 mg | BID | | PO => 20 mg => 2/1 d => 40 mg/d =>
10 meq/L | daily | | PO => => 1/1 d => => dose
2 drops | QID | | both ears => 2 {drop} => 4/1 d => =>
2 drops | QID | | => 2 {drop} => 4/1 d => =>
40 mg | daily 30 minutes before breakfast | | PO => 40 mg => 1/1 d ACM => 40 mg/d =>
88 mcg | daily on an empty stomach | | PO => 88 ug => 1/1 d => 88 ug/d =>
5 mg | Monday through Friday | | PO => 5 mg => 5/1 wk => =>
5 mg | q.i.d | | PO => 5 mg => 4/1 d => 20 mg/d =>
5 mg | QD-BID | | PO => 5 mg => => => timing
5 mg | daily or BID | | PO => 5 mg => => => timing
5 mg | daily divided TID | | PO => 5 mg => => => timing
5 mg | 30 units in the morning and 20 units in the evening | | SC => 5 mg => => => timing
24-26 mg | BID | | PO => => 2/1 d => => dose
500 mg | at 8 am | | PO => 500 mg => => => timing
500 mg | daily at 8 am | | PO => 500 mg => 1/1 d => 500 mg/d =>
500 mg | next morning | | PO => 500 mg => => => timing
500 mg | once in the morning | | PO => 500 mg => => => timing
500 mg | 5 days a week | | PO => 500 mg => 5/1 wk => =>
500 mg | stat | | PO => 500 mg => => =>
500 mg | b.i.d. | | p.o. => 500 mg => 2/1 d => 1000 mg/d =>
500 mg | | | PO => 500 mg => => =>
| BID | | PO => => 2/1 d => =>
20 | daily | | PO => => 1/1 d => => dose
0 mg | daily | | PO => => 1/1 d => => dose
05 mg | daily | | PO => => 1/1 d => => dose
1.000 mg | daily | | PO => => 1/1 d => => dose
2.500 units | daily | | => => 1/1 d => => dose
3.125 mg | twice daily | | PO => 3.125 mg => 2/1 d => 6.25 mg/d =>
0.125 mg | daily | | PO => 0.125 mg => 1/1 d => 0.125 mg/d =>
.5 mg | BID | | PO => 0.5 mg => 2/1 d => 1 mg/d =>
0,5 mg | BID | | PO => 0.5 mg => 2/1 d => 1 mg/d =>
2,5 mg | BID | | PO => 2.5 mg => 2/1 d => 5 mg/d =>
1,250 mg | BID | | PO => 1250 mg => 2/1 d => 2500 mg/d =>
88 mcg | daily | | PO => 88 ug => 1/1 d => 88 ug/d =>
88 µg | daily | | PO => 88 ug => 1/1 d => 88 ug/d =>
88 μg | daily | | PO => 88 ug => 1/1 d => 88 ug/d =>
20 MG | DAILY | | ORAL => 20 mg => 1/1 d => 20 mg/d =>
two 20 mg tablets | daily | | PO => 2 {tablet} => 1/1 d => 40 mg/d =>
2 tablets (50 mg) | daily | | PO => => 1/1 d => => dose
up to 40 mg | daily | | PO => => 1/1 d => => dose
<40 mg | daily | | PO => => 1/1 d => => dose
10-5 mg | daily | | PO => => 1/1 d => => dose
10 mg-20 mg | daily | | PO => => 1/1 d => => dose
2 sprays | daily | 50 mcg/spray | intranasal => 2 {spray} => 1/1 d => =>
1 application | BID | 1% | topical => 1 {application} => 2/1 d => 2 {application}/d =>
1 suppository | daily PRN | 10 mg | PR => 1 {suppository} => 1/1 d PRN => =>
12 mg | on alternate days | | => 12 mg => 1/2 d => =>
5 mg | every third day | | => 5 mg => 1/3 d => =>
5 mg | nocte | | => 5 mg => 1/1 d NIGHT => 5 mg/d =>
5 mg | mane | | => 5 mg => 1/1 d MORN => 5 mg/d =>
5 mg | ON | | => 5 mg => => => timing
1 tablet | daily | 10 | PO => 1 {tablet} => 1/1 d => => strength
1 tablet | daily | 70/30 | PO => 1 {tablet} => 1/1 d => => strength
1 tablet | daily | 20-40 mg | PO => 1 {tablet} => 1/1 d => => strength
5 mL | daily | 100 mg | PO => 5 mL => 1/1 d => 5 mL/d =>
"""


def parsed_sigs() -> list[tuple[str, ...]]:
    rows = []
    for line in SIGS.strip().splitlines():
        sig, dose, timing, daily, flags = (part.strip() for part in line.split("=>"))
        rows.append((*(part.strip() for part in sig.split("|")), dose, timing, daily, flags))
    return rows


def structured(
    name: str = "Examplin", **printed: str | None
) -> tuple[MedicationAttributes, tuple[str, ...]]:
    facts = EntityFacts(key="e1", category="medication", name=name, quote=name, page=1)
    found = medication_attributes(Printed(facts=facts, **printed))
    assert isinstance(found.attributes, MedicationAttributes)
    return found.attributes, found.flags


def shown(quantity: Quantity | None) -> str:
    if quantity is None or quantity.number is None:
        return ""
    high = f"-{quantity.high}" if quantity.high is not None else ""
    return f"{quantity.number}{high} {quantity.unit}"


def shown_timing(timing: Timing | None) -> str:
    if timing is None:
        return ""
    parts = []
    if timing.frequency is not None:
        most = f"-{timing.frequency_max}" if timing.frequency_max is not None else ""
        longest = f"-{timing.period_max}" if timing.period_max is not None else ""
        parts.append(f"{timing.frequency}{most}/{timing.period}{longest} {timing.period_unit}")
    parts.extend(timing.when)
    parts.extend(["PRN"] if timing.as_needed else [])
    parts.extend([f"n={timing.count}"] if timing.count is not None else [])
    return " ".join(parts)


@pytest.mark.parametrize(
    ("dose", "frequency", "strength", "route", "taken", "timing", "daily", "flags"), parsed_sigs()
)
def test_a_sig_is_structured(
    dose: str, frequency: str, strength: str, route: str,
    taken: str, timing: str, daily: str, flags: str,
) -> None:  # fmt: skip
    found, raised = structured(
        dose=dose or None,
        frequency=frequency or None,
        strength=strength or None,
        route=route or None,
    )
    assert shown(found.dose) == taken
    assert shown_timing(found.timing) == timing
    assert shown(found.daily_dose) == daily
    assert [each.partition(":")[2] for each in raised] == flags.split()
    assert found.dose is None or found.dose.printed == dose
    assert found.timing is None or found.timing.printed == frequency


def test_a_day_without_the_dose_leaves_the_timing_open() -> None:
    facts = EntityFacts(
        key="e1", category="medication", name="levothyroxine", page=1,
        quote="levothyroxine 88 mcg daily except Sunday",
    )  # fmt: skip
    found = medication_attributes(Printed(facts=facts, dose="88 mcg", frequency="daily"))
    assert isinstance(found.attributes, MedicationAttributes)
    assert found.attributes.daily_dose is None
    assert found.flags == ("timing_not_understood:timing",)


def test_a_combination_by_name_has_two_strengths() -> None:
    found, flags = structured("sacubitril-valsartan", dose="24-26 mg", frequency="BID")
    assert [(str(q.number), q.unit) for q in found.strength] == [("24", "mg"), ("26", "mg")]
    assert found.dose is not None
    assert found.dose.number is None
    assert found.daily_dose is None
    assert flags == ()


@pytest.mark.parametrize(
    ("dose", "sign", "number"),
    [
        ("1,250 mg", None, "1250"),
        ("1,250 mg", ".", "1250"),
        ("1,250 mg", ",", ""),
        ("3,125 mg", None, ""),
        ("3,125 mg", ".", "3125"),
        ("3.125 mg", None, "3.125"),
        ("3.125 mg", ",", ""),
        ("2,5 mg", None, "2.5"),
        ("2,5 mg", ",", "2.5"),
        ("2,5 mg", ".", ""),
        ("1,200,000 units", None, "1200000"),
    ],
)
def test_a_figure_with_two_readings_needs_proof(dose: str, sign: str | None, number: str) -> None:
    found, flags = structured(dose=dose, decimal_sign=sign)
    assert found.dose is not None
    assert (found.dose.number is None) is (number == "")
    assert number == "" or str(found.dose.number) == number
    assert flags == (() if number else ("dose_not_understood:dose",))


def test_a_number_of_doses_in_the_quote_leaves_no_daily_dose() -> None:
    facts = EntityFacts(
        key="e1", category="medication", name="vancomycin", page=1,
        quote="vancomycin 1 g IV q12h x 3 doses",
    )  # fmt: skip
    found = medication_attributes(Printed(facts=facts, dose="1 g", frequency="q12h")).attributes
    assert isinstance(found, MedicationAttributes)
    assert found.timing is not None
    assert found.timing.count == 3
    assert found.daily_dose is None


@pytest.mark.parametrize(
    ("printed", "indication"),
    [
        ("hypertension", "hypertension"),
        ("7 days", None),
        ("for 7 days", None),
        ("now", None),
        ("a total of 5 days", None),
        ("the next 2 weeks", None),
        ("a few days", None),
        ("day 1 nausea", None),
        ("dayside cramps", "dayside cramps"),
    ],
)
def test_a_length_of_time_is_no_indication(printed: str, indication: str | None) -> None:
    assert structured(indication=printed)[0].indication == indication


def test_a_doubted_dose_has_no_daily_dose() -> None:
    facts = EntityFacts(
        key="e1", category="medication", name="lisinopril", page=1, quote="lisinopril 20 mg daily",
        review_flags=("decimal_sign_contradicts:dose",),
    )  # fmt: skip
    found = medication_attributes(Printed(facts=facts, dose="20 mg", frequency="daily")).attributes
    assert isinstance(found, MedicationAttributes)
    assert found.dose is not None
    assert found.daily_dose is None
