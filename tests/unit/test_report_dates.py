"""A date of service stays if its page proves the order of day and month, or nothing objects."""

from __future__ import annotations

import pytest

from pipeline.core.types import PageText
from pipeline.providers.schemas import FoundEncounter, LineSpan
from pipeline.stages.pass05.report_dates import without_open_dates
from pipeline.stages.pass05.types import ChunkReport


def dated(day: str, *texts: str) -> tuple[str | None, list[int]]:
    """Return the date that is left of an encounter on all pages, and the pages of a lost date."""
    pages = {n: PageText(number=n, text=text) for n, text in enumerate(texts, start=1)}
    encounter = FoundEncounter(
        encounter_type="outpatient", spans=[LineSpan(page=n) for n in pages], date_start=day
    )
    report = ChunkReport(
        chunk_index=0,
        first_page=1,
        last_page=len(texts),
        context_page=None,
        encounters=(encounter,),
    )
    (changed,), unclear = without_open_dates([report], pages)
    return changed.encounters[0].date_start, unclear


@pytest.mark.parametrize(
    ("day", "texts"),
    [
        ("2024-05-02", ["Visit 05/02/2024\nSeen 14/07/2023 and 07/14/2023"]),
        ("2024-02-05", ["Visit 05/02/2024\nSeen 14/07/2023 and 07/14/2023"]),
        ("2024-05-02", ["Visit 05/02/2024\nBorn 14/07/1961"]),
        ("2024-02-05", ["Visit 05/02/2024\nBorn 07/14/1961"]),
    ],
)
def test_a_date_against_the_order_of_its_source_is_left_out(day: str, texts: list[str]) -> None:
    assert dated(day, *texts) == (None, [1])


@pytest.mark.parametrize(
    ("day", "texts"),
    [
        ("2024-02-05", ["Visit 05/02/2024\nBorn 14/07/1961"]),
        ("2024-05-02", ["Visit 05/02/2024\nBorn 07/14/1961"]),
        # Nothing proves an order: the usual reading stays, as everywhere in the record.
        ("2024-05-02", ["Visit 05/02/2024"]),
        ("2024-05-05", ["Visit 05/05/2024\nSeen 14/07/2023 and 07/14/2023"]),
        ("2024-05-02", ["Visit 05/02/2024 (May 2, 2024)\nSeen 14/07/2023 and 07/14/2023"]),
        ("2024-05-02", ["Visit 05/02/2024\nSeen 14/07/2023 and 07/14/2023", "May 2, 2024"]),
    ],
)
def test_a_proved_date_and_a_date_without_objection_stay(day: str, texts: list[str]) -> None:
    assert dated(day, *texts) == (day, [])
