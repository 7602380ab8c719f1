"""The results page shows long sections in parts: small, with the same statements, nothing lost."""

from __future__ import annotations

import cProfile
import pstats
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from observability.permissions import Role
from pipeline.models import ReviewItem
from tests.support.review_forms import a_plain_record, asked, does, held
from tests.support.review_rows import a_reviewed_record, entities_of
from tests.support.users import client_of
from tests.support.wide_results import WideResults, a_wide_record

pytestmark = pytest.mark.django_db

LARGEST_ANSWER = 150_000
"""Bytes of any answer, for a record with 1,000 entities that is long in each section."""
RESULTS_STATEMENTS = 22
DECODED_VALUES = 80
"""JSON values that a page decodes: those of the shown rows. Each of 1,000 entries has two."""
SECTIONS = ("contradictions", "encounters", "problem", "medication", "allergy", "lab_series",
            "narratives", "codes")  # fmt: skip


@pytest.fixture
def reviewer() -> Client:
    """Return a client of a reviewer."""
    return client_of(Role.REVIEWER, "anna")


@pytest.fixture
def wide() -> WideResults:
    """Insert a record with several parts in each section."""
    return a_wide_record()


def _url(record_id: object) -> str:
    return reverse("admin:record_results", args=[record_id])


def _section(text: str, name: str) -> str:
    """Return a section of the page from its id to the next section."""
    start = text.index(f'id="{name}"')
    ends = [text.find(f'id="{each}"', start + 1) for each in (*SECTIONS, "source")]
    return text[start : min(end for end in ends if end > start)]


def _following(text: str, name: str) -> str:
    """Return the address behind the last rows of a section; "" on the last part."""
    links = re.findall(rf'<a href="\?at=([^"#]+)#{name}-title"\s+rel="next"', _section(text, name))
    return links[-1] if links else ""


def _walked(client: Client, url: str, name: str) -> Iterator[str]:
    """Yield a section part by part, by its plain links."""
    address = ""
    while True:
        text = client.get(url, {"at": address} if address else {}).content.decode()
        yield _section(text, name)
        address = _following(text, name)
        if not address:
            return


def _view(client: Client, wide: WideResults, address: str = "") -> tuple[Any, str]:
    answer = client.get(_url(wide.record_id), {"at": address})
    return answer.context["view"], answer.content.decode()


def test_each_answer_is_small_and_asks_the_same_for_few_and_for_many_rows(
    reviewer: Client,
) -> None:
    wide = a_wide_record(entries=250, encounters=60, results=200)
    few = a_wide_record(entries=5, encounters=4, results=10)
    addresses = [
        "", f"lab_series-{wide.series}-5", f"allergy-{wide.everywhere}-55", "narrative-50",
        f"encounter-{wide.held}", "contradiction-25", "code-900",
    ]  # fmt: skip
    _, of_few = asked(reviewer, _url(few.record_id))

    answers = [asked(reviewer, f"{_url(wide.record_id)}?at={each}") for each in addresses]

    assert {statements for _, statements in answers} == {of_few}
    assert of_few <= RESULTS_STATEMENTS
    assert max(len(answer.content) for answer, _ in answers) < LARGEST_ANSWER


def test_a_record_of_1000_entries_and_narratives_is_small_and_decodes_what_is_shown(
    reviewer: Client,
) -> None:
    item = a_reviewed_record(entities=1_000)

    answer, statements = asked(reviewer, _url(item.shell_file_id))
    with cProfile.Profile() as profile:
        reviewer.get(_url(item.shell_file_id))

    assert len(answer.content) < LARGEST_ANSWER / 3
    assert statements <= RESULTS_STATEMENTS
    assert "1,000 contradictions" in answer.content.decode()
    calls = pstats.Stats(profile).get_stats_profile().func_profiles["raw_decode"].ncalls
    assert int(calls.partition("/")[0]) <= DECODED_VALUES


@pytest.mark.parametrize("name", ["problem", "medication", "allergy", "lab_series"])
def test_the_plain_links_of_a_list_lead_to_every_entry_once(
    reviewer: Client, wide: WideResults, name: str
) -> None:
    shown = [
        int(number)
        for part in _walked(reviewer, _url(wide.record_id), name)
        for number in re.findall(rf'<tr id="{name}-(\d+)"', part)
    ]

    assert sorted(shown) == list(range(1, wide.entries + 1))


def test_the_plain_links_lead_to_every_encounter_narrative_code_and_contradiction(
    reviewer: Client, wide: WideResults
) -> None:
    url = _url(wide.record_id)
    parts = {name: "".join(_walked(reviewer, url, name)) for name in SECTIONS}

    assert re.findall(r'<tr id="encounter-(\d+)"', parts["encounters"]) == [
        str(number) for number in range(1, wide.encounters + 1)
    ]
    assert re.findall(r"of narrative (\d+)\.", parts["narratives"]) == [
        str(number) for number in range(wide.encounters) for _ in range(12)
    ]
    assert len(set(re.findall(r"<code>(SNOMED\|\d+)</code>", parts["codes"]))) == 4 * wide.entries
    assert re.findall(r"doses of day (\d+) differ", parts["contradictions"]) == [
        str(number) for number in range(1, wide.messages + 1)
    ]


def test_the_links_inside_a_series_and_an_entry_lead_to_every_result_and_encounter(
    reviewer: Client, wide: WideResults
) -> None:
    series, everywhere = f"lab_series-{wide.series}", f"allergy-{wide.everywhere}"
    days: list[str] = []
    places: list[int] = []

    address = series
    while address:
        view, _ = _view(reviewer, wide, address)
        (entry,) = [each for each in view.lists[3].part.rows if each.anchor == series]
        (group,) = entry.groups
        days = [each.day for each in group.shown.rows] + days
        address = group.shown.before
    address = everywhere
    while address:
        view, _ = _view(reviewer, wide, address)
        (entry,) = [each for each in view.lists[2].part.rows if each.anchor == everywhere]
        places += [number for number, _ in entry.places.rows]
        address = entry.places.after

    assert len(days) == wide.results
    assert days == sorted(set(days))
    assert places == list(range(1, wide.encounters + 1))


def test_contradicted_and_flagged_entries_come_first_and_are_counted(
    reviewer: Client, wide: WideResults
) -> None:
    view, text = _view(reviewer, wide)

    problems, medications = view.lists[0], view.lists[1]
    assert problems.part.rows[0].anchor == f"problem-{wide.flagged}"
    assert medications.part.rows[0].anchor == f"medication-{wide.contradicted}"
    assert (medications.contradicted, problems.flagged) == (1, 1)
    assert "▲ 1 further entry to review" in _section(text, "problem")
    assert "contradicted and flagged first" in _section(text, "problem")
    assert "contradicted and flagged first" not in _section(text, "allergy")
    assert "✖ 1 entry with a contradiction" in _section(text, "medication")
    assert "30 contradictions" in _section(text, "contradictions")


def test_what_a_later_part_marks_is_told_in_the_first_part_with_a_link(
    reviewer: Client, wide: WideResults
) -> None:
    _, text = _view(reviewer, wide)
    encounters = " ".join(_section(text, "encounters").split())

    # The encounter before the last and the third result are not in the first part of their section.
    assert f'href="?at=encounter-{wide.held}#encounter-{wide.held}"' in encounters
    assert "■ Held or failed, without results" in encounters
    assert "▲ 1 entity to review in 1 encounter" in encounters
    held_view, held_text = _view(reviewer, wide, f"encounter-{wide.held}")
    assert wide.held in [each.number for each in held_view.encounters.part.rows]
    assert "■ held or failed: no results" in held_text
    series = f"lab_series-{wide.series}"
    assert f'href="?at={series}-{wide.doubted}#{series}"' in _view(reviewer, wide, series)[1]
    assert "▲ review:" in _view(reviewer, wide, f"{series}-{wide.doubted}")[1]


def test_a_contradiction_leads_to_its_entry_in_another_part(
    reviewer: Client, wide: WideResults
) -> None:
    entry = f"medication-{wide.entries - 3}"

    first, _ = _view(reviewer, wide)
    view, text = _view(reviewer, wide, entry)

    assert entry not in [each.anchor for each in first.lists[1].part.rows]
    assert entry in [each.anchor for each in view.lists[1].part.rows]
    assert re.search(rf'<tr id="{entry}"\s+aria-current="true"', text)
    link = f'href="?at=medication-{wide.contradicted}#medication-{wide.contradicted}"'
    assert link in _section(text, "contradictions")


def test_the_address_of_a_narrative_by_its_encounter_shows_its_part(
    reviewer: Client, wide: WideResults
) -> None:
    first, _ = _view(reviewer, wide)
    later, _ = _view(reviewer, wide, "narrative-20")
    anchor = later.narratives.part.rows[-1].anchor

    view, text = _view(reviewer, wide, anchor)

    assert anchor not in [each.anchor for each in first.narratives.part.rows]
    assert anchor in [each.anchor for each in view.narratives.part.rows]
    assert f'id="{anchor}"' in text


@pytest.mark.parametrize(
    "address",
    ["x", "problem-9999999999", "problem-1-0", "lab_series-30-99999999", "narrative-",
     "<script>alert(1)</script>", "allergy-30-999999", "é" * 500, "encounter--1"],
)  # fmt: skip
def test_an_unknown_address_shows_a_part_and_no_error(reviewer: Client, address: str) -> None:
    wide = a_wide_record(entries=30, encounters=30, results=20)

    view, text = _view(reviewer, wide, address)

    assert view.encounters.part.rows[0].number == 1
    assert "alert(1)" not in text
    assert f"1–20 of {wide.encounters}" in text


def test_outdated_sentences_of_a_later_part_are_counted_with_a_link(reviewer: Client) -> None:
    item: ReviewItem = held(reviewer, a_plain_record(entities=12))
    url = _url(item.shell_file_id)
    last = entities_of(item)[-1]

    does(reviewer, item, "reject", last, reason="1")
    text = " ".join(reviewer.get(url).content.decode().split())

    assert "≠ 1 sentence outdated" in text
    assert 'href="?at=narrative-12#narratives-title"' in text
    assert text.count("≠ Outdated: a reviewer has changed an entity of this sentence") == 0
    later = reviewer.get(url, {"at": "narrative-12"}).content.decode()
    assert later.count("≠ Outdated: a reviewer has changed an entity of this sentence") == 1
