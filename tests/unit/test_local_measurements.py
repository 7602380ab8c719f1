"""The local engine reads vital signs and laboratory values with name, unit, range and flag."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_provider import ask, page


def found(text: str, category: str) -> list[FoundEntity]:
    return [e for e in ask(page(text)).entities if e.category == category]


def test_a_line_of_vital_signs_gives_each_value_and_unit() -> None:
    text = (
        "VITAL SIGNS\nBP 152/94 mmHg, HR 104 bpm, RR 22, Temp 98.9 °F, SpO2 91% on room air, "
        "Weight 94.3 kg.\n"
    )

    vitals = found(text, "vital")

    assert [(v.name, v.value, v.unit) for v in vitals] == [
        ("BP", "152/94", "mmHg"),
        ("HR", "104", "bpm"),
        ("RR", "22", None),
        ("Temp", "98.9", "°F"),
        ("SpO2", "91", "%"),
        ("Weight", "94.3", "kg"),
    ]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("Blood pressure was 118/76.", "118/76", None),
        ("BP-R: 120/80", "120/80", None),
        ("Vitals: T 104, HR 141", "104", None),
        ("Weight on admission: 6.8kg", "6.8", "kg"),
        ("Height: 5'10\"", "5'10\"", None),
        ("BMI: 30.7 kg/m2", "30.7", "kg/m2"),
        ("She was 98% RA.", "98", "%"),
        ("Pain 7/10", "7/10", None),
        ("oxygen saturation 96%", "96", "%"),
        ("weight 221 lb. Crackles at both bases.", "221", "lb"),
    ],
)
def test_one_vital_sign_is_read_as_printed(text: str, value: str, unit: str | None) -> None:
    first = found(text, "vital")[0]

    assert (first.value, first.unit) == (value, unit)


def test_a_flowsheet_takes_names_and_units_from_its_columns() -> None:
    text = (
        "Time BP (mmHg) HR (bpm) RR (/min) Temp (°F) SpO2 (%)\n"
        "18:41 104/68 148 22 98.4 93\nPage 4 of 9\nMonday 126/73 79 14 98.7 -\n"
    )

    vitals = found(text, "vital")

    assert [(v.name, v.value, v.unit) for v in vitals[:5]] == [
        ("BP", "104/68", "mmHg"),
        ("HR", "148", "bpm"),
        ("RR", "22", "/min"),
        ("Temp", "98.4", "°F"),
        ("SpO2", "93", "%"),
    ]
    assert [v.value for v in vitals[5:]] == ["126/73", "79", "14", "98.7"]
    assert vitals[0].quote == "104/68"


def test_a_row_with_fewer_cells_than_columns_is_not_guessed() -> None:
    assert found("Time BP HR RR Temp\n08:00 120/80 98.6\n", "vital") == []


@pytest.mark.parametrize(
    "text", ["BP 1020/94", "Temp 72 F", "HR 3", "BP 80/120", "pulse 07/12/2024", "pain 3 days ago"]
)
def test_an_impossible_value_is_no_vital_sign(text: str) -> None:
    assert found(text, "vital") == []


LAYOUTS = [
    ("TEST RESULT FLAG UNITS REFERENCE\nPotassium 5.3 H mmol/L 3.5-5.1", "H", "3.5-5.1"),
    ("Component Value Units Reference Range Flag\nPotassium 5.3 mmol/L 3.5-5.1 H", "H", "3.5-5.1"),
    ("Analyte Ref. Interval Result Flag Unit\nPotassium 3.5-5.1 5.3 H mmol/L", "H", "3.5-5.1"),
    ("Potassium | 5.3 | H | mmol/L | 3.5 - 5.1", "H", "3.5 - 5.1"),
    ("Potassium 5.3 (H) mmol/L (3.5-5.1)", "H", "3.5-5.1"),
    ("Potassium   5.3   mmol/L", None, None),
]


@pytest.mark.parametrize(("text", "flag", "interval"), LAYOUTS)
def test_a_row_is_read_in_any_order_of_columns(
    text: str, flag: str | None, interval: str | None
) -> None:
    (lab,) = found(text, "lab")

    assert (lab.name, lab.value, lab.unit) == ("Potassium", "5.3", "mmol/L")
    assert (lab.abnormal_flag, lab.reference_range) == (flag, interval)


@pytest.mark.parametrize(
    ("row", "value", "interval"),
    [
        ("Troponin I <0.01 ng/mL <0.04", "<0.01", "<0.04"),
        ("HIV Ag/Ab Non-reactive Non-reactive", "Non-reactive", "Non-reactive"),
        ("CRP, Quantitative <1.0 mg/L 0.0-10.0", "<1.0", "0.0-10.0"),
        ("Vitamin D, 25-Hydroxy 18.9 ng/mL 30.0-100.0", "18.9", "30.0-100.0"),
        ("Hemoglobin A1c 7.2 % 4.0-5.6", "7.2", "4.0-5.6"),
        ("Platelets 1,204 K/uL 150-400", "1,204", "150-400"),
        ("ANA 1:160 <1:40", "1:160", None),
    ],
)
def test_signs_words_and_titers_are_kept_as_printed(
    row: str, value: str, interval: str | None
) -> None:
    lab = found(f"TEST RESULT UNITS REFERENCE\n{row}\n", "lab")[0]

    assert lab.value == value
    assert interval is None or lab.reference_range == interval


def test_the_order_of_columns_holds_over_the_end_of_a_page() -> None:
    head = "Analyte Ref. Interval Result Flag Unit\nTSH 0.45-4.50 6.84 H mIU/L"

    reply = ask(page(head, 1), page("Running head\nThyroid Peroxidase Ab <34 214 H IU/mL", 2))

    assert [(e.value, e.reference_range) for e in reply.entities] == [
        ("6.84", "0.45-4.50"),
        ("214", "<34"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Labs: Hgb 10.2, K 4.1, A1c 7.2 %.", [("Hgb", "10.2"), ("K", "4.1"), ("A1c", "7.2")]),
        (
            "WBC 8.3 (15.4 on admission), H/H 11.3/35",
            [("WBC", "8.3"), ("WBC", "15.4"), ("H/H", "11.3/35")],
        ),
        ("creatinine of 1.4 mg/dL today", [("creatinine", "1.4")]),
        ("This morning potassium was 3.2 mmol/L", [("potassium", "3.2")]),
        ("Troponin <0.01", [("Troponin", "<0.01")]),
        ("COVID-19 PCR was negative.", [("COVID-19 PCR", "negative")]),
        (
            "Urine\nKetones URINE TRACE (H)\nLABS\nNitrite URINE NEGATIVE",
            [("Nitrite URINE", "NEGATIVE")],
        ),
    ],
)
def test_values_in_running_text_are_read(text: str, expected: list[tuple[str, str]]) -> None:
    labs = [(lab.name, lab.value) for lab in found(text, "lab")]

    assert labs[-len(expected) :] == expected


@pytest.mark.parametrize(
    ("row", "value", "unit"),
    [
        ("Creatinine 0.88 mg/dL . 0.57-1.00", "0.88", "mg/dL"),
        ("BUN 14 mg/dL - 8-27", "14", "mg/dL"),
        ("TSH 5.92 H mlU/L 0.45-4.50", "5.92", "mlU/L"),
        ("Calcium 9.6 mo/dL 8.7-10.3", "9.6", "mo/dL"),
    ],
)
def test_a_scanners_dust_between_cells_changes_no_number(row: str, value: str, unit: str) -> None:
    (lab,) = found(f"TEST RESULT FLAG . UNITS REFERENCE\n{row}\n", "lab")

    assert (lab.value, lab.unit) == (value, unit)


@pytest.mark.parametrize(
    "text",
    ["Temp 98:2 °F", "Temp 101:2 F", "Temp 98;2 °F", "Sodium 135-145", "Potassium 4:2 mmol/L"],
)
def test_a_number_that_cannot_be_read_whole_is_not_read_in_part(text: str) -> None:
    assert ask(page(f"TEST RESULT UNITS REFERENCE\n{text}\n")).entities == []


@pytest.mark.parametrize(
    "text",
    [
        "potassium chloride 20 mEq PO daily",
        "K 99.5 was misread",
        "Sodium restriction 2 g diet",
        "Iron 325 mg daily",
        "calcium 600 mg tablets",
        "Collected: 03/14/2023 09:10 Reported: 03/15/2023",
        "MEDICATIONS\nSTOP: Lisinopril 20 mg",
    ],
)
def test_a_dose_or_a_date_is_no_laboratory_value(text: str) -> None:
    assert found(f"TEST RESULT FLAG UNITS REFERENCE\n{text}", "lab") == []
