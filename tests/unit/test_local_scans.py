"""The local engine scans each place of a page rarely, and misses nothing by that."""

from __future__ import annotations

import re

import pytest

from medproc.env import PROJECT_ROOT
from pipeline.clinical.page_text.lines import lines_of
from pipeline.core.types import PageSlice
from pipeline.providers.local.assertions.check_boxes import box_items
from pipeline.providers.local.assertions.cue_beginnings import ANY, alternatives, beginnings
from pipeline.providers.local.assertions.cues import cue_rows, cues_in, phrases_at
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.engine import read
from pipeline.providers.local.labs.columns import columns_of
from pipeline.providers.local.text.document import compose

VISIT = (PROJECT_ROOT / "samples" / "visit.txt").read_text()
TABLE = "LABORATORY\nTest\tResult\tUnits\tReference Range\nSodium\t140\tmmol/L\t135-145\n"


def page(text: str) -> tuple[PageSlice, ...]:
    return (PageSlice(page=1, start=0, text=text),)


def test_the_scan_for_cues_tries_two_phrases_at_a_place_on_average() -> None:
    places = [m.start() for m in re.finditer(r"[a-z0-9]+|[^a-z0-9]", VISIT.lower())]

    tried = sum(len(phrases_at(VISIT.lower()[at : at + 4])) for at in places)

    assert tried < 2.5 * len(places)


@pytest.mark.parametrize(
    "text",
    [
        "The patient denieſ chest pain.",
        "No hiſtory of gout.",
        "Riſk of falls, poſſible pneumonia, probable aſthma.",
        "UnliKely cancer; not liKely stroke; suſpected gout.",
        "NO fever",
        "denies",
        "r/o",
        "if",
    ],
)
def test_letters_that_stand_for_others_and_the_end_of_a_text_hide_no_cue(text: str) -> None:
    patterns = [(kind, re.compile(row, re.I)) for kind, row in cue_rows()]
    words = [m.start() for m in re.finditer(r"[^\W_]+|[\W_]", text)]

    first = {
        at: next((kind for kind, pattern in patterns if pattern.match(text, at)), None)
        for at in words
    }

    found = cues_in(text)
    assert found
    assert [cue.kind for cue in found] == [first[cue.start] for cue in found]
    inside = {at for cue in found for at in range(cue.start, cue.end)}
    assert [at for at in words if first[at] is not None and at not in inside] == []


def test_the_heading_of_a_table_is_read_once_for_all_rules() -> None:
    columns_of.cache_clear()

    state = read(page(TABLE))

    assert [found.value for found in state.findings] == ["140"]
    seen = columns_of.cache_info()
    assert seen.hits >= 1
    assert seen.misses <= len(lines_of(TABLE))


@pytest.mark.parametrize(
    "box", ["[+]", "[x]", "(X)", "☑", "__x", "x__", "[ ]", "( )", "☐", "❑", "___", "[-]"]
)
def test_every_kind_of_box_is_seen(box: str) -> None:
    text = f"{box} Asthma\n[ ] Cough\n"

    items = box_items(lines_of(text), text, text)

    assert len(items) == 2


@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 12), (3, 40), (17, 90), (60, 10_000)])
def test_the_tokens_of_a_part_are_those_that_lie_within(start: int, end: int) -> None:
    state = DocumentState.of(compose(page(VISIT)))

    within = [t for t in state.tokens if start <= t.start and t.end <= end]

    assert state.tokens_in(start, end) == within


def test_the_phrases_at_a_place_are_those_whose_beginning_fits() -> None:
    phrases = [(beginnings(part, 4), part) for _, row in cue_rows() for part in alternatives(row)]
    low = VISIT.lower()
    openings = {low[at : at + size] for at in range(0, len(low), 37) for size in (1, 2, 3, 4)}

    for opening in openings:
        fitting = [
            part
            for begins, part in phrases
            if any(
                all(mark in (sign, ANY) for mark, sign in zip(begin, opening, strict=False))
                for begin in begins
            )
        ]
        assert [pattern.pattern for _, pattern in phrases_at(opening)] == fitting
