"""Chunk reports become encounters: deterministic, complete, and never across patients."""

from __future__ import annotations

from datetime import date
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import ErrorCode, ReplyError
from pipeline.core.identity import Identity, digests
from pipeline.core.types import PageText, Span
from pipeline.providers.schemas import EncounterType, FoundEncounter, LineSpan
from pipeline.stages.pass05.reconcile import (
    ChunkReport,
    Reason,
    Reconciliation,
    ReconciliationRule,
    check,
    reconcile,
    spans_from_lines,
)

TEN = "\n".join(f"line {n}" for n in range(1, 11))


def paged(count: int, text: str = TEN, blank: tuple[int, ...] = ()) -> dict[int, PageText]:
    return {
        n: PageText(number=n, text="" if n in blank else text, is_blank=n in blank)
        for n in range(1, count + 1)
    }


def found(
    *lines: tuple[int, int, int] | int,
    start: bool = False,
    end: bool = False,
    day: str | None = "2024-01-02",
    last_day: str | None = None,
    type_: EncounterType = "office_visit",
    facility: str | None = "North Clinic",
    patient: str | None = "Doe, Jane",
    born: str | None = None,
) -> FoundEncounter:
    """Create an encounter of whole pages (`3`) or of lines of a page (`(3, 1, 5)`)."""
    return FoundEncounter(
        encounter_type=type_,
        spans=[
            LineSpan(page=n)
            if isinstance(n, int)
            else LineSpan(page=n[0], first_line=n[1], last_line=n[2])
            for n in lines
        ],
        open_at_start=start,
        open_at_end=end,
        date_start=day,
        date_end=last_day,
        facility=facility,
        patient_name=patient,
        patient_birth_date=born,
        rule="split.service_date",
    )


def chunk(index: int, first: int, last: int, *encounters: FoundEncounter) -> ChunkReport:
    return ChunkReport(
        chunk_index=index,
        first_page=first,
        last_page=last,
        context_page=first - 1 if first > 1 else None,
        encounters=encounters,
    )


def pages_of(result: Reconciliation) -> list[tuple[int, ...]]:
    return [encounter.pages for encounter in result.encounters]


def rules_of(result: Reconciliation) -> list[ReconciliationRule]:
    return [decision.rule for decision in result.decisions]


def test_encounters_that_overlap_on_the_shared_page_are_one() -> None:
    reports = [
        chunk(0, 1, 2, found(1, 2, end=True)),
        chunk(1, 3, 4, found(2, 3, start=True, day=None), found(4, day="2024-03-01")),
    ]

    result = reconcile(reports, paged(4))

    assert pages_of(result) == [(1, 2, 3), (4,)]
    assert result.encounters[0].date_start == date(2024, 1, 2)
    assert [e.rule for chain in result.chains for e in chain.edges] == [
        ReconciliationRule.JOIN_OVERLAP
    ]
    assert result.chains[0].edges[0].overlap == len(TEN)


def test_without_overlap_key_facts_decide() -> None:
    reports = [
        chunk(
            0,
            1,
            2,
            found((2, 1, 4), end=True, day="2024-05-05"),
            found(1, (2, 5, 10), end=True),
        ),
        chunk(1, 3, 3, found(3, start=True)),
    ]

    result = reconcile(reports, paged(3))

    assert pages_of(result) == [(1, 2, 3), (2,)]
    assert ReconciliationRule.JOIN_FACTS in rules_of(result)


def test_facts_that_disagree_keep_two_encounters_apart() -> None:
    reports = [
        chunk(0, 1, 1, found(1, end=True)),
        chunk(1, 2, 2, found(2, start=True, day="2024-02-03")),
    ]

    result = reconcile(reports, paged(2))

    assert pages_of(result) == [(1,), (2,)]
    assert [encounter.unresolved for encounter in result.encounters] == [False, True]
    assert rules_of(result) == [ReconciliationRule.NO_PARTNER]


def test_the_sole_open_encounters_on_both_sides_are_one_where_nothing_is_stated() -> None:
    reports = [
        chunk(0, 1, 2, found(1, end=True)),
        chunk(1, 3, 3, found(3, start=True, day=None, facility=None, patient=None, type_="other")),
    ]

    result = reconcile(reports, paged(3, blank=(2,)))

    assert pages_of(result) == [(1, 3)]
    assert rules_of(result) == [ReconciliationRule.JOIN_SOLE]


def test_another_patient_is_never_joined_even_where_lines_overlap() -> None:
    reports = [
        chunk(0, 1, 2, found(1, 2, end=True)),
        chunk(1, 3, 3, found(2, 3, start=True, patient="Roe, Richard")),
    ]

    result = reconcile(reports, paged(3))

    assert pages_of(result) == [(1, 2), (3,)]
    assert rules_of(result)[0] is ReconciliationRule.REFUSE_PATIENT
    assert [encounter.mismatch for encounter in result.encounters] == [False, True]


def test_a_stay_runs_through_any_number_of_chunks() -> None:
    pages = paged(400)
    reports = [chunk(0, 1, 10, found(*range(1, 11), end=True, type_="inpatient"))]
    for index in range(1, 40):
        first = index * 10 + 1
        own = range(first - 1, first + 10)
        reports.append(
            chunk(
                index,
                first,
                first + 9,
                found(*own, start=True, end=True, day=None, facility=None, type_="other"),
            )
        )

    result = reconcile(reports, pages)

    assert pages_of(result) == [tuple(range(1, 401))]
    assert len(result.chains[0].members) == 40
    assert len(result.chains[0].edges) == 39
    assert not result.encounters[0].unresolved


def test_one_encounter_with_another_between_its_parts_is_one_across_chunks() -> None:
    reports = [
        chunk(0, 1, 2, found(1), found(2, day="2024-01-09", type_="laboratory")),
        chunk(1, 3, 3, found(3)),
    ]

    result = reconcile(reports, paged(3))

    assert pages_of(result) == [(1, 3), (2,)]
    assert rules_of(result) == [ReconciliationRule.JOIN_SAME_ENCOUNTER]


def test_encounters_that_one_chunk_separates_stay_separate() -> None:
    result = reconcile([chunk(0, 1, 2, found(1), found(2))], paged(2))

    assert pages_of(result) == [(1,), (2,)]


def test_the_narrower_claim_has_the_lines_that_two_encounters_claim() -> None:
    wide, narrow = found(1), found((1, 4, 6), type_="laboratory")

    result = reconcile([chunk(0, 1, 1, wide, narrow)], paged(1))

    texts = [[TEN[s.start : s.end] for s in e.spans] for e in result.encounters]
    assert texts == [
        ["line 1\nline 2\nline 3\n", "line 7\nline 8\nline 9\nline 10"],
        ["line 4\nline 5\nline 6\n"],
    ]
    assert rules_of(result) == [ReconciliationRule.CONFLICT]


def test_the_own_chunk_beats_the_next_ones_view_of_its_page() -> None:
    reports = [
        chunk(0, 1, 1, found((1, 1, 5)), found((1, 6, 10), end=True, day="2024-02-02")),
        chunk(1, 2, 2, found((1, 3, 10), 2, start=True, day="2024-02-02")),
    ]

    result = reconcile(reports, paged(2))

    assert [e.spans[0] for e in result.encounters] == [Span(1, 0, 35), Span(1, 35, 70)]


def test_lines_left_over_go_to_the_encounter_that_the_next_chunk_begins_with_them() -> None:
    reports = [
        chunk(0, 1, 1, found((1, 1, 7))),
        chunk(1, 2, 2, found((1, 8, 10), 2, start=True, day="2024-02-02")),
    ]

    result = reconcile(reports, paged(2))

    assert pages_of(result) == [(1,), (1, 2)]
    assert ReconciliationRule.CONTEXT_FILLS_GAP in rules_of(result)


def test_an_encounter_of_the_context_page_alone_is_left_to_its_own_chunk() -> None:
    reports = [chunk(0, 1, 1, found(1)), chunk(1, 2, 2, found(1), found(2, day="2024-02-02"))]

    result = reconcile(reports, paged(2))

    assert pages_of(result) == [(1,), (2,)]
    assert rules_of(result) == [ReconciliationRule.CONTEXT_ONLY]


def test_text_of_no_encounter_is_listed_with_its_reason() -> None:
    report = ChunkReport(
        chunk_index=0,
        first_page=1,
        last_page=3,
        context_page=None,
        encounters=(found((1, 3, 10)),),
        unsupported_pages=(3,),
    )

    result = reconcile([report], paged(3, blank=(2,)))

    assert [(a.span, a.encounter, a.reason) for a in result.assignments] == [
        (Span(1, 0, 14), None, Reason.UNCLAIMED),
        (Span(1, 14, 70), "e1", None),
        (Span(3, 0, 70), None, Reason.UNSUPPORTED_LANGUAGE),
    ]


def test_white_space_between_encounters_is_no_loss() -> None:
    pages = paged(1, "\none\n\n  \ntwo\n")

    result = reconcile([chunk(0, 1, 1, found((1, 2, 2)), found((1, 5, 5)))], pages)

    assert [(a.span, a.encounter) for a in result.assignments] == [
        (Span(1, 0, 9), "e1"),
        (Span(1, 9, 13), "e2"),
    ]


def test_a_record_without_encounters_is_all_unassigned() -> None:
    result = reconcile([chunk(0, 1, 1)], paged(1))

    assert (result.encounters, result.patient) == ((), None)
    assert [a.encounter for a in result.assignments] == [None]


def test_impossible_dates_of_a_reply_are_not_stated() -> None:
    result = reconcile([chunk(0, 1, 1, found(1, day="2001-02-29"))], paged(1))

    assert result.encounters[0].date_start is None


def test_an_encounter_of_another_patient_than_the_known_one_is_held() -> None:
    jane = Identity(name="Jane Doe", birth_date="1950-03-14")
    report = chunk(
        0, 1, 2, found(1, born="1950-03-14"), found(2, patient="Roe, Richard", day="2024-02-02")
    )

    by_name = reconcile([report], paged(2), known=jane)
    by_digest = reconcile([report], paged(2), known=digests(jane, b"key"), key=b"key")

    assert [e.mismatch for e in by_name.encounters] == [False, True]
    assert [e.mismatch for e in by_digest.encounters] == [False, True]


def test_a_record_of_the_wrong_patient_is_held_whole() -> None:
    known = digests(Identity(name="Roe, Richard", birth_date="1940-01-01"), b"key")
    report = chunk(0, 1, 2, found(1, born="1950-03-14"), found(2, day="2024-02-02"))

    result = reconcile([report], paged(2), known=known, key=b"key")

    assert [e.mismatch for e in result.encounters] == [True, True]


def test_a_scanners_slip_in_the_name_is_not_another_patient() -> None:
    known = digests(Identity(name="Doe, Jane", birth_date="1950-03-14"), b"key")
    report = chunk(
        0,
        1,
        3,
        found(1, 2, born="1950-03-14"),
        found(3, patient="D0e, Jane", born="1950-03-14", day="2024-02-02"),
    )

    result = reconcile([report], paged(3), known=known, key=b"key")

    assert [e.mismatch for e in result.encounters] == [False, False]


def test_two_people_with_as_much_text_each_are_both_held() -> None:
    report = chunk(0, 1, 2, found(1), found(2, patient="Roe, Richard", day="2024-02-02"))

    result = reconcile([report], paged(2))

    assert [e.mismatch for e in result.encounters] == [True, True]
    assert rules_of(result) == [ReconciliationRule.PATIENT_AMBIGUOUS] * 2


@pytest.mark.parametrize(
    "wrong",
    [
        found(9),
        found((2, 5, 4)),
        found((2, 11, 12)),
        found(1, 2),
    ],
)
def test_a_reply_about_what_it_was_not_shown_is_refused(wrong: FoundEncounter) -> None:
    report = ChunkReport(
        chunk_index=1, first_page=2, last_page=3, context_page=None, encounters=(wrong,)
    )

    with pytest.raises(ReplyError) as raised:
        check(report, paged(9))

    assert raised.value.code is ErrorCode.PARSE_SCHEMA


def test_a_reply_about_its_own_and_its_context_page_is_accepted() -> None:
    check(chunk(1, 2, 3, found(1, 2, (3, 10, 100_000), start=True)), paged(3))


def test_chunks_that_do_not_follow_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="does not follow"):
        reconcile([chunk(0, 1, 2), chunk(1, 4, 5)], paged(5))


def test_lines_become_spans_that_touch() -> None:
    lines = [
        LineSpan(page=1, first_line=3, last_line=4),
        LineSpan(page=1, first_line=1, last_line=2),
        LineSpan(page=2),
    ]

    assert spans_from_lines(lines, paged(2)) == (Span(1, 0, 28), Span(2, 0, 70))


def test_decisions_and_reprs_hold_no_phi() -> None:
    reports = [
        chunk(0, 1, 2, found(1, 2, end=True)),
        chunk(1, 3, 4, found(2, 3, start=True), found(4, patient="Roe, Richard")),
    ]

    result = reconcile(reports, paged(4))

    shown = repr(result) + repr(reports)
    for secret in ("Doe", "Roe", "Richard", "North", "2024"):
        assert secret not in shown


_NAMES = st.sampled_from([None, "Doe, Jane", "Roe, Richard"])
_DAYS = st.sampled_from([None, "2024-01-02", "2024-02-02", "nonsense"])


@st.composite
def _reports(draw: st.DrawFn) -> tuple[list[ChunkReport], dict[int, PageText]]:
    count = draw(st.integers(1, 8))
    pages = {}
    for number in range(1, count + 1):
        text = draw(st.sampled_from(["a\nb\nc\nd", "one\n\n \ntwo\n", "x", "\n\n", TEN]))
        blank = draw(st.booleans()) and not text.strip()
        pages[number] = PageText(number=number, text=text, is_blank=blank)
    reports: list[ChunkReport] = []
    first = 1
    while first <= count:
        last = min(count, first + draw(st.integers(0, 3)))
        shown = range(max(1, first - 1), last + 1)
        encounters = [
            found(
                *[
                    (draw(st.sampled_from(shown)), low, low + draw(st.integers(0, 9)))
                    for low in draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
                ],
                start=draw(st.booleans()),
                end=draw(st.booleans()),
                day=draw(_DAYS),
                patient=draw(_NAMES),
            )
            for _ in range(draw(st.integers(0, 3)))
        ]
        reports.append(chunk(len(reports), first, last, *encounters))
        first = last + 1
    return reports, pages


@given(_reports(), st.randoms(use_true_random=False))
def test_any_replies_give_each_character_one_place_whatever_their_order(
    drawn: tuple[list[ChunkReport], dict[int, PageText]], random: Random
) -> None:
    reports, pages = drawn
    shuffled = list(reports)
    random.shuffle(shuffled)

    result = reconcile(shuffled, pages)

    assert result == reconcile(reports, pages)
    placed = [(a.span.page, c) for a in result.assignments for c in range(a.span.start, a.span.end)]
    wanted = [(p.number, c) for p in pages.values() if not p.is_blank for c in range(len(p.text))]
    assert placed == wanted
    of_encounters = sorted(
        (a.encounter or "", a.span) for a in result.assignments if a.encounter is not None
    )
    assert of_encounters == sorted((e.key, s) for e in result.encounters for s in e.spans)
    assert all(e.spans for e in result.encounters)
    members = [m for e in result.encounters for m in e.members]
    assert len(members) == len(set(members))
    crossing = [e.key for e in result.encounters if len({m.chunk_index for m in e.members}) > 1]
    assert [c.encounter for c in result.chains] == crossing
    assert all(len(c.edges) == len(c.members) - 1 for c in result.chains)
