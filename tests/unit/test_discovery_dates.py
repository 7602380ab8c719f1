"""The parser reads dates as records print them."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clinical.date_forms import date_at

CHRISTMAS = date(2019, 12, 25)


@pytest.mark.parametrize(
    "text",
    [
        "12/25/2019",
        "12-25-2019",
        "12.25.2019",
        "12/25/19",
        "25/12/2019",
        "2019-12-25",
        "2019/12/25",
        "Dec 25, 2019",
        "Dec 25 2019 12:00:00",
        "December 25th, 2019",
        "25 December 2019",
        "25-DEC-2019",
        "25Dec2019",
        "  Wednesday, December 25, 2019",
        "l2/25/2O19",
        "12 / 25 / 2019",
    ],
)
def test_every_usual_form_is_read(text: str) -> None:
    printed = date_at(text)

    assert printed is not None
    assert printed.day == CHRISTMAS


@pytest.mark.parametrize("text", ["02/29/2001", "13/45/2024", "00/00/0000", "Foo 12, 2019"])
def test_a_day_that_does_not_exist_is_none_and_raises_nothing(text: str) -> None:
    printed = date_at(text)

    assert printed is None or printed.day is None


@pytest.mark.parametrize("text", ["", "118/76", "5 mg", "12/25/20191", "next week", "1.5"])
def test_figures_that_are_no_date_are_not_read(text: str) -> None:
    assert date_at(text) is None


def test_the_time_of_day_is_kept_as_printed() -> None:
    printed = date_at("03/02/2023 09:30 PM next")

    assert printed is not None
    assert printed.time == "09:30pm"


def test_a_birth_date_of_two_digits_lies_in_the_past() -> None:
    born, seen = date_at("03/14/50", past=True), date_at("03/14/24")

    assert born is not None
    assert born.day == date(1950, 3, 14)
    assert seen is not None
    assert seen.day == date(2024, 3, 14)


@given(st.text(max_size=40))
def test_any_text_is_read_without_an_error(text: str) -> None:
    printed = date_at(text)

    assert printed is None or 0 <= printed.start < printed.end <= len(text)


@given(st.dates(min_value=date(1900, 1, 1), max_value=date(2099, 12, 31)))
def test_a_printed_day_is_read_back(day: date) -> None:
    for form in (f"{day:%m/%d/%Y}", f"{day:%B} {day.day}, {day.year}", day.isoformat()):
        printed = date_at(form)

        assert printed is not None
        assert printed.day == day
