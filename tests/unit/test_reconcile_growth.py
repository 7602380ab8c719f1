"""The cost of reconciliation grows linearly with the record, counted instead of timed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from types import FrameType
from typing import Any

import pytest

from pipeline.core.identity import compare
from pipeline.core.identity.parsing import parse_name
from pipeline.core.types import PageText
from pipeline.providers.schemas import EncounterType, FoundEncounter, LineSpan
from pipeline.stages.pass05.encounter_facts import agreement
from pipeline.stages.pass05.reconcile import ChunkReport, Reconciliation, reconcile

VISIT, CHUNK = 5, 10
"""Number of pages of a visit, and of a chunk."""
Person = tuple[str | None, str | None, str | None]


class Calls:
    """A profiler that counts the calls of each function, and of all functions."""

    def __init__(self) -> None:
        self._of: Counter[object] = Counter()
        self.all = 0

    def of(self, function: Callable[..., Any]) -> int:
        return self._of[function.__code__]

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event in ("call", "c_call"):
            self.all += 1
        if event == "call":
            self._of[frame.f_code] += 1


def counted(
    visits: int,
    person: Callable[[int], Person],
    *,
    one_day: bool = False,
    type_: EncounterType = "office_visit",
) -> tuple[Calls, Reconciliation]:
    """Reconcile a record of five-page visits, shifted by two pages against the chunks."""
    count = visits * VISIT
    pages = {n: PageText(number=n, text="one\ntwo", is_blank=False) for n in range(1, count + 1)}
    reports = []
    for index, first in enumerate(range(1, count + 1, CHUNK)):
        last = min(first + CHUNK - 1, count)
        shown = range(max(1, first - 1), last + 1)
        found = []
        for visit in sorted({(page - 3) // VISIT for page in shown}):
            own = [page for page in shown if (page - 3) // VISIT == visit]
            name, born, number = person(visit)
            day = date(1990, 1, 1) + timedelta(days=0 if one_day else visit)
            found.append(
                FoundEncounter(
                    encounter_type=type_,
                    spans=[LineSpan(page=page) for page in own],
                    open_at_start=own[0] == shown[0] and first > 1,
                    open_at_end=own[-1] == last,
                    date_start=day.isoformat(),
                    facility="North Clinic",
                    patient_name=name,
                    patient_birth_date=born,
                    patient_identifier=number,
                    rule="split.service_date",
                )
            )
        reports.append(
            ChunkReport(
                chunk_index=index,
                first_page=first,
                last_page=last,
                context_page=first - 1 if first > 1 else None,
                encounters=tuple(found),
            )
        )
    calls, before = Calls(), sys.getprofile()
    sys.setprofile(calls)
    try:
        result = reconcile(reports, pages)
    finally:
        sys.setprofile(before)
    return calls, result


def one_patient(visit: int) -> Person:
    return "Doe, Jane", "1950-03-14", "MRN-481516"


_RECORDS: dict[str, Callable[[int], Person]] = {
    "one patient": one_patient,
    "a number for each visit": lambda v: ("Doe, Jane", "1950-03-14", str(100_000 + 37 * v)),
    "numbers alone": lambda v: (None, None, str(100_000 + 37 * v)),
    "a family name alone": lambda v: ("Doe", None, None),
    "no name": lambda v: (None, None, None),
    "names a scanner spoilt": lambda v: (("Doe, Jane", "D0e, Jane", "J. Doe")[v % 3], None, None),
    "namesakes": lambda v: ("Doe, Jane", None, str(100_000 + 37 * v)),
    "as many people": lambda v: (
        f"Qu{chr(97 + v % 26)}x{v}ton, V{chr(97 + v // 26 % 26)}lda",
        f"{1900 + v % 97}-03-{1 + v % 28:02d}",
        str(100_000 + 37 * v),
    ),
}


@pytest.mark.parametrize("person", _RECORDS.values(), ids=_RECORDS)
def test_four_times_the_visits_are_four_times_the_work(person: Callable[[int], Person]) -> None:
    small, _ = counted(100, person)

    large, result = counted(400, person)

    assert len(result.encounters) == 401
    assert large.all <= 4.6 * small.all


@pytest.mark.parametrize("type_", ["office_visit", "inpatient"])
def test_a_stay_through_all_chunks_costs_no_more_per_chunk(type_: EncounterType) -> None:
    small, _ = counted(100, one_patient, one_day=True, type_=type_)

    large, result = counted(400, one_patient, one_day=True, type_=type_)

    assert len(result.encounters) <= 3
    assert large.all <= 4.6 * small.all


def test_each_visit_is_held_against_a_few_others_and_its_name_read_a_few_times() -> None:
    calls, result = counted(400, one_patient)

    sightings = sum(len(e.members) for e in result.encounters)
    assert calls.of(compare) <= 2 * sightings
    assert calls.of(agreement) <= 2 * sightings
    assert calls.of(parse_name) <= 3 * sightings
