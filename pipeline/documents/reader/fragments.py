"""Words of a page joined to fragments: the words of one line up to the next wide gap.

A fragment is the smallest unit of the layout: a cell, or a line of a column of prose.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from statistics import median

from .placed_words import CheckBox, Marks, PageWord, Rule

#: Gap in sizes of the type that ends a fragment. A space has 0.25–0.35, a typewriter's space 0.6.
WIDE = 0.95
#: A gap is wide in stretched (justified) text only if it exceeds the line's usual gap this often.
STRETCHED = 1.12
#: Gap in sizes of the type between a check box and the first word of its label.
BOX_GAP = 2.0
#: Gap in sizes of the type between a drawn box and the nearest word, above which it is no box.
LABEL_GAP = 2.5
#: Difference of baselines in sizes of the type within one line.
SAME_LINE = 0.3
#: Share of a word that a line through the word covers at least.
STRUCK_SHARE = 0.6
#: Height in sizes of the type, above the baseline, between which a line strikes a word through.
STRUCK_LOW, STRUCK_HIGH = 0.13, 0.52
#: Offset in sizes of the type within which the same word drawn twice is one bold word.
TWICE = 0.25
#: What people and fonts write into a box to tick it.
_TICKS = frozenset("xX✓✔✗✘√×•●■*") | {"[x]"}
BOX_TEXT = re.compile(r"\[[x ]\]")


class Fragment:
    """Words side by side on one baseline, without a wide gap."""

    def __init__(self, words: list[PageWord]) -> None:
        self.words = words
        self.left = words[0].left
        self.right = max(word.right for word in words)
        self.baseline = words[0].baseline
        self.size = max(word.size for word in words)
        self.top = self.baseline - 0.8 * self.size
        self.bottom = self.baseline + 0.2 * self.size
        self.bold = all(word.bold for word in words)

    @cached_property
    def text(self) -> str:
        """Return the words with single spaces."""
        return " ".join(word.text for word in self.words)

    def split(self, index: int) -> tuple[Fragment, Fragment]:
        """Return the fragments before and from the word at `index`."""
        return Fragment(self.words[:index]), Fragment(self.words[index:])


def prepare(words: Iterable[PageWord], marks: Marks) -> list[PageWord]:
    """Return the words once each, with check boxes as words and `~~` around struck words."""
    kept = _once(words)
    if marks.check_boxes:
        kept = _with_boxes(kept, marks)
    rules = [rule for rule in marks.rules if rule.right - rule.left > rule.bottom - rule.top]
    if rules or marks.struck:
        kept = _struck(kept, rules, marks.struck)
    return kept


def join(words: Sequence[PageWord], marks: Marks) -> list[Fragment]:
    """Join words to fragments; a vertical line between two words parts them."""
    walls = sorted(
        (rule for rule in marks.rules if rule.bottom - rule.top > rule.right - rule.left),
        key=lambda rule: rule.left,
    )
    places = [wall.left for wall in walls]
    found: list[Fragment] = []
    for line in _lines(words):
        limits = _limits(line)
        start = 0
        for i in range(1, len(line)):
            one, other = line[i - 1], line[i]
            if other.left - one.right > limits[i - 1] or _walled(one, other, walls, places):
                found.append(Fragment(line[start:i]))
                start = i
        found.append(Fragment(line[start:]))
    return found


def _once(words: Iterable[PageWord]) -> list[PageWord]:
    """Drop a word that is drawn again almost at the same place (bold by printing twice)."""
    kept: list[PageWord] = []
    seen: dict[str, dict[tuple[int, int], PageWord]] = {}
    for word in words:
        cell = max(1.0, 2 * TWICE * word.size)
        column, row = round(word.left / cell), round(word.baseline / cell)
        same = seen.setdefault(word.text, {})
        twins = (
            same.get((column + across, row + down)) for across in (-1, 0, 1) for down in (-1, 0, 1)
        )
        if same and any(
            twin
            and abs(word.left - twin.left) < TWICE * word.size
            and abs(word.baseline - twin.baseline) < TWICE * word.size
            for twin in twins
        ):
            continue
        same[column, row] = word
        kept.append(word)
    return kept


def _with_boxes(words: list[PageWord], marks: Marks) -> list[PageWord]:
    """Add the check boxes as words, in place of the letters inside them."""
    added: list[PageWord] = []
    dropped: set[int] = set()
    ordered = sorted(words, key=lambda word: word.baseline)
    baselines = [word.baseline for word in ordered]
    for box in marks.check_boxes:
        height = box.bottom - box.top
        first = bisect_left(baselines, box.top - height)
        beside = ordered[first : bisect_right(baselines, box.bottom + 2 * height)]
        inside = [
            word
            for word in beside
            if box.left - 1 <= (word.left + word.right) / 2 <= box.right + 1
            and box.top - 1 <= (word.top + word.bottom) / 2 <= box.bottom + 1
        ]
        ticked = box.ticked
        if inside and not box.is_field:
            if len(inside) > 1 or inside[0].text not in _TICKS:
                # A square around a figure or a letter is no check box.
                continue
            ticked = True
        middle = (box.top + box.bottom) / 2
        near = min(
            (w for w in beside if w.top <= middle <= w.bottom and w not in inside),
            key=lambda w: _gap(w, box),
            default=None,
        )
        if not box.is_field and not _has_label(box, near, marks.check_boxes):
            continue
        dropped |= set(map(id, inside))
        added.append(
            PageWord(
                text="[x]" if ticked else "[ ]",
                left=box.left,
                top=box.top,
                right=box.right,
                bottom=box.bottom,
                baseline=near.baseline if near else box.bottom - 0.15 * height,
                size=near.size if near else height,
                box=box.box,
            )
        )
    return [*(word for word in words if id(word) not in dropped), *added]


def _has_label(box: CheckBox, near: PageWord | None, boxes: Sequence[CheckBox]) -> bool:
    """Return whether a word is near the box, or the box is in a row or column of equal boxes."""
    if near is None:
        return False
    if box.ticked or _gap(near, box) <= LABEL_GAP * near.size:
        return True
    side = box.right - box.left
    return any(
        other is not box
        and abs(other.right - other.left - side) < 1
        and (
            (abs(other.top - box.top) < 2 and abs(other.left - box.left) > 2 * side)
            or (abs(other.left - box.left) < 2 and side < abs(other.top - box.top) < 4 * side)
        )
        for other in boxes
    )


def _gap(word: PageWord, box: CheckBox) -> float:
    return max(word.left - box.right, box.left - word.right)


def _struck(words: list[PageWord], rules: Sequence[Rule], areas: Sequence[Rule]) -> list[PageWord]:
    """Mark the words that a thin line crosses in their middle, or that lie in a struck area."""
    by_height = sorted(rules, key=lambda rule: rule.top)
    tops = [rule.top for rule in by_height]
    return [
        replace(word, struck=True)
        if _crossed(word, by_height, tops) or any(_covers(area, word) for area in areas)
        else word
        for word in words
    ]


def _crossed(word: PageWord, rules: Sequence[Rule], tops: Sequence[float]) -> bool:
    high, low = word.baseline - STRUCK_HIGH * word.size, word.baseline - STRUCK_LOW * word.size
    width = word.right - word.left
    covered = 0.0
    for rule in rules[bisect_left(tops, high - 2) : bisect_right(tops, low)]:
        middle = (rule.top + rule.bottom) / 2
        if rule.bottom - rule.top <= 0.18 * word.size and high <= middle <= low:
            covered += max(0.0, min(word.right, rule.right) - max(word.left, rule.left))
    return covered >= STRUCK_SHARE * width


def _covers(area: Rule, word: PageWord) -> bool:
    middle = word.baseline - 0.3 * word.size
    common = min(word.right, area.right) - max(word.left, area.left)
    return area.top <= middle <= area.bottom and common >= STRUCK_SHARE * (word.right - word.left)


def _lines(words: Sequence[PageWord]) -> list[list[PageWord]]:
    """Group words by baseline, each group from left to right."""
    lines: list[list[PageWord]] = []
    for word in sorted(words, key=lambda word: word.baseline):
        last = lines[-1] if lines else None
        if last and word.baseline - last[0].baseline <= SAME_LINE * min(word.size, last[0].size):
            last.append(word)
        else:
            lines.append([word])
    for line in lines:
        line.sort(key=lambda word: word.left)
    return lines


def _limits(line: Sequence[PageWord]) -> list[float]:
    """Return for each gap of a line the width that the gap may have inside a fragment."""
    pairs = list(itertools.pairwise(line))
    inner = [other.left - one.right for one, other in pairs if other.left > one.right]
    stretched = 0.0
    if len(inner) >= 4 and 2 * sum(word.text[0].islower() for word in line) > len(line):
        stretched = STRETCHED * median(inner)
    limits = []
    for one, other in pairs:
        size = min(one.size, other.size)
        if BOX_TEXT.fullmatch(one.text) and not BOX_TEXT.fullmatch(other.text):
            limits.append(BOX_GAP * size)
        else:
            limits.append(max(WIDE * size, min(stretched, 2.5 * size)))
    return limits


def _walled(one: PageWord, other: PageWord, walls: Sequence[Rule], places: Sequence[float]) -> bool:
    """Return whether a vertical line lies between two words."""
    if not walls:
        return False
    middle = one.baseline - 0.3 * one.size
    low = bisect_left(places, one.right - 0.1 * one.size)
    high = bisect_right(places, other.left + 0.1 * one.size)
    return any(wall.top <= middle <= wall.bottom for wall in walls[low:high])
