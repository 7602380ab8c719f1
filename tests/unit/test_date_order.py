"""The order of day and month is decided once for each source, from all its dates."""

from __future__ import annotations

import pytest

from pipeline.clinical.date_forms import DateOrder, date_at, iso_day, orders_in
from pipeline.core.types import PageSlice
from pipeline.providers.local.discovery.encounters import discover
from pipeline.providers.prompts import Question


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("Collected: 05/03/2025\nReported: 19/03/2025", {DateOrder.DAY_FIRST}),
        ("Visit 05/03/2025, next visit 05/29/2025", {DateOrder.MONTH_FIRST}),
        ("DOB 30.04.1971", {DateOrder.DAY_FIRST}),
        ("05/03/2025 and 04/06/2025", set()),
        ("19/03/2025 and 03/19/2025", {DateOrder.DAY_FIRST, DateOrder.MONTH_FIRST}),
        ("BP 120/80, 14/20 and page 13/12\nphone 555-13-1200", set()),
        ("2025-03-19\n19 March 2025", set()),
    ],
)
def test_only_an_unambiguous_date_proves_an_order(text: str, orders: set[DateOrder]) -> None:
    assert orders_in(text) == orders


@pytest.mark.parametrize(
    ("text", "order", "day"),
    [
        ("05/03/2025", DateOrder.DAY_FIRST, "2025-03-05"),
        ("05/03/2025", DateOrder.MONTH_FIRST, "2025-05-03"),
        ("05/03/2025", None, None),
        ("05/05/2025", None, "2025-05-05"),
        ("19/03/2025", None, "2025-03-19"),
        ("March 5, 2025", None, "2025-03-05"),
        ("2025-03-05", DateOrder.DAY_FIRST, "2025-03-05"),
    ],
)
def test_an_ambiguous_date_without_an_order_is_not_guessed(
    text: str, order: DateOrder | None, day: str | None
) -> None:
    assert iso_day(text, order) == day


def test_a_date_is_read_in_the_order_of_its_source() -> None:
    printed = date_at("05/03/2025 08:10", order=DateOrder.DAY_FIRST)

    assert printed is not None
    assert printed.day is not None
    assert printed.day.isoformat() == "2025-03-05"


def begun(*pages: str) -> list[str | None]:
    slices = tuple(PageSlice(page=n, start=0, text=text) for n, text in enumerate(pages, start=1))
    question = Question(kind="discovery", item_token="0" * 8, include_zones=False, slices=slices)
    return [found.date_start for found in discover(question).encounters]


_LAB = (
    "Linden Quay Laboratory\nLABORATORY REPORT\nPatient: Odile Marchbank\nDOB: {born}\n"
    "MRN: 771204\nCollected: 05/03/2025 07:45\n\nSodium 140 mmol/L 135-145\n"
)


def test_an_encounter_begins_on_the_day_that_the_other_dates_prove() -> None:
    assert begun(_LAB.format(born="27/08/1969")) == ["2025-03-05"]
    assert begun(_LAB.format(born="08/27/1969")) == ["2025-05-03"]
    assert begun(_LAB.format(born="08/07/1969")) == ["2025-05-03"]


def test_each_source_has_an_order_of_its_own() -> None:
    clinic = (
        "Fernhill Family Clinic\nOFFICE VISIT\nPatient: Odile Marchbank\nMRN: 771204\n"
        "Date of Service: 06/04/2025\n\nReturn on 06/25/2025.\n"
    )

    assert begun(clinic, _LAB.format(born="27/08/1969")) == ["2025-06-04", "2025-03-05"]
