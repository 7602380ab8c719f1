"""Counts of hits and misses, and the scores computed from them.

Overlap is relaxed: a found span matches a label if they share a character. Each side is counted on
its own, as in the cTAKES evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Score:
    """One line of the table."""

    data: str
    part: str
    """`all`, `tuned` or `held out`."""
    measure: str
    tp: int
    fp: int
    fn: int

    @property
    def precision(self) -> float | None:
        """Share of the found spans that are right; None if nothing was found."""
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else None

    @property
    def recall(self) -> float | None:
        """Share of the labels that were found; None if there are no labels."""
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall."""
        whole = 2 * self.tp + self.fp + self.fn
        return 2 * self.tp / whole if whole else None

    def __add__(self, other: Score) -> Score:
        return Score(
            data=self.data,
            part=self.part,
            measure=self.measure,
            tp=self.tp + other.tp,
            fp=self.fp + other.fp,
            fn=self.fn + other.fn,
        )

    def as_json(self) -> dict[str, object]:
        """Return counts and figures."""
        return {
            "data": self.data,
            "part": self.part,
            "measure": self.measure,
            "tp": self.tp,
            "fp": self.fp,
            "fn": self.fn,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
        }


Bounds = tuple[int, int]


def overlapping(
    gold: Sequence[Bounds], found: Sequence[Bounds]
) -> tuple[int, list[Bounds], list[Bounds]]:
    """Match each label with at most one found span; return matches, false and missed spans."""
    free = list(found)
    missed: list[Bounds] = []
    matched = 0
    for span in gold:
        best = max(free, key=lambda f: _shared(span, f), default=None)
        if best is None or _shared(span, best) == 0:
            missed.append(span)
            continue
        free.remove(best)
        matched += 1
    return matched, free, missed


def _shared(left: Bounds, right: Bounds) -> int:
    return max(0, min(left[1], right[1]) - max(left[0], right[0]))
