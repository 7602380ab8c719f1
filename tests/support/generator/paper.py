"""Draw generated cases as PDF pages: real columns, rulings, raised figures, boxes, struck lines.

A page is drawn from the page text of its case: a TAB becomes a column, `[x]` a box, `¹` a raised
figure, `~~` a line through the words. A faithful reader returns the text of the case.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from reportlab.lib.pagesizes import letter
from reportlab.pdfbase.pdfmetrics import registerFont, stringWidth
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from tests.support.generator.cases import GeneratedCase
from tests.support.generator.published import HEAD

LEFT, TOP, BESIDE = 50.0, 750.0, 320.0
"""Points: the first column, the first line, and the second block of a page."""
SIZE, LEADING, GAP = 9.5, 15.0, 16.0
"""Points: the font, the distance of two lines, and the gap between two columns."""
BOX = 8.0
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹ᵃ", "0123456789a")
MARKS = re.compile(r"(?P<box>\[[xX ]\]|[☐☑☒])|(?P<raised> ?[⁰¹²³⁴⁵⁶⁷⁸⁹ᵃ]+)|~~(?P<struck>.+?)~~")
UNTICKED = ("[ ]", "\N{BALLOT BOX}")
FONT = "Vera"
"""A font of reportlab with comparison signs; pages without such signs use a standard font."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a page draws its parts."""

    font: str
    boxes: str
    """`drawn`, `crossed`, `field` or `letters`."""
    rulings: str
    """`none`, `rows` or `grid`."""
    aligns_right: bool
    raises_small: bool

    @classmethod
    def of(cls, case: GeneratedCase) -> Look:
        """Choose the look of a case by its name."""
        rng = random.Random(f"look-{case.kind}-{case.seed}")
        is_plain = _is_plain(f"{case.heading}{case.text}")
        # Spaces align columns only where all characters are equally wide.
        has_columns = "  " in case.text and "\t" not in case.text
        choices = ["Courier"] if has_columns else ["Helvetica", "Times-Roman", "Courier"]
        return cls(
            font=rng.choice(choices) if is_plain else FONT,
            boxes=rng.choice(["drawn", "crossed", "field", "letters"]),
            rulings=rng.choice(["none", "none", "rows", "grid"]),
            aligns_right=rng.random() < 0.3,
            raises_small=rng.random() < 0.7,
        )


def can_draw(case: GeneratedCase) -> bool:
    """Whether the fonts have all characters of a case."""
    text = MARKS.sub("", f"{case.heading}{case.text}")
    return _is_plain(text) or all(ord(char) < 0x2000 or char in "–—≤≥•" for char in text)


def _is_plain(text: str) -> bool:
    try:
        MARKS.sub("", text).encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


def draw(cases: Sequence[GeneratedCase], path: Path) -> None:
    """Write one PDF with one page per case."""
    registerFont(TTFont(FONT, "Vera.ttf"))
    canvas = Canvas(str(path), pagesize=letter, invariant=True)
    for case in cases:
        _Page(canvas, Look.of(case), f"{case.kind}-{case.seed}").draw(case)
        canvas.showPage()
    canvas.save()


class _Page:
    """One page under construction."""

    def __init__(self, canvas: Canvas, look: Look, name: str) -> None:
        self.canvas: Any = canvas
        self.look = look
        self.name = name
        self.fields = 0

    def draw(self, case: GeneratedCase) -> None:
        """Draw the heading, then the blocks from left to right."""
        widest = max(self._width(line.replace("\t", "    ")) for line in case.text.split("\n"))
        is_wide = LEFT + widest + 12 * GAP > letter[0]
        self.canvas.setPageSize((letter[1] * 1.3, letter[1]) if is_wide else letter)
        y = self._block(LEFT, TOP, f"{HEAD}{case.heading}")
        for number, block in enumerate(case.blocks):
            self._block(LEFT if number == 0 else BESIDE, y, block)

    def _block(self, x: float, y: float, text: str) -> float:
        """Draw lines from `y` downwards; return the height of the next line."""
        for is_table, lines in groupby(text.split("\n"), key=lambda line: "\t" in line):
            if is_table:
                y = self._table(x, y, [line.split("\t") for line in lines])
                continue
            for line in lines:
                self._write(x + (len(line) - len(line.lstrip())) * 3, y, line.strip())
                y -= LEADING
        return y

    def _table(self, x: float, y: float, rows: list[list[str]]) -> float:
        number = max(map(len, rows))
        rows = [row + [""] * (number - len(row)) for row in rows]
        widths = [max(self._width(row[at]) for row in rows) + GAP for at in range(number)]
        lefts = [x + sum(widths[:at]) for at in range(number)]
        top = y + LEADING - 4
        for row in rows:
            for at, cell in enumerate(row):
                shift = widths[at] - GAP - self._width(cell)
                is_moved = self.look.aligns_right and at > 0
                self._write(lefts[at] + (shift if is_moved else 0), y, cell)
            y -= LEADING
            if self.look.rulings != "none":
                self._line(x - 4, y + LEADING - 4, x + sum(widths) - 8)
        if self.look.rulings == "grid":
            self._line(x - 4, top, x + sum(widths) - 8)
            for left in [*lefts, x + sum(widths) - 4]:
                self.canvas.line(left - 4, top, left - 4, y + LEADING - 4)
        return y

    def _line(self, x: float, y: float, until: float) -> None:
        self.canvas.setLineWidth(0.5)
        self.canvas.line(x, y, until, y)

    def _width(self, text: str) -> float:
        return sum(width for *_, width in self._pieces(text))

    def _write(self, x: float, y: float, text: str) -> None:
        for kind, words, width in self._pieces(text):
            if kind == "box":
                self._box(x, y, is_ticked=words not in UNTICKED)
            elif kind == "raised":
                self._show(x, y + SIZE * 0.35, words, SIZE * 0.62)
            else:
                self._show(x, y, words, SIZE)
            if kind == "struck":
                self._line(x, y + SIZE * 0.3, x + width)
            x += width

    def _show(self, x: float, y: float, words: str, size: float) -> None:
        self.canvas.setFont(self.look.font, size)
        self.canvas.drawString(x, y, words)

    def _pieces(self, text: str) -> list[tuple[str, str, float]]:
        """Split a line into (kind, words, width in points)."""
        found: list[tuple[str, str, float]] = []
        at = 0
        for mark in MARKS.finditer(text):
            found.append(self._piece("words", text[at : mark.start()]))
            kind = str(mark.lastgroup)
            words = mark[kind]
            if kind == "raised" and not self.look.raises_small and _is_plain_figure(words):
                found.append(self._piece("words", words))
            else:
                found.append(self._piece(kind, words))
            at = mark.end()
        found.append(self._piece("words", text[at:]))
        return [piece for piece in found if piece[1]]

    def _piece(self, kind: str, words: str) -> tuple[str, str, float]:
        if kind == "box" and self.look.boxes == "letters":
            kind, words = "words", "[ ]" if words in UNTICKED else "[x]"
        if kind == "box":
            return kind, words, BOX + 2
        if kind == "raised":
            words = words.strip().translate(RAISED)
            return kind, words, stringWidth(words, self.look.font, SIZE * 0.62)
        return kind, words, stringWidth(words, self.look.font, SIZE)

    def _box(self, x: float, y: float, *, is_ticked: bool) -> None:
        self.fields += 1
        if self.look.boxes == "field":
            self.canvas.acroForm.checkbox(
                name=f"{self.name}-{self.fields}", x=x, y=y - 1, size=BOX + 1, checked=is_ticked
            )
            return
        self.canvas.setLineWidth(0.7)
        self.canvas.rect(x, y - 1, BOX, BOX)
        if not is_ticked:
            return
        if self.look.boxes == "crossed":
            self.canvas.line(x + 1, y, x + BOX - 1, y + BOX - 2)
            self.canvas.line(x + 1, y + BOX - 2, x + BOX - 1, y)
        else:
            self.canvas.line(x + 1.5, y + 3, x + 3.2, y + 0.5)
            self.canvas.line(x + 3.2, y + 0.5, x + BOX - 1, y + BOX - 2)


def _is_plain_figure(words: str) -> bool:
    return set(words.strip()) <= set("¹²³")
