"""Tables of ticks: items below each other, with a column for each answer (`Fever`, ``, `X`).

The TABs of the page text show which cells are empty. Several such tables can share their rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ANSWER = (
    r"(?:Yes|No|Y|N|Positive|Negative|Pos\.?|Neg\.?|True|False|Present|Absent|Unknown|Unsure|N/A"
    r"|Not[ ]asked|Denies|Reports)"
)
_ANSWER = re.compile(ANSWER, re.I)
_DECISIVE = re.compile(r"y(?:es)?|no?|pos.*|neg.*|true|false|present|absent|denies|reports", re.I)
_RESULT = re.compile(r"pos.*|neg.*|present|absent", re.I)
"""An answer that is a result of a laboratory too: its row may be no row of headings."""
_HEAD = re.compile(
    r"(?:(?:symptoms?|systems?|items?|questions?|conditions?|problems?|findings?|diseases?|illness"
    r"|comments?|notes?|details?|review[ ]of[ ]systems|ros)[ :]*)?",
    re.I,
)
_TICK = re.compile(r"[xX✓✔√•☐☑☒]?|[\[(][ xX✓✔√•]?[\])]")
_UNTICKED = re.compile(r"☐?|[\[(][ ]?[\])]")
_ITEM = re.compile(r"(?!\d+$)[A-Za-z][\w/'’(), -]{0,59}(?<![,])")
_MOST_WORDS = 6

Row = list[tuple[int, int, dict[str, bool]]]
"""Start and end of each item in its line, and which answers are ticked."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The columns of one item and its answers, or a column of other words without answers."""

    label: int
    answers: dict[int, str] = field(default_factory=dict)


class TickTable:
    """The table to which the next line may belong; it reads the lines in their order."""

    def __init__(self) -> None:
        self._groups: list[_Group] = []

    def items(self, line: str, *, is_heading: bool) -> Row:
        """Return the items of a row, or nothing for a line that belongs to no such table.

        A row without a tick is an item too, because the form does not state the item. An item
        beside words in the columns of the answers has no answer.
        """
        cells = line.split("\t")
        groups = _groups_of(cells)
        if groups:
            self._groups = groups
            return []
        is_end = is_heading and len(cells) == 1
        found = self._row(cells) if self._groups and not is_end else []
        if not found:
            self._groups = []
        return found

    def _row(self, cells: list[str]) -> Row:
        starts = [0]
        for cell in cells:
            starts.append(starts[-1] + len(cell) + 1)
        words = [cell.strip() for cell in cells]
        items = [g for g in self._groups if g.answers and g.label < len(cells) and words[g.label]]
        if not items or not all(_is_item(words[group.label]) for group in items):
            return []
        columns = {at for group in self._groups for at in (group.label, *group.answers)}
        is_clear = all(at in columns or not word for at, word in enumerate(words))
        found: Row = []
        for group in items:
            marks = {at: words[at] if at < len(words) else "" for at in group.answers}
            is_read = is_clear and all(map(_TICK.fullmatch, marks.values()))
            said = {group.answers[at]: not _UNTICKED.fullmatch(mark) for at, mark in marks.items()}
            start = starts[group.label]
            found.append((start, start + len(cells[group.label]), said if is_read else {}))
        return found


def _is_item(words: str) -> bool:
    if words.isupper() and len(words) > 5:
        return False
    return _ITEM.fullmatch(words) is not None and len(words.split()) <= _MOST_WORDS


def _groups_of(cells: list[str]) -> list[_Group]:
    """Return the columns of a row of headings; nothing if the cells are no such headings."""
    first = next((at for at, cell in enumerate(cells) if not _ANSWER.fullmatch(cell.strip())), None)
    if first is None or (first > 1 and first == len(cells) - 1):
        # The answers are printed before the items.
        group = _Group(len(cells) if first is None else first)
        group.answers.update(enumerate(cell.strip() for cell in cells[: group.label]))
        is_decided = any(map(_DECISIVE.fullmatch, group.answers.values()))
        is_result = any(map(_RESULT.fullmatch, group.answers.values()))
        distinct = len(set(group.answers.values())) == len(group.answers) > 1
        return [group] if distinct and is_decided and not is_result else []
    groups: list[_Group] = []
    for at, cell in enumerate(cells):
        words = cell.strip()
        if not _ANSWER.fullmatch(words):
            groups.append(_Group(at))
        elif not groups or words in groups[-1].answers.values():
            return []
        else:
            groups[-1].answers[at] = words
    asked = [group for group in groups if group.answers]
    if not asked or any(len(group.answers) < 2 for group in asked):
        return []
    if any(map(_RESULT.fullmatch, asked[0].answers.values())) and not all(
        _HEAD.fullmatch(cells[group.label].strip()) for group in groups
    ):
        return []
    said = [any(map(_DECISIVE.fullmatch, group.answers.values())) for group in asked]
    return groups if all(said) else []
