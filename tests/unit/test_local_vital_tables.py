"""A cell of a ruled table of vital signs is read in its own column."""

from __future__ import annotations

import pytest

from tests.unit.test_local_provider import ask, page

Reading = tuple[str, str | None, str | None, str | None]


def vitals(*lines: str) -> list[Reading]:
    reply = ask(page("VITALS\n" + "\n".join(lines) + "\n"))
    return [
        (e.name, e.value, e.unit, e.temporality) for e in reply.entities if e.category == "vital"
    ]


def test_an_empty_cell_moves_no_other_cell() -> None:
    assert vitals("Time\tBP\tHR\tTemp (F)", "08:00\t118/72\t\t98.4", "12:00\t\t88\t") == [
        ("BP", "118/72", None, None),
        ("Temp", "98.4", "F", None),
        ("HR", "88", None, None),
    ]


@pytest.mark.parametrize(
    ("cell", "value", "unit"),
    [
        ("118/72 (sitting)", "118/72", None),
        ("118/72 H", "118/72", None),
        ("~~184/90~~ 118/72", "118/72", None),
        ("118 over 72", "118/72", None),
        ("118/72 mmHg", "118/72", "mmHg"),
    ],
)
def test_words_beside_a_value_in_its_cell_are_explained(
    cell: str, value: str, unit: str | None
) -> None:
    assert vitals("Time\tBP\tHR", f"08:00\t{cell}\t88")[0] == ("BP", value, unit, None)


@pytest.mark.parametrize("cell", ["118", "118/72 44 12", "72/118", "118/72/60"])
def test_an_unexplained_cell_costs_only_its_own_reading(cell: str) -> None:
    assert vitals("Time\tBP\tHR", f"08:00\t{cell}\t88") == [
        ("BP", None, None, None),
        ("HR", "88", None, None),
    ]


def test_rows_of_an_earlier_day_are_historical() -> None:
    assert vitals("Date\tBP\tHR", "03/02/2025\t118/72\t88", "03/19/2025\t124/80\t") == [
        ("BP", "118/72", None, "historical"),
        ("HR", "88", None, "historical"),
        ("BP", "124/80", None, None),
    ]


def test_rows_are_not_understood_if_their_dates_do_not_tell_the_latest() -> None:
    found = vitals("Date\tBP\tHR", "05/06/2025\t118/72\t88", "06/05/2025\t124/80\t90")

    assert [value for _, value, _, _ in found] == [None] * 4


def test_a_row_of_one_vital_sign_has_a_value_an_earlier_value_and_a_range() -> None:
    assert vitals(
        "Vital sign\tNormal range\tCurrent\tPrevious\tUnit", "HR\t60-100\t112\t96\tbpm"
    ) == [("HR", "112", "bpm", None), ("HR", "96", "bpm", "historical")]


def test_several_values_without_a_heading_are_not_guessed() -> None:
    assert vitals("BP\t118/72\t124/80") == [("BP", None, None, None)]


def test_a_list_below_a_name_gives_each_reading() -> None:
    assert vitals("Blood pressure:", "118/72 (08:00)", "124/80 (12:00)") == [
        ("Blood pressure", "118/72", None, None),
        ("Blood pressure", "124/80", None, None),
    ]


def test_a_struck_value_is_no_reading() -> None:
    assert vitals("BP ~~184/90~~ 118/72") == [("BP", "118/72", None, None)]


def test_columns_of_postures_are_readings_of_one_day() -> None:
    assert vitals("Vital\tLying\tStanding", "BP\t140/90\t110/70") == [
        ("BP", "140/90", None, None),
        ("BP", "110/70", None, None),
    ]


@pytest.mark.parametrize(
    "text", ["BP 158/96 (5/1), 124/78 (5/17)", "BP 05/01: 158/96, 05/17: 124/78"]
)
def test_the_latest_of_several_dated_readings_is_current(text: str) -> None:
    reply = ask(page(f"OFFICE VISIT\nDate of Service: 05/17/2025\n\nVITALS\n{text}\n"))

    assert [(e.value, e.date, e.temporality) for e in reply.entities] == [
        ("158/96", "2025-05-01", "historical"),
        ("124/78", "2025-05-17", None),
    ]


def test_a_highest_temperature_names_no_later_temperature() -> None:
    assert [value for _, value, _, _ in vitals("Tmax 101.3 overnight, now 98.6")] == ["101.3"]


@pytest.mark.parametrize("text", ["SBP 142, DBP 88", "Hold for SBP <100."])
def test_a_systolic_pressure_is_no_disease(text: str) -> None:
    assert [e for e in ask(page(f"VITALS\n{text}\n")).entities if e.category == "condition"] == []
