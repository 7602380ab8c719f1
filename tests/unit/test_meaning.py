"""Vectors order a shortlist within a bound: they choose no side, and add or lose no code."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pipeline.clinical.facts import Candidate
from pipeline.codes.search import meaning, rank

NAME = "Sore  Knee "
SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=10)


def candidate(code: str, score: float, reason: str = "1 of 1 words", term: str = "") -> Candidate:
    return Candidate(
        system="ICD10CM", code=code, display=f"code {code}", score=score, reason=reason, term=term
    )


def at(angle: float) -> list[float]:
    return [math.cos(angle), math.sin(angle)]


def ordered(candidates: Sequence[Candidate], angles: Sequence[float]) -> list[Candidate]:
    """Order candidates whose terms are so far from the name."""
    vectors = {meaning.text_of(NAME): at(0.0)}
    for each, angle in zip(candidates, angles, strict=True):
        vectors[meaning.text_of_code(each)] = at(angle)
    return meaning.ordered(NAME, candidates, vectors)


def codes(found: Sequence[Candidate]) -> list[str]:
    return [each.code for each in found]


def test_the_nearer_of_two_like_scores_comes_first() -> None:
    found = ordered([candidate("A", 0.80), candidate("B", 0.75)], [1.0, 0.1])

    assert codes(found) == ["B", "A"]
    assert [each.reason for each in found] == [
        "1 of 1 words; meaning 1.00",
        "1 of 1 words; meaning 0.54",
    ]


def test_no_code_passes_a_code_with_more_than_a_quarter_more() -> None:
    assert codes(ordered([candidate("A", 1.0), candidate("B", 0.79)], [3.0, 0.0])) == ["A", "B"]
    assert codes(ordered([candidate("A", 1.0), candidate("B", 0.81)], [3.0, 0.0])) == ["B", "A"]


def test_the_bound_is_below_each_contradiction_and_foreign_context() -> None:
    assert max(rank.CONTRADICTED, rank.OUT_OF_CONTEXT) * (1 + meaning.BOOST) < 1


def test_a_code_that_states_what_the_text_does_not_is_never_raised() -> None:
    sided = candidate("B", 0.75, f"1 of 1 words; laterality left {rank.UNSTATED}")

    assert codes(ordered([candidate("A", 0.80), sided], [1.0, 0.0])) == ["A", "B"]


def test_codes_that_differ_in_facets_have_one_text() -> None:
    left = candidate("L", 0.5, term="Pain in left knee, initial encounter")
    right = candidate("R", 0.4, term="Pain in right knee, subsequent encounter")

    assert meaning.text_of_code(left) == meaning.text_of_code(right) == "pain in knee"


def test_a_list_of_one_or_a_name_without_words_needs_no_vector() -> None:
    two = [candidate("A", 0.5), candidate("B", 0.4)]

    assert meaning.texts_of(NAME, two[:1]) == set()
    assert meaning.texts_of(" \n ", two) == set()
    assert meaning.ordered(NAME, two[:1], {}) == two[:1]
    assert meaning.ordered("", two, {}) == two
    assert meaning.texts_of(NAME, two) == {"sore knee", "code a", "code b"}


@given(SCORES, st.data())
def test_an_order_has_the_same_codes_and_falling_scores(
    scores: list[float], data: st.DataObject
) -> None:
    listed = [candidate(f"{n:02}", score) for n, score in enumerate(sorted(scores)[::-1])]
    angles = data.draw(st.lists(st.floats(0, math.pi), min_size=len(listed), max_size=len(listed)))

    found = ordered(listed, angles)

    assert sorted(codes(found)) == codes(listed)
    after = [each.score for each in found]
    assert after == sorted(after, reverse=True)
    assert all(0 <= score <= 1 for score in after)
    by_words = {each.code: each.score for each in listed}
    for number, first in enumerate(found):
        for later in found[number + 1 :]:
            limit = by_words[first.code] * (1 + meaning.BOOST) + 0.0005
            assert by_words[later.code] <= limit
