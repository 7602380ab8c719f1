"""The grammar of vital signs reads what it explains, and abstains from all other numbers."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_provider import ask, page

_HEAD = "OFFICE VISIT\nDate of Service: 05/16/2025\n\nVITALS\n"


def vitals(text: str) -> list[FoundEntity]:
    return [e for e in ask(page(_HEAD + text)).entities if e.category == "vital"]


def values(text: str) -> list[tuple[str | None, str | None]]:
    return [(v.value, v.unit) for v in vitals(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BP: 144/82, 140/80, 134/78", ["144/82", "140/80", "134/78"]),
        ("BP 136/84 (left arm, sitting), 130/80 (right arm)", ["136/84", "130/80"]),
        ("BP sitting 126/80 standing 112/72", ["126/80", "112/72"]),
        ("BP 88/52 => 104/66", ["88/52", "104/66"]),
        ("BP 160/94 improved to 138/82", ["160/94", "138/82"]),
        ("BP 166/94; recheck 144/84", ["166/94", "144/84"]),
        ("BP 166/94. Repeat 144/84.", ["166/94", "144/84"]),
        ("BP 150/90 at 08:00, 140/85 at 12:00", ["150/90", "140/85"]),
        ("HR 118, now 92", ["118", "92"]),
        ("HR: 88, 92, 84", ["88", "92", "84"]),
        ("Temp 38.9 C, later 37.4 C", ["38.9", "37.4"]),
        ("SpO2 86% RA -> 94% on 3 L", ["86", "94"]),
        ("HR 58 lying, 124 standing", ["58", "124"]),
        ("BP 124/58\nResp: 18\nHR: 112", ["124/58", "18", "112"]),
        ("BP 150/92 - 128/80", ["150/92", "128/80"]),
        ("Pain 8/10, now 2/10", ["8/10", "2/10"]),
        ("Temp 99.1 F, Tmax 102.2 F", ["99.1", "102.2"]),
    ],
)
def test_each_of_several_readings_is_an_entity_in_the_order_of_the_text(
    text: str, expected: list[str]
) -> None:
    assert [value for value, _ in values(text)] == expected


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("HR 64-82", "64-82", None),
        ("RR 14 to 20", "14 to 20", None),
        ("BP (108-136)/(62-80)", "(108-136)/(62-80)", None),
        ("BP 110/60 - 132/84", "110/60 - 132/84", None),
        ("BP 126 over 74", "126/74", None),
        ("BP (!) 152/94", "152/94", None),
        ("BP 92/palp", "92/palp", None),
        ("HR in the 90s", "90s", None),
        ("SpO2 >95% on RA", ">95", "%"),
        ("Wt 8 lb 3 oz", "8 lb 3 oz", None),
        ("Weight 9 pounds and 12 ounces", "9 pounds and 12 ounces", None),
        ("Weight 14 lbs 2 ozs", "14 lbs 2 ozs", None),
        ("Weight 2,980 g", "2,980", "g"),
        ("Height 4 feet 11 1/2 inches", "4 feet 11 1/2 inches", None),
        ("Ht 62 1/2 in", "62 1/2", "in"),
        ("Weight 64 kg (141 lb)", "64", "kg"),
        ("Height: 5' 4\" (1.626 m)", "5' 4\"", None),
        ("Temp 99.0 °F (37.2 °C) (Oral)", "99.0", "°F"),
        ("BP 118/76 (90)", "118/76", None),
        ("BP on 11/14 was 132/84", "132/84", None),
        ("Temp 37.9", "37.9", None),
        ("Weight (kg): 71", "71", "kg"),
        ("Weight in kg: 71", "71", "kg"),
        ("Pain scale 0-10: 6", "6", None),
        ("Weight: 15 kg (60th percentile)", "15", "kg"),
        ("Height 104 cm (75 %ile, Z= 0.67)", "104", "cm"),
        ("Weight 82 kg (-3 kg)", "82", "kg"),
        ("Weight 82 kg, down 3 kg since March", "82", "kg"),
    ],
)
def test_one_reading_is_read_whole(text: str, value: str, unit: str | None) -> None:
    assert values(text) == [(value, unit)]


@pytest.mark.parametrize(
    "text",
    [
        "Hold metoprolol for HR 52",
        "Hold if BP 95/60 or HR 50",
        "Notify provider for Temp 101.5, HR 125",
        "Go to the ED for temperature of 103",
        "Blood pressure goal 130/80",
        "Target HR of 70",
        "Keep MAP 65",
        "Titrate norepinephrine to MAP 65",
        "Goal weight: 150 lb",
        "BP should be 120/80",
        "HR 50 or less",
        "BP 130/80 is our goal",
        "Call your doctor if:\n- Temp 101\n- HR 120",
        "Tylenol 650 mg PRN temp 101",
        "Weight down 6 lbs",
        "Weight up 4 kg since spring",
        "Weight gained 3 kg",
        "Weight: -2 kg since the last visit",
        "Weight 3 lb less than last month",
        "Weight loss 12 lbs",
        "Weight: 2 lb gain",
        "Weight has been 2 kg up",
        "Maximum predicted HR 170",
        "Hypertension is defined as BP 140/90",
        "Height 5-10",
        "Weight 45th percentile",
        "BMI: 91st %ile",
        "Height percentile 55",
        "Weight-for-age 30th percentile",
        "BP 142/88 entered in error",
        "SpO2 goal 92% on RA",
        "138/4.1/102/25/16/1.0/92",
    ],
)
def test_a_goal_a_condition_a_change_or_a_percentile_is_no_reading(text: str) -> None:
    assert vitals(text) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("BP goal <130/80, today 142/88", "142/88"),
        ("BP 142/88 (goal <130/80)", "142/88"),
        ("BP 152/92, above goal of 130/80", "152/92"),
        ("BP 126/76 at goal", "126/76"),
        ("MAP target >65, currently 72", "72"),
        ("Our target BP is less than 130/80 but today BP is 150/90.", "150/90"),
        ("Weight decreased to 78 kg", "78"),
    ],
)
def test_a_reading_beside_a_goal_or_a_change_is_read(text: str, value: str) -> None:
    assert [v for v, _ in values(text)] == [value]


@pytest.mark.parametrize(
    ("text", "earlier", "current"),
    [
        ("BP at last visit: 148/92. BP today: 126/80.", "148/92", "126/80"),
        ("Weight: 150 lb (68 kg), last visit 160 lb", "160", "150"),
        ("BP 142/88, previously 150/90", "150/90", "142/88"),
        ("Weight 80 kg (was 82 kg in January 2025)", "82", "80"),
        ("Weight increased from 80 kg to 85 kg", "80", "85"),
        ("Weight 80 kg vs 82 kg last month", "82", "80"),
        ("HR 76, yesterday 98", "98", "76"),
        ("Last month his weight was 82 kg. Weight 80 kg", "82", "80"),
        ("On 01/15/2025 BP was 150/90 and today 130/80", "150/90", "130/80"),
    ],
)
def test_an_earlier_reading_is_historical(text: str, earlier: str, current: str) -> None:
    found = {v.value: v.temporality for v in vitals(text)}

    assert found == {earlier: "historical", current: None}


def test_an_earlier_reading_keeps_its_date_if_the_order_of_day_and_month_is_proved() -> None:
    (dated,) = vitals("Previous weight 82 kg (01/05/2024).")

    assert (dated.temporality, dated.date) == ("historical", "2024-01-05")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Dry weight 71 kg", "Dry weight"),
        ("Predicted body weight 61 kg", "Predicted body weight"),
        ("Ideal body weight 61 kg", "Ideal body weight"),
        ("Birth weight 3.2 kg", "Birth weight"),
    ],
)
def test_another_kind_of_weight_has_its_own_name(text: str, name: str) -> None:
    assert [v.name for v in vitals(text)] == [name]


def test_a_current_weight_beside_a_dry_weight_is_a_plain_weight() -> None:
    found = [(v.name, v.value) for v in vitals("Dry weight 70 kg, today 73 kg")]

    assert found == [("Dry weight", "70"), ("weight", "73")]


@pytest.mark.parametrize(
    "text",
    [
        "HR 72 88",
        "HR 72, 98.6, 16",
        "BP 118/76 72 16",
        "Weight 70 kg (190 lb)",
        "Temp 98.6 3 4",
        "Time 08:00 12:00 16:00\nBP 120/80 118/76",
    ],
)
def test_an_unexplained_number_leaves_the_statement_without_a_value(text: str) -> None:
    (found,) = vitals(text)

    assert (found.value, found.unit) == (None, None)
    assert found.rule.endswith("not-understood.v1")


def test_a_flowsheet_can_have_a_row_for_each_vital_sign() -> None:
    text = "Time 06:00 10:00 14:00\nBP 128/82 124/78 -\nTemp (°F) 99.6 98.9 98.4\n"

    assert values(text) == [
        ("128/82", None),
        ("124/78", None),
        ("99.6", "°F"),
        ("98.9", "°F"),
        ("98.4", "°F"),
    ]


def test_a_flowsheet_row_can_have_empty_cells_at_both_ends() -> None:
    text = (
        "Time\t07:00\t11:00\t15:00\nPulse\t\t104\nBlood pressure\t\t\t108/64\n"
        "Resp. rate\t21\nTemp\t\t38.9 C\n"
    )

    assert values(text) == [("104", None), ("108/64", None), ("21", None), ("38.9", "C")]


def test_the_dates_above_a_flowsheets_columns_date_its_readings() -> None:
    found = vitals("Date 01/14/2025 02/18/2025\nWeight (kg) 82 80\n")

    assert [(v.value, v.date, v.temporality) for v in found] == [
        ("82", "2025-01-14", "historical"),
        ("80", "2025-02-18", None),
    ]


def test_another_persons_vital_sign_is_marked() -> None:
    assert [v.experiencer for v in vitals("Mother's height 160 cm. Height 172 cm.")] == [
        "family",
        None,
    ]
