"""All dates of one source have one order of day and month, whichever engine read the dates."""

from __future__ import annotations

import pytest

from pipeline.clinical.date_forms import DateOrder
from pipeline.core.types import PageText
from pipeline.providers.local.text.date_sources import source_orders
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1.source_dates import SourceDates
from tests.unit.test_local_provider import ask, page

NORTH = "Northgate Community Hospital\n"
SOUTH = "Southmere Family Clinic\n"


def reasons(day: str | None, *texts: str) -> list[str]:
    pages = {n: PageText(number=n, text=text) for n, text in enumerate(texts, start=1)}
    entity = FoundEntity(category="lab", page=1, quote="INR 2.1", name="INR", date=day)
    return list(SourceDates(pages).doubts(entity, 1))


@pytest.mark.parametrize(
    ("day", "texts", "expected"),
    [
        ("2024-02-05", ["INR 2.1 05/02/2024, seen 14/07/2023"], []),
        ("2024-05-02", ["INR 2.1 05/02/2024, seen 14/07/2023"], ["date_order_contradicts"]),
        ("2024-05-02", ["INR 2.1 05/02/2024, seen 07/14/2023"], []),
        ("2024-05-02", ["INR 2.1 05/02/2024"], ["date_order_unknown"]),
        ("2024-05-05", ["INR 2.1 05/05/2024"], []),
        ("2024-05-02", ["INR 2.1 05/02/2024\nMay 2, 2024"], []),
        ("2024-05-02", ["INR 2.1 2024-05-02"], []),
        (
            "2024-05-02",
            ["INR 2.1 05/02/2024, seen 14/07/2023 and 07/14/2023"],
            ["date_order_contradicts"],
        ),
        ("2024-02-05", [NORTH + "INR 2.1 05/02/2024", NORTH + "Seen 14/07/2023"], []),
        (
            "2024-05-02",
            [NORTH + "INR 2.1 05/02/2024", NORTH + "Seen 14/07/2023", SOUTH + "Seen 07/14/2023"],
            ["date_order_contradicts"],
        ),
        (
            "2024-05-02",
            [NORTH + "INR 2.1 05/02/2024", "Page two\nSeen 14/07/2023"],
            ["date_order_contradicts"],
        ),
        (None, ["INR 2.1 05/02/2024, seen 14/07/2023"], []),
    ],
)
def test_a_date_in_an_order_that_the_source_does_not_prove_is_doubted(
    day: str | None, texts: list[str], expected: list[str]
) -> None:
    assert reasons(day, *texts) == expected


def test_each_letterhead_has_an_order_of_its_own() -> None:
    orders = source_orders(
        [(1, NORTH + "14/07/2023"), (2, SOUTH + "07/14/2023"), (3, "continued\n05/02/2024")]
    )

    assert [orders[n].order for n in (1, 2, 3)] == [
        DateOrder.DAY_FIRST,
        DateOrder.MONTH_FIRST,
        DateOrder.MONTH_FIRST,
    ]


def test_a_source_that_contradicts_itself_has_no_order() -> None:
    (source,) = source_orders([(1, NORTH + "14/07/2023 and 07/14/2023")]).values()

    assert (source.order, source.contradicts) == (None, True)


def test_the_local_engine_reports_no_date_of_a_source_that_contradicts_itself() -> None:
    text = "VITALS\nPrevious weight 82 kg (01/05/2024). Seen 14/07/2023 and 07/14/2023.\n"

    assert [e.date for e in ask(page(text)).entities] == [None]
