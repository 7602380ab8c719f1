"""A line-by-line diff of two texts, whose cost depends only on their length. PHI.

A model that is stuck in a loop repeats its lines. A common diff compares every line with all equal
lines and would take minutes for two looping replies. So the texts are cut at lines that occur once
in each text, and only short pieces are compared in full.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest

COMPARED_LINES = 3_000
CONTEXT_LINES = 3
SHORT = 10_000
"""Largest product of left and right line counts that is compared in full."""
CUTS = 8
"""How many times a piece is cut into smaller pieces."""

_Pair = tuple[int, int]
"""A line of the left text and the equal line of the right text."""


@dataclass(frozen=True, kw_only=True)
class DiffRow:
    """One row of the side-by-side view; `kind` is same, changed, or folded."""

    kind: str
    left: str | None = field(default=None, repr=False)
    right: str | None = field(default=None, repr=False)
    folded: int = 0


def difference(left: Sequence[str], right: Sequence[str]) -> list[DiffRow]:
    """Return both texts line by line; equal lines far from a change are folded.

    Repeated lines are shown as changed if the lines around them do not decide which of them
    correspond.
    """
    shown_left, shown_right = left[:COMPARED_LINES], right[:COMPARED_LINES]
    alike = _alike(shown_left, shown_right, CUTS)
    lines: list[DiffRow] = []
    at, l0, r0 = 0, 0, 0
    # The extra pair after the last line closes the last change.
    for l1, r1 in [*alike, (len(shown_left), len(shown_right))]:
        if l1 > l0 or r1 > r0:
            lines += _folded(shown_left[at:l0], at_start=at == 0, at_end=False)
            lines += _changed(shown_left[l0:l1], shown_right[r0:r1])
            at = l1
        l0, r0 = l1 + 1, r1 + 1
    last = shown_left[at:]
    return [*lines, *_folded(last, at_start=at == 0, at_end=len(shown_left) == len(left))]


def _changed(left: Sequence[str], right: Sequence[str]) -> Iterator[DiffRow]:
    for one, other in zip_longest(left, right):
        yield DiffRow(kind="changed", left=one, right=other)


def _folded(alike: Sequence[str], *, at_start: bool, at_end: bool) -> Iterator[DiffRow]:
    head = 0 if at_start else CONTEXT_LINES
    tail = 0 if at_end else CONTEXT_LINES
    hidden = len(alike) - head - tail
    if hidden < CONTEXT_LINES:
        head, hidden = len(alike), 0
    yield from (DiffRow(kind="same", left=text, right=text) for text in alike[:head])
    if hidden:
        yield DiffRow(kind="folded", folded=hidden)
        yield from (DiffRow(kind="same", left=t, right=t) for t in alike[len(alike) - tail :])


def _alike(left: Sequence[str], right: Sequence[str], cuts: int) -> list[_Pair]:
    """Pair the lines that both texts have, in order."""
    head = _common(left, right)
    tail = _common(left[head:][::-1], right[head:][::-1])
    l1, r1 = len(left) - tail, len(right) - tail
    between = _between(left[head:l1], right[head:r1], cuts)
    return [
        *((at, at) for at in range(head)),
        *((head + one, head + other) for one, other in between),
        *((l1 + at, r1 + at) for at in range(tail)),
    ]


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))


def _between(left: Sequence[str], right: Sequence[str], cuts: int) -> list[_Pair]:
    if len(left) * len(right) <= SHORT:
        blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
        return [(one + at, other + at) for one, other, size in blocks for at in range(size)]
    places = _cuts(left, right) if cuts else []
    if not places:
        return []
    found: list[_Pair] = []
    l0, r0 = 0, 0
    for l1, r1 in [*places, (len(left), len(right))]:
        piece = _alike(left[l0:l1], right[r0:r1], cuts - 1)
        found += [(l0 + one, r0 + other) for one, other in piece]
        found.append((l1, r1))
        l0, r0 = l1 + 1, r1 + 1
    return found[:-1]


def _cuts(left: Sequence[str], right: Sequence[str]) -> list[_Pair]:
    """Return the pairs of lines that occur once in each text and are in the same order."""
    in_left, in_right = Counter(left), Counter(right)
    where = {text: at for at, text in enumerate(right) if in_right[text] == 1}
    pairs = [
        (at, where[text]) for at, text in enumerate(left) if in_left[text] == 1 and text in where
    ]
    # Longest increasing run: the ends of the runs so far, and the predecessor of each pair.
    ends: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for number, (_, other) in enumerate(pairs):
        length = bisect_left(ends, other)
        ends[length : length + 1], last[length : length + 1] = [other], [number]
        before.append(last[length - 1] if length else None)
    run: list[_Pair] = []
    step = last[-1] if last else None
    while step is not None:
        run.append(pairs[step])
        step = before[step]
    return run[::-1]
