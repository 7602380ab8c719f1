"""The latest of several moments is named only if every order of day and month agrees."""

from __future__ import annotations

from datetime import date

import pytest

from pipeline.clinical.date_forms import DateOrder
from pipeline.providers.local.text.latest_reading import latest_of, moment_of

OWN = date(2025, 5, 17)


@pytest.mark.parametrize(
    ("words", "latest"),
    [
        (("5/1", "5/3"), 1),
        (("12/28", "1/2"), 1),
        (("05/06/2025", "06/05/2025"), None),
        (("05/06/2025", "05/20/2025"), 1),
        (("June 2024", "01/2025"), 1),
        (("06:00", "2 pm"), 1),
        (("5/1", "5/1"), None),
        (("2023", "May 2024"), 1),
        (("2025", "May 3, 2025"), None),
    ],
)
def test_the_latest_moment(words: tuple[str, ...], latest: int | None) -> None:
    assert latest_of([moment_of(word, None, OWN) for word in words]) == latest


@pytest.mark.parametrize(
    ("words", "order", "day"),
    [
        ("5/3", DateOrder.MONTH_FIRST, "2025-05-03"),
        ("5/3", DateOrder.DAY_FIRST, "2025-03-05"),
        ("5/3", None, None),
        ("12/28", DateOrder.MONTH_FIRST, None),
        ("05/03/2025 08:10", DateOrder.DAY_FIRST, "2025-03-05"),
        ("May 2025", None, None),
        ("31/31/2025", None, None),
    ],
)
def test_a_day_is_given_only_if_it_is_certain(
    words: str, order: DateOrder | None, day: str | None
) -> None:
    moment = moment_of(words, order, OWN)

    assert (moment.day if moment else None) == day
