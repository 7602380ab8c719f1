"""The line of encounters and the charts of laboratory series, as figures."""

from __future__ import annotations

from datetime import date
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from observability.phi.encounter_timeline import WIDTH, EncounterDays, encounter_timeline
from observability.phi.lab_charts import HEIGHT, lab_groups

DAYS = st.dates(date(1990, 1, 1), date(2030, 12, 31))


def _visit(number: int, first: date | None, last: date | None = None) -> EncounterDays:
    return EncounterDays(number=number, first=first, last=last)


def test_one_day_needs_no_line() -> None:
    day = date(2024, 5, 2)

    assert encounter_timeline([_visit(1, day), _visit(2, day), _visit(3, None)]) is None


def test_a_stay_is_a_bar_and_a_visit_is_a_dot_in_the_order_of_time() -> None:
    found = encounter_timeline(
        [
            _visit(1, date(2024, 6, 17), date(2024, 6, 22)),
            _visit(2, date(2024, 3, 11)),
            _visit(3, None),
        ]
    )

    assert found is not None
    assert [(mark.number, mark.width > 0) for mark in found.marks] == [(2, False), (1, True)]
    assert found.marks[1].title == "encounter 1: 2024-06-17 to 2024-06-22"
    assert [tick.words for tick in found.ticks] == ["2024-03-11", "2024-06-22"]


@given(st.lists(st.tuples(DAYS, DAYS), min_size=2, max_size=12))
def test_each_dated_encounter_is_inside_the_chart(days: list[tuple[date, date]]) -> None:
    found = encounter_timeline([_visit(n, *sorted(both)) for n, both in enumerate(days, 1)])

    if found is None:
        assert len({day for both in days for day in both}) == 1
        return
    assert {mark.number for mark in found.marks} == set(range(1, len(days) + 1))
    assert all(mark.x >= 0 and mark.x + mark.width <= WIDTH for mark in found.marks)
    assert all(0 <= mark.y <= found.axis for mark in found.marks)


def _series(*values: dict[str, Any], unit: str | None = "mg/dL") -> dict[str, Any]:
    return {"groups": [{"unit": unit, "values": list(values)}]}


def _number(day: str | None, number: str, **more: Any) -> dict[str, Any]:
    return {"date": day, "number": number, "printed": number, "entity_id": "e", **more}


def test_a_unit_is_written_as_people_write_it() -> None:
    (group,) = lab_groups(_series(_number("2024-01-01", "31"), unit="[IU]/L"))

    assert group.unit == "IU/L"


def test_a_series_is_drawn_between_its_lowest_and_its_highest_result() -> None:
    (group,) = lab_groups(
        _series(
            _number("2024-01-01", "1.0"),
            _number("2024-01-11", "3.0", flag="H"),
            _number("2024-01-06", "2.0", flag="N"),
        )
    )

    assert [(point.x, point.y, point.is_flagged) for point in group.points] == [
        (5.0, HEIGHT - 5, False),
        (80.0, HEIGHT / 2, False),
        (155.0, 5.0, True),
    ]
    assert [each.flag for each in group.results] == ["", "H", ""]
    assert group.words.endswith("2024-01-06: 2.0 mg/dL; 2024-01-11: 3.0 mg/dL H")


def test_bounds_texts_doubted_and_undated_results_are_in_the_table_alone() -> None:
    (group,) = lab_groups(
        _series(
            _number("2024-01-01", "1.0"),
            _number("2024-01-02", "0.01", comparator="<"),
            _number(None, "5.0"),
            _number("2024-01-03", "9.0", flags=["unit_unknown"]),
            {"date": "2024-01-04", "text": "Negative", "entity_id": "e"},
        )
    )

    assert group.points == ()
    assert len(group.results) == 5


def test_equal_results_are_a_level_line() -> None:
    (group,) = lab_groups(_series(_number("2024-01-01", "5"), _number("2024-02-01", "5")))

    assert {point.y for point in group.points} == {HEIGHT / 2}
