"""The batch planner fulfils requirement 4, by example and by property."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.core.types import PageText, Span, slices
from pipeline.providers.prompts import estimate_tokens
from pipeline.stages.pass1.boundaries import (
    Safety,
    is_heading,
    is_row,
    judge,
    running_lines,
    section_open_after,
)
from pipeline.stages.pass1.planner import Bounds, PlannedBatch, context_for, plan

SAFE = "PLAN\nAll is well and nothing goes on."
SECTION = "It went on quietly. The evening was calm and she slept."
OPEN = "She was brought to the ward and then taken to the operating theatre where the"


def paged(*texts: str, blank: tuple[int, ...] = ()) -> dict[int, PageText]:
    return {
        n: PageText(number=n, text="" if n in blank else text, is_blank=n in blank)
        for n, text in enumerate(texts, start=1)
    }


def planned(*texts: str, bounds: Bounds | None = None, blank: tuple[int, ...] = ()) -> list[int]:
    """Return the number of pages of each batch, from its first to its last."""
    pages = paged(*texts, blank=blank)
    spans = [page.whole for page in pages.values() if not page.is_blank]
    return [b.last_page - b.first_page + 1 for b in plan(spans, pages, bounds)]


def test_a_batch_closes_at_the_first_safe_boundary_from_the_minimum_on() -> None:
    assert planned(*[SAFE] * 9) == [3, 3, 3]


def test_a_page_that_goes_on_is_not_the_end_of_a_batch() -> None:
    assert planned(SAFE, SAFE, OPEN, "patient woke up. All went well.", *[SAFE] * 4) == [4, 4]


def test_a_five_page_encounter_is_one_batch() -> None:
    assert planned(*[SAFE] * 5) == [5]


def test_a_tail_joins_its_neighbour_where_both_stay_within_the_maximum() -> None:
    assert planned(*[SAFE] * 8) == [3, 5]


def test_a_tail_remains_alone_where_its_neighbour_is_full() -> None:
    assert planned(*[SAFE] * 5, bounds=Bounds(min_pages=3, max_pages=4)) == [3, 2]


def test_at_the_maximum_the_best_boundary_inside_the_bounds_is_taken() -> None:
    texts = [f"PLAN\n{OPEN}", *[OPEN] * 4, f"{OPEN}\nend came.", *[OPEN] * 8]

    assert planned(*texts)[0] == 6


def test_between_equal_boundaries_the_planner_takes_the_boundary_without_a_short_tail() -> None:
    texts = ["HOSPITAL COURSE\n" + SECTION, *[SECTION] * 10]

    assert planned(*texts) == [8, 3]


def test_without_a_boundary_a_batch_runs_on_past_the_maximum() -> None:
    texts = [*[OPEN] * 12, "and it ended.", *[SAFE] * 3]

    assert planned(*texts) == [13, 3]


def test_no_batch_passes_the_hard_ceiling() -> None:
    bounds = Bounds(min_pages=2, max_pages=4, hard_ceiling=6)

    assert planned(*[OPEN] * 14, bounds=bounds) == [6, 6, 2]


def test_blank_pages_inside_a_run_do_not_break_it_and_count_as_pages() -> None:
    assert planned(SAFE, "", SAFE, "", SAFE, blank=(2, 4)) == [5]


def test_pages_of_another_encounter_between_two_runs_divide_them() -> None:
    pages = paged(*[SAFE] * 6)

    batches = plan([pages[n].whole for n in (1, 2, 5, 6)], pages)

    assert [(b.index, b.first_page, b.last_page) for b in batches] == [(0, 1, 2), (1, 5, 6)]


def test_a_batch_carries_only_the_spans_of_its_encounter() -> None:
    pages = paged("aaaa\nbbbb\ncccc", "dddd")
    spans = [Span(2, 0, 4), Span(1, 10, 14), Span(1, 0, 5)]

    batches = plan(spans, pages)

    assert [b.spans for b in batches] == [(Span(1, 0, 5), Span(1, 10, 14), Span(2, 0, 4))]


def test_tokens_close_a_batch_before_its_minimum() -> None:
    text = "x" * 396 + "."

    assert planned(text, text, text, bounds=Bounds(max_tokens=200)) == [2, 1]


def test_a_page_over_the_token_bound_is_cut_at_a_paragraph() -> None:
    text = "a" * 50 + ".\n\n" + "b" * 40 + "\n" + "c" * 30
    pages = paged(text)

    batches = plan([pages[1].whole], pages, Bounds(max_tokens=20))

    texts = [text[s.start : s.end] for b in batches for s in b.spans]
    assert texts == ["a" * 50 + ".\n\n", "b" * 40 + "\n" + "c" * 30]


def test_overlapping_spans_are_refused() -> None:
    pages = paged(SAFE)

    with pytest.raises(ValueError, match="overlap"):
        plan([Span(1, 0, 10), Span(1, 5, 12)], pages)


def test_impossible_bounds_are_refused() -> None:
    with pytest.raises(ValueError, match="min <= max"):
        Bounds(min_pages=5, max_pages=4)


def test_nothing_to_read_is_no_batch() -> None:
    assert plan([], {}) == ()


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("PLAN\nRest at home.", "IMPRESSION\nBetter.", Safety.SAFE),
        ("PLAN\nRest at home.", "Return in a week.", Safety.SECTION),
        ("She walked to the", "ward again.", Safety.BROKEN),
        ("Take one tablet daily,", "IMPRESSION", Safety.BROKEN),
        ("Sodium 139 mmol/L 135-145", "Potassium 4.5 mmol/L 3.5-5.1", Safety.BROKEN),
        ("Sodium   139   mmol/L", "Potassium   4.5   mmol/L", Safety.BROKEN),
        ("Sodium 139 mmol/L 135-145", "COMMENT\nNone.", Safety.SAFE),
        ("MEDICATIONS", "Aspirin is taken daily.", Safety.SECTION),
        ("PLAN\nContinued on next page", "More of it.", Safety.SECTION),
        ("Seen by Dr.", "Miller today.", Safety.BROKEN),
        ("Rest.\nClinic Page 1 of 2", "Clinic Page 2 of 2\nIMPRESSION\nWell.", Safety.SAFE),
        ("", "IMPRESSION", Safety.SAFE),
    ],
)
def test_a_page_boundary_has_the_right_safety(before: str, after: str, expected: Safety) -> None:
    running = {"clinic page # of #"}

    assert judge(before, after, running, in_section="PLAN" in before) is expected


def test_headings_and_rows_are_distinguished() -> None:
    assert is_heading("PAST MEDICAL HISTORY")
    assert is_heading("IMPRESSION: stable")
    assert not is_heading("BP 120/80 HR 72 RR 16 SpO2 98")
    assert is_row("Creatinine 1.4 H mg/dL 0.7-1.3")
    assert not is_row("She was given 40 mg of it and the pain was gone")


def test_context_is_the_neighbouring_text_of_the_same_encounter_cut_at_lines() -> None:
    line = "one line of text here\n"
    pages = paged(line * 60, line * 3, line * 60)
    spans = [page.whole for page in pages.values()]
    batch = PlannedBatch(index=1, spans=(pages[2].whole,), first_page=2, last_page=2)

    before, after = context_for(batch, spans, pages)

    assert [(s.page, s.context) for s in (*before, *after)] == [(1, True), (3, True)]
    assert 500 < len(before[0].text) <= 600
    assert 500 < len(after[0].text) <= 600
    assert before[0].text.startswith("one line")
    assert before[0].span.end == len(pages[1].text)
    assert after[0].text.endswith("here\n")
    assert after[0].start == 0


def test_context_of_a_batch_inside_a_page_is_on_that_page() -> None:
    pages = paged("first line\nsecond line\nthird line")
    batch = PlannedBatch(index=1, spans=(Span(1, 11, 23),), first_page=1, last_page=1)

    before, after = context_for(batch, [pages[1].whole], pages)

    assert [s.text for s in (*before, *after)] == ["first line\n", "third line"]


def test_context_never_shows_another_encounters_text() -> None:
    pages = paged("mine\nother encounter\nmine again")
    spans = [Span(1, 0, 5), Span(1, 21, 31)]
    batch = PlannedBatch(index=0, spans=(spans[0],), first_page=1, last_page=1)

    before, after = context_for(batch, spans, pages)

    assert before == ()
    assert [s.text for s in after] == ["mine again"]


_TEXTS = st.one_of(
    st.sampled_from([SAFE, SECTION, OPEN, "Sodium 139 mmol/L 135-145", "x" * 700]),
    st.text(alphabet="ab .\n", min_size=1, max_size=200),
)
_BOUNDS = st.tuples(
    st.integers(1, 4), st.integers(0, 5), st.integers(0, 6), st.integers(1, 120)
).map(
    lambda b: Bounds(
        min_pages=b[0],
        max_pages=b[0] + b[1],
        hard_ceiling=b[0] + b[1] + b[2],
        max_tokens=b[3],
    )
)


@given(
    texts=st.lists(st.one_of(_TEXTS, st.none()), min_size=1, max_size=30),
    bounds=_BOUNDS,
    cuts=st.lists(st.integers(0, 3), min_size=30, max_size=30),
)
def test_every_span_is_covered_once_in_order_and_within_the_bounds(
    texts: list[str | None], bounds: Bounds, cuts: list[int]
) -> None:
    pages = {
        n: PageText(number=n, text=text or "", is_blank=text is None)
        for n, text in enumerate(texts, start=1)
    }
    spans = []
    for page in pages.values():
        middle = len(page.text) // 2
        match cuts[page.number - 1]:
            case 0:
                spans.append(page.whole)
            case 1:
                spans.append(Span(page.number, 0, middle))
            case 2:
                spans += [Span(page.number, 0, middle), Span(page.number, middle, len(page.text))]

    batches = plan(spans, pages, bounds)

    wanted = [(s.page, c) for s in sorted(spans) for c in range(s.start, s.end)]
    covered = [(s.page, c) for b in batches for s in b.spans for c in range(s.start, s.end)]
    assert covered == wanted
    assert [b.index for b in batches] == list(range(len(batches)))
    for batch in batches:
        assert (batch.first_page, batch.last_page) == (batch.spans[0].page, batch.spans[-1].page)
        assert batch.last_page - batch.first_page < bounds.hard_ceiling
        used = [estimate_tokens(s.text) for s in slices(batch.spans, pages)]
        assert sum(used) <= bounds.max_tokens
        numbers = sorted({span.page for span in batch.spans})
        for one, other in pairwise(numbers):
            assert all(pages[n].is_blank for n in range(one + 1, other))
    assert batches == plan(list(reversed(spans)), pages, bounds)


@example(
    texts=[
        "PLAN\nAll is well and nothing goes on.",
        "She was brought to the ward and then taken to the operating theatre where the",
        "a\n.",
        "a\n.",
        ".",
    ]
)
@given(texts=st.lists(_TEXTS, min_size=1, max_size=30))
def test_a_batch_passes_the_maximum_only_where_no_boundary_was_left(texts: list[str]) -> None:
    pages = paged(*texts)
    bounds = Bounds(min_pages=2, max_pages=4, hard_ceiling=8)

    batches = plan([page.whole for page in pages.values()], pages, bounds)

    running = running_lines([page.text for page in pages.values()])
    is_open, open_after = False, {}
    for number, page in pages.items():
        is_open = section_open_after(page.text, running, was_open=is_open)
        open_after[number] = is_open
    for batch in batches:
        width = batch.last_page - batch.first_page + 1
        if width > bounds.max_pages:
            inside = range(batch.first_page + 1, batch.first_page + bounds.max_pages - 1)
            for number in inside:
                after = judge(
                    pages[number].text,
                    pages[number + 1].text,
                    running,
                    in_section=open_after[number],
                )
                assert after is not Safety.SAFE or number - batch.first_page + 1 < 2


@given(texts=st.lists(st.text(alphabet="ab c\n", max_size=900), min_size=1, max_size=8))
def test_context_is_short_unowned_and_of_the_encounter(texts: list[str]) -> None:
    pages = paged(*texts)
    spans = [page.whole for page in pages.values() if page.text]

    for batch in plan(spans, pages, Bounds(min_pages=1, max_pages=2, max_tokens=100)):
        before, after = context_for(batch, spans, pages)

        for shown in (*before, *after):
            assert shown.context
            assert 0 < len(shown.text) <= 600
            assert not any(shown.span.overlap(span) for span in batch.spans)
            assert any(shown.span.overlap(span) == len(shown.span) for span in spans)
