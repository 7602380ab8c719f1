"""Alignment finds quotes in pages, and joins the results of batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.types import PageText, Span
from pipeline.providers.schemas import Category, FoundEntity
from pipeline.stages.pass1.align import (
    Alignment,
    AlignmentOutcome,
    QuoteMatch,
    align,
    align_all,
    merge,
)


def paged(*texts: str) -> dict[int, PageText]:
    return {
        n: PageText(number=n, text=text, is_blank=not text) for n, text in enumerate(texts, start=1)
    }


def entity(
    quote: str,
    page: int = 1,
    *,
    start: int | None = None,
    category: Category = "medication",
    name: str | None = None,
) -> FoundEntity:
    return FoundEntity(
        category=category, page=page, quote=quote, start=start, name=name or quote.split()[0]
    )


def place(quote: str, *texts: str, page: int = 1, start: int | None = None) -> Alignment:
    pages = paged(*texts)
    return align(entity(quote, page, start=start), [p.whole for p in pages.values()], pages, set())


def test_a_quote_at_its_hint_is_exact() -> None:
    found = place("aspirin 81 mg", "aspirin 81 mg and aspirin 81 mg", start=18)

    assert (found.outcome, found.match, found.span) == (
        AlignmentOutcome.ALIGNED,
        QuoteMatch.EXACT,
        Span(1, 18, 31),
    )
    assert found.score == 1.0


def test_a_wrong_hint_falls_back_to_the_text() -> None:
    found = place("aspirin", "takes aspirin daily", start=3)

    assert found.span == Span(1, 6, 13)


def test_the_nth_mention_takes_the_nth_place() -> None:
    pages = paged("aspirin, then aspirin, then aspirin")

    found = align_all([entity("aspirin")] * 4, [pages[1].whole], pages)

    starts = [a.alignment.span.start if a.alignment.span else None for a in found]
    assert starts == [0, 14, 28, None]
    assert found[3].alignment.outcome is AlignmentOutcome.REPEATED


def test_a_hinted_mention_keeps_its_place_from_one_without_hint() -> None:
    pages = paged("aspirin, then aspirin")

    found = align_all([entity("aspirin"), entity("aspirin", start=0)], [pages[1].whole], pages)

    assert [a.alignment.span for a in found] == [Span(1, 14, 21), Span(1, 0, 7)]


def test_two_entities_may_share_a_quote() -> None:
    pages = paged("BP 118/76 HR 72")
    both = [
        entity("BP 118/76 HR 72", category="vital", name="blood pressure"),
        entity("BP 118/76 HR 72", category="vital", name="heart rate"),
    ]

    found = align_all(both, [pages[1].whole], pages)

    assert [a.alignment.span for a in found] == [Span(1, 0, 15)] * 2


@pytest.mark.parametrize(
    ("quote", "text", "match"),
    [
        ("Hemoglobin 13.2 g/dL", "Hemoglobin      13.2\tg/dL", QuoteMatch.LAYOUT),
        ("Glucose 98 mg/dL 70-99", "Glucose\t98\t\tmg/dL\t70-99", QuoteMatch.LAYOUT),
        ("Lasix 40 mg now 20 mg", "~~Lasix 40 mg~~ now 20 mg", QuoteMatch.LAYOUT),
        ("shortness of breath", "has shortness\nof breath now", QuoteMatch.LAYOUT),
        ("hypertension", "known hyper-\ntension, stable", QuoteMatch.LAYOUT),
        ("follow-up visit", "a follow-\nup visit", QuoteMatch.LAYOUT),
        ("patient's asthma", "the patient’s asthma", QuoteMatch.LAYOUT),
        ("Diabetes Mellitus", "diabetes mellitus", QuoteMatch.LAYOUT),
        ("5 μg", "takes 5 µg", QuoteMatch.LAYOUT),
        ("lisinopril 20 mg", "1isinopril 20 mg", QuoteMatch.CONFUSABLE),
        ("furosemide 40 mg", "furosernide 40 mg", QuoteMatch.CONFUSABLE),
        ("insulin glargine", "insuIin glargine daily", QuoteMatch.CONFUSABLE),
    ],
)
def test_layout_and_scanner_slips_are_looked_through(
    quote: str, text: str, match: QuoteMatch
) -> None:
    found = place(quote, text)

    assert (found.outcome, found.match) == (AlignmentOutcome.ALIGNED, match)
    assert found.span is not None
    assert found.text == text[found.span.start : found.span.end]
    assert 0 < found.score < 1


def test_a_row_of_figures_is_found_below_another() -> None:
    found = place("14:00 103/61 112", "08:00 96/61 90\n14:00 103/61 112\n20:00 98/56 106")

    assert found.span == Span(1, 15, 31)


def test_the_stored_text_is_whole_where_a_pair_of_letters_was_folded() -> None:
    found = place("in the arm", "pain in the arrn today")

    assert found.text == "in the arrn"


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("5 mg", "takes 25 mg"),
        ("5 mg", "takes 2.5 mg"),
        ("A1c 7", "A1c 7.2"),
        ("A1c 7.2", "A1c 72"),
        (".5 mg", "0.5 mg"),
        ("10 mg", "lO mg"),
        ("50 mg", "S0 mg"),
        ("1 25 mg", "125 mg"),
        ("125 mg", "1 25 mg"),
        ("vitamin B12", "vitamin 812"),
        ("Potassium 5.1", "Potassium 5.l"),
        ("10-20 mg", "10-\n21 mg"),
        ("1,000 units", "11,000 units"),
        ("MS", "SYMPTOMS"),
        ("warfarin", "no anticoagulant"),
        ("   ", "a   b"),
    ],
)
def test_numbers_and_words_are_never_bent(quote: str, text: str) -> None:
    found = align(
        FoundEntity(category="lab", page=1, quote=quote, name="x"),
        [Span(1, 0, len(text))],
        paged(text),
        set(),
    )

    assert found.outcome is AlignmentOutcome.UNALIGNED
    assert (found.spans, found.score) == ((), 0.0)


def test_a_quote_may_run_over_to_the_next_page_past_running_lines() -> None:
    pages = paged(
        "Start of note\ntakes metoprolol succinate\nClinic Page 1 of 2",
        "Clinic Page 2 of 2\n25 mg daily at night",
    )

    found = align(
        entity("metoprolol succinate 25 mg daily"), [pages[1].whole, pages[2].whole], pages, set()
    )

    assert found.text == "metoprolol succinate\n25 mg daily"
    assert [span.page for span in found.spans] == [1, 2]


def test_a_quote_may_run_over_into_the_context_behind_the_batch() -> None:
    pages = paged("takes metoprolol succinate", "25 mg daily at night")

    found = align(
        entity("metoprolol succinate 25 mg"),
        [pages[1].whole],
        pages,
        set(),
        context=[Span(2, 0, 11)],
    )

    assert [span.page for span in found.spans] == [1, 2]


def test_a_quote_on_another_own_page_is_relocated_and_marked() -> None:
    found = place("warfarin 5 mg", "nothing", "warfarin 5 mg", "nothing", page=1)

    assert (found.outcome, found.span) == (AlignmentOutcome.RELOCATED, Span(2, 0, 13))
    assert found.score == pytest.approx(0.9)


def test_a_quote_that_only_context_shows_is_dropped() -> None:
    pages = paged("warfarin 5 mg", "nothing")

    found = align(entity("warfarin 5 mg"), [pages[2].whole], pages, set(), context=[pages[1].whole])

    assert (found.outcome, found.kept) == (AlignmentOutcome.CONTEXT, False)


def test_a_context_mention_does_not_take_the_place_of_an_own_one() -> None:
    pages = paged("warfarin", "warfarin")

    found = align(entity("warfarin"), [pages[2].whole], pages, set(), context=[pages[1].whole])

    assert found.outcome is AlignmentOutcome.CONTEXT


def test_text_of_another_encounter_on_the_page_is_never_searched() -> None:
    pages = paged("warfarin 5 mg\naspirin 81 mg")

    found = align(entity("warfarin 5 mg"), [Span(1, 14, 27)], pages, set())

    assert found.outcome is AlignmentOutcome.UNALIGNED


def test_merging_keeps_the_longer_of_two_batches_and_the_order_of_the_text() -> None:
    pages = paged("takes metoprolol succinate", "25 mg daily, aspirin 81 mg")
    first = align_all(
        [entity("metoprolol succinate 25 mg daily"), entity("nowhere")],
        [pages[1].whole],
        pages,
        context=[pages[2].whole],
    )
    second = align_all(
        [entity("25 mg daily", 2), entity("aspirin 81 mg", 2)],
        [pages[2].whole],
        pages,
        batch_index=1,
    )

    merged = merge([first, second])

    assert [a.entity.quote for a in merged] == [
        "metoprolol succinate 25 mg daily",
        "nowhere",
        "aspirin 81 mg",
    ]
    assert merged == merge([second, first])


def test_merging_keeps_two_categories_at_one_place() -> None:
    pages = paged("iron 28 L ug/dL")
    one = align_all([entity("iron")], [pages[1].whole], pages)
    two = align_all(
        [entity("iron 28 L ug/dL", category="lab")], [pages[1].whole], pages, batch_index=1
    )

    assert len(merge([one, two])) == 2


@given(
    words=st.lists(
        st.sampled_from(["ab", "12", "1.5", "O0", "l1", "rn", "cde", "fgh"]), min_size=1, max_size=6
    ),
    gaps=st.lists(st.sampled_from([" ", "  ", "\n", "\t"]), min_size=6, max_size=6),
)
def test_any_text_of_a_page_is_found_again_whatever_its_spacing(
    words: list[str], gaps: list[str]
) -> None:
    text = "start " + "".join(w + g for w, g in zip(words, gaps, strict=False)) + "end"
    quote = " ".join(words)

    found = place(quote, text)

    assert found.outcome is AlignmentOutcome.ALIGNED
    assert found.text.split() == quote.split()


def test_the_same_quote_with_another_dose_is_another_entity() -> None:
    quote = "prednisone 40 mg daily then 20 mg daily"
    pages = paged(quote)
    steps = [entity(quote).model_copy(update={"dose": d}) for d in ("40 mg", "20 mg", "40 mg")]

    found = align_all(steps, [pages[1].whole], pages)

    assert [a.alignment.outcome for a in found] == [
        AlignmentOutcome.ALIGNED,
        AlignmentOutcome.ALIGNED,
        AlignmentOutcome.REPEATED,
    ]


def test_another_dose_prefers_a_place_of_its_own() -> None:
    pages = paged("prednisone 40 mg, later prednisone 20 mg")
    mentions = [entity("prednisone").model_copy(update={"dose": d}) for d in ("40 mg", "20 mg")]

    found = align_all(mentions, [pages[1].whole], pages)

    assert [a.alignment.span.start for a in found if a.alignment.span] == [0, 24]


def test_steps_of_two_batches_are_kept_and_equal_steps_are_joined() -> None:
    quote = "prednisone 40 mg daily then 20 mg daily"
    pages = paged(quote)
    first = [entity(quote).model_copy(update={"dose": d}) for d in ("40 mg", "20 mg")]
    second = [entity(quote).model_copy(update={"dose": d}) for d in ("20 mg", None)]

    merged = merge(
        [
            align_all(first, [pages[1].whole], pages),
            align_all(second, [pages[1].whole], pages, batch_index=1),
        ]
    )

    assert [a.entity.dose for a in merged] == ["40 mg", "20 mg"]
