"""Tests of printed dates: one meaning or a flag."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clinical.date_forms import DateOrder
from pipeline.clinical.dates import partial_date

_VISIT = date(2024, 3, 5)
_FLAG = ("date_not_understood",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024", "2024"),
        ("since 2019", "2019"),
        ("early 2019", "2019"),
        ("spring 2019", "2019"),
        ("03/2024", "2024-03"),
        ("2024-03", "2024-03"),
        ("March 2024", "2024-03"),
        ("Mar. '24", "2024-03"),
        ("2024-03-05", "2024-03-05"),
        ("20240305", "2024-03-05"),
        ("2024-03-05T10:30:00Z", "2024-03-05"),
        ("3/15/2024 10:30 AM", "2024-03-15"),
        ("15.02.2024", "2024-02-15"),
        ("4/4/24", "2024-04-04"),
        ("March 5th, 2024", "2024-03-05"),
        ("5 March 2024", "2024-03-05"),
        ("05MAR2024", "2024-03-05"),
        ("on 5-Mar-24", "2024-03-05"),
        ("12/25/65", "1965-12-25"),
    ],
)
def test_a_date_with_one_meaning_is_read(text: str, expected: str) -> None:
    assert partial_date(text, encounter_date=_VISIT) == (expected, ())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "today",
        "2 weeks ago",
        "winter 2019",
        "summer 2019",
        "2019-2021",
        "1990s",
        "~2019",
        "before 2019",
        "5/24",
        "March",
        "Mar 5",
        "March 24",
        "2/30/2024",
        "2024-13",
        "13/2024",
        "01.02.2024",
        "4/5/24",
        "24/03/06",
        "Mon 4/6/24",
        "O3/15/2024",
        "٣/١٥/٢٠٢٤",
        "9" * 5_000,
        "1" * 8,
    ],
)
def test_any_other_text_is_flagged(text: str) -> None:
    assert partial_date(text, encounter_date=_VISIT) == (None, _FLAG)


def test_a_flag_names_the_attribute() -> None:
    assert partial_date("long ago", encounter_date=None, attribute="onset")[1] == (
        "date_not_understood:onset",
    )


def test_day_and_month_change_places_only_with_proof() -> None:
    def read(text: str, **proof: object) -> str | None:
        given: dict[str, object] = {"encounter_date": None, **proof}
        return partial_date(text, **given)[0]  # type: ignore[arg-type]  # proofs of many types

    assert read("3/5/24") is None
    assert read("3/5/24", encounter_date=_VISIT) == "2024-03-05"
    assert read("4/5/24", encounter_date=_VISIT) is None
    assert read("3/6/24", encounter_date=date(2024, 4, 1), is_past=True) == "2024-03-06"
    assert read("3/6/24", known=[date(2024, 6, 3)]) == "2024-06-03"
    assert read("3/6/24", known=[date(2024, 6, 3), date(2024, 3, 6)]) is None
    assert read("3/6/24", order=DateOrder.DAY_FIRST) == "2024-06-03"
    assert read("Wed 3/6/24") == "2024-03-06"


@given(st.dates(date(1950, 1, 1), date(2043, 12, 31)))
def test_every_unambiguous_form_gives_the_day_back(day: date) -> None:
    forms = (
        day.isoformat(),
        f"{day:%Y%m%d}",
        f"{day:%B} {day.day}, {day.year}",
        f"{day.day} {day:%b} {day.year}",
        f"{day:%A}, {day:%B} {day.day}, {day.year}",
    )

    for form in forms:
        assert partial_date(form, encounter_date=_VISIT) == (day.isoformat(), ())
    coarse = partial_date(f"{day:%m/%Y}", encounter_date=_VISIT)
    assert coarse == (f"{day:%Y-%m}", ())


@given(st.dates(date(1950, 1, 1), date(2043, 12, 31)), st.integers(-400, 400))
def test_figures_never_give_a_day_that_they_do_not_print(day: date, offset: int) -> None:
    visit = day + timedelta(days=offset)

    found, flags = partial_date(f"{day:%m/%d/%Y}", encounter_date=visit)

    swapped = f"{day.year}-{day.day:02d}-{day.month:02d}"
    assert found == day.isoformat() or (day.day <= 12 and found in (None, swapped))
    assert (found is None) == bool(flags)
    if found == swapped != day.isoformat():
        assert visit.isoformat() == swapped


@given(st.text(max_size=200), st.none() | st.dates())
def test_no_text_raises(text: str, visit: date | None) -> None:
    partial_date(text, encounter_date=visit)
