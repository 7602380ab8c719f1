"""Discovery and reconciliation find the same encounters at every size of the chunks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.types import PageSlice, PageText
from pipeline.providers.local.discovery.encounters import discover
from pipeline.providers.prompts import read_prompt, render_discovery
from pipeline.stages.pass05.reconcile import ChunkReport, Reconciliation, check, reconcile

TOKEN = "0123456789abcdef"
PATIENT = "Vandermeer, Odile K."


@dataclass(frozen=True)
class FacilityStyle:
    """The headings and beginnings of one facility's documents."""

    type: str
    facility: str
    title: str
    label: str


KINDS = (
    FacilityStyle("office_visit", "Elmsdale Family Medicine", "OFFICE VISIT", "Date of Service"),
    FacilityStyle(
        "laboratory", "Quarry Hollow Clinical Laboratory", "LABORATORY REPORT", "Collected"
    ),
    FacilityStyle("imaging", "Pinnacle Imaging Center", "RADIOLOGY REPORT", "Exam Date"),
    FacilityStyle("emergency", "Saint Brannoc Hospital", "EMERGENCY DEPARTMENT NOTE", "Arrival"),
    FacilityStyle(
        "consultation", "Weir Street Heart Associates", "CARDIOLOGY CONSULTATION", "Visit date"
    ),
)
BODY = (
    "HISTORY",
    "She came back after 01/02/2019 and reports a cough since 03/04/2020; no fever at home.",
    "ASSESSMENT AND PLAN",
    "Continue lisinopril 20 mg daily. Mammogram of 11/14/2021 was normal.",
    "Sodium 139 mmol/L 135-145",
    "Her hospital stay of June 2018 is not relevant. Return in four weeks.",
)


def head(kind: FacilityStyle, day: date) -> list[str]:
    return [
        kind.facility,
        kind.title,
        f"Patient: {PATIENT} DOB: 02/11/1965",
        f"MRN: 55-1200 {kind.label}: {day:%m/%d/%Y}",
    ]


def stay(day: date, pages: int) -> list[list[str]]:
    """Return the pages of a hospital stay whose daily notes have different dates."""
    first = [
        "Saint Brannoc Hospital",
        "INPATIENT RECORD - HISTORY AND PHYSICAL",
        f"Patient: {PATIENT} DOB: 02/11/1965",
        f"MRN: 55-1200 Admission Date: {day:%m/%d/%Y}",
        *BODY,
    ]
    rest = [
        [
            f"Saint Brannoc Hospital {PATIENT} MRN 55-1200 Page {n + 1}",
            f"PROGRESS NOTE - HOSPITAL DAY {n + 1} - {day + timedelta(days=n):%m/%d/%Y}",
            *BODY,
        ]
        for n in range(1, pages)
    ]
    return [first, *rest]


@st.composite
def records(draw: st.DrawFn) -> tuple[dict[int, PageText], list[tuple[str, date, list[int]]]]:
    """Draw a record and its truth: type, day and pages of each encounter."""
    pages: list[list[str]] = []
    truth: list[tuple[str, date, list[int]]] = []
    day = date(2023, 1, 2)
    for _ in range(draw(st.integers(1, 6))):
        day += timedelta(days=draw(st.integers(20, 60)))
        if draw(st.integers(0, 4)) == 0:
            new = stay(day, draw(st.integers(1, 6)))
            truth.append(("inpatient", day, [len(pages) + n for n in range(1, len(new) + 1)]))
            pages += new
            continue
        kind = draw(st.sampled_from(KINDS))
        shares = bool(pages) and pages[-1] != [] and draw(st.booleans())
        style = draw(st.sampled_from(["once", "every", "running"]))
        lines = [*head(kind, day), *BODY]
        if shares:
            pages[-1] = [*pages[-1], *lines]
        else:
            pages.append(lines)
        mine = [len(pages)]
        for number in range(draw(st.integers(0, 3))):
            above = {
                "once": [],
                "every": head(kind, day),
                "running": [f"{kind.facility} {PATIENT} MRN 55-1200 Page {number + 2}"],
            }[style]
            pages.append([*above, *BODY])
            mine.append(len(pages))
        truth.append((kind.type, day, mine))
        if draw(st.integers(0, 5)) == 0:
            pages.append([])
    texts = {
        n: PageText(number=n, text="\n".join(lines), is_blank=not lines)
        for n, lines in enumerate(pages, start=1)
    }
    return texts, truth


def found_in(pages: dict[int, PageText], size: int) -> Reconciliation:
    reports = []
    for index, first in enumerate(range(1, len(pages) + 1, size)):
        last = min(len(pages), first + size - 1)
        shown = [
            PageSlice(page=n, start=0, text=pages[n].text, context=n < first)
            for n in range(max(1, first - 1), last + 1)
        ]
        reply = discover(read_prompt(render_discovery(TOKEN, shown)))
        report = ChunkReport(
            chunk_index=index,
            first_page=first,
            last_page=last,
            context_page=first - 1 if first > 1 else None,
            encounters=tuple(reply.encounters),
            unsupported_pages=tuple(reply.unsupported_pages),
        )
        check(report, pages)
        reports.append(report)
    return reconcile(reports, pages)


# No deadline: an example takes 0.2 s on a busy machine.
@given(records(), st.integers(1, 9))
def test_the_encounters_of_a_record_do_not_depend_on_the_size_of_its_chunks(
    drawn: tuple[dict[int, PageText], list[tuple[str, date, list[int]]]], size: int
) -> None:
    pages, truth = drawn

    whole = found_in(pages, len(pages))
    parts = found_in(pages, size)

    assert [(e.encounter_type, e.date_start, list(e.pages)) for e in whole.encounters] == truth
    assert [e.spans for e in parts.encounters] == [e.spans for e in whole.encounters]
    assert [(e.encounter_type, e.date_start, e.facility) for e in parts.encounters] == [
        (e.encounter_type, e.date_start, e.facility) for e in whole.encounters
    ]
    assert not any(e.mismatch for e in (*parts.encounters, *whole.encounters))
