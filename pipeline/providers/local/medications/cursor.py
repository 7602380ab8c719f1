"""The place and the memory of the reader of directions.

The reader in `prescription_steps` moves the place from part to part.
"""

from __future__ import annotations

import re

from pipeline.clinical.medications.sig import GAP
from pipeline.providers.local.medications.parts import Directions, DoseStep, Tense


class StepCursor:
    """A place in the directions of one drug, with what was read before it.

    `pending` is the role that the next amount gets.
    """

    def __init__(self, text: str, start: int, limit: int, *, changes: bool, titrates: bool) -> None:
        self._text, self._at, self._limit, self._name_end = text, start, limit, start
        self._changes, self._titrates = changes, titrates
        self._out = Directions(end=start)
        self._pending = ""
        self._between = 0
        self._is_lost = False
        """An unknown word was passed since the last explained part."""
        self._separator = ""
        self._is_inside = False
        """The place is inside parentheses."""
        self._is_struck = False
        """The place is between `~~` and `~~`."""
        self._route: str | None = None
        self._early: tuple[int, int] | None = None
        self._frequency_first = False
        self._after_aside = -1
        """The end of a limit or an old dose; a frequency after that place belongs to it."""
        self._alternates = False
        self._has_range = False
        self._last_word, self._last_end = "", start

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        return pattern.match(self._text, self._at, self._limit)

    def _skip_gap(self) -> None:
        gap = self._match(GAP)
        if gap is None or not gap.group():
            return
        printed_gap = gap.group()
        self._is_struck ^= printed_gap.count("~~") % 2 == 1
        for mark in printed_gap:
            if mark in "([":
                self._is_inside = True
            elif mark in ")]":
                self._is_inside = False
            elif mark in ",;:\n\t" or (mark in "-–—" and f" {mark} " in printed_gap):
                self._separator = self._separator or mark
        self._at = gap.end()

    def _step(self) -> DoseStep | None:
        """Return the step that the next part belongs to."""
        return next(
            (s for s in reversed(self._out.steps) if s.role in (Tense.CURRENT, Tense.TARGET)), None
        )

    def _explain(self, end: int) -> None:
        self._at = self._out.end = end
        self._is_lost = False
        self._between = 0
        self._separator = ""
