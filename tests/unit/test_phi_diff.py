"""The comparison of two texts loses nothing, and its cost grows with the length only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observability.phi.diff import COMPARED_LINES, DiffRow, difference

TEXTS = st.lists(st.sampled_from("abcdefgh{}"), max_size=40)


class Counted(str):
    """A line that counts its comparisons and hash look-ups."""

    __slots__ = ()
    looked = 0

    def __eq__(self, other: object) -> bool:
        Counted.looked += 1
        return str.__eq__(self, other) if isinstance(other, str) else False

    def __hash__(self) -> int:
        Counted.looked += 1
        return str.__hash__(self)


def sides(lines: list[DiffRow], text: list[str]) -> tuple[list[str], list[str]]:
    """Rebuild both texts; folded lines are alike, and come from the left text."""
    left: list[str] = []
    right: list[str] = []
    for line in lines:
        alike = text[len(left) : len(left) + line.folded]
        left += alike if line.folded else [] if line.left is None else [line.left]
        right += alike if line.folded else [] if line.right is None else [line.right]
    return left, right


@given(TEXTS, TEXTS)
def test_both_texts_can_be_read_from_their_difference(left: list[str], right: list[str]) -> None:
    assert sides(difference(left, right), left) == (left, right)


def test_only_the_line_that_differs_in_a_long_text_is_shown_as_changed() -> None:
    left = [f"{n}" if n % 3 else "}," for n in range(2_000)]
    right = [*left[:700], "another", *left[701:1_500], "one more", *left[1_500:]]

    lines = difference(left, right)

    changed = [(each.left, each.right) for each in lines if each.kind == "changed"]
    assert changed == [("700", "another"), (None, "one more")]
    assert sides(lines, left) == (left, right)


@pytest.mark.parametrize("words", [1, 2, 7])
def test_replies_that_go_round_in_circles_are_compared_in_bounded_work(words: int) -> None:
    left = [Counted(f"a{n % words}") for n in range(COMPARED_LINES)]
    right = [Counted("b"), *(Counted(f"a{n % (words + 1)}") for n in range(COMPARED_LINES))]
    Counted.looked = 0

    lines = difference([*left, Counted("c")], right)

    # A few look-ups per line, although there are nine million pairs of lines.
    assert Counted.looked < 40 * COMPARED_LINES
    assert len(lines) <= 2 * COMPARED_LINES
