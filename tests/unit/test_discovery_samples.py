"""Discovery finds the encounters, pages and patients that the truth of the samples names."""

from __future__ import annotations

import re
from functools import cache

import pytest

from pipeline.core.types import PageSlice, PageText
from pipeline.documents.reader import read_pages
from pipeline.providers.local.discovery.encounters import discover
from pipeline.providers.prompts import read_prompt, render_discovery
from pipeline.stages.pass05.reconcile import ChunkReport, Reconciliation, check, reconcile
from samples import truth

pytestmark = pytest.mark.xdist_group("discovery-samples")

TOKEN = "0123456789abcdef"


@cache
def pages_of(name: str) -> dict[int, PageText]:
    return {
        page.number: PageText(number=page.number, text=page.text, is_blank=page.is_blank)
        for page in read_pages(truth.HERE / f"{name}.pdf", 1, 10_000)
    }


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


@pytest.mark.parametrize("size", [1, 3, 7, 50])
@pytest.mark.parametrize("name", ["lab_5p_8enc", "traps_10p", "visits_20p_4enc", "long_72p"])
def test_encounters_and_their_pages_equal_the_truth(name: str, size: int) -> None:
    record = truth.load(name)
    pages = pages_of(name)

    result = found_in(pages, size)

    assert [
        (
            e.encounter_type,
            (e.facility or "").casefold(),
            e.date_start,
            e.date_end,
            list(e.pages),
            e.mismatch,
        )
        for e in result.encounters
    ] == [
        (
            e.type,
            e.facility.casefold(),
            e.date_start,
            e.date_end,
            e.pages,
            e.patient_mismatch,
        )
        for e in record.encounters
    ]
    unassigned = {a.span.page for a in result.assignments if a.encounter is None}
    assert unassigned == {*record.unassigned_pages, *record.unsupported_language_pages}
    assert result.patient is not None
    assert result.patient.birth_date == record.patient.birth_date.isoformat()
    assert result.patient.identifier == record.patient.identifier


@pytest.mark.parametrize("name", ["lab_5p_8enc", "traps_10p", "visits_20p_4enc", "long_72p"])
def test_encounters_hold_the_lines_that_the_truth_gives_them(name: str) -> None:
    record = truth.load(name)
    pages = pages_of(name)

    result = found_in(pages, 50)

    for expected, encounter in zip(record.encounters, result.encounters, strict=True):
        for span in expected.spans:
            held = "\n".join(
                pages[s.page].text[s.start : s.end] for s in encounter.spans if s.page == span.page
            )
            held = re.sub(r"\t+", " ", held)
            assert span.first_line_text in held
            assert span.last_line_text in held
