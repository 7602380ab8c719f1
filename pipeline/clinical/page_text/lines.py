"""Lines and sentences of a page's text: where a wrapped line continues and where it ends.

Printers wrap pages, so a line end alone decides nothing. Indentation, bullets, capitals,
punctuation and the usual width of the page decide.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BULLET = re.compile(
    r"[ ]*(?:[-•*·▪●○◦–—►»✓☐☒][ ]*|\(?\d{1,2}[.)][ ]+|#\d+[ ]*|[A-Za-z][.)][ ]+|\[[ xX]?\][ ]*)"
)
_LABEL = re.compile(r"[ ]*[A-Z][A-Za-z/&() .'’-]{0,40}:")
_STOP = re.compile(
    # Few characters can end a sentence, so the others are passed over first.
    r"(?=[.!?;])(?:"
    r"(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bvs)(?<!\bNo)(?<!\be\.g)(?<!\bi\.e)(?<!\b[A-Z]\.[A-Z])"
    r"(?:[.!]|(?<=\S)\?)(?!(?<=[a-z]\.[a-z]\.)[ ]*[-–(\[])"
    r"(?=[\"')\]]*(?:[ ]+[\"'(]?[A-Z0-9#*+-]|[ ]{2,}|\n|$))"
    r"|(?<=\S)[!?](?=[A-Z])|;)"
)
_ROW = re.compile(
    (
        r"[ ]*[A-Za-z][\w/-]*(?:[ ][\w/()-]+){0,3}[ ]\d[\d,./-]*[ ]?(?:mg|mcg|units?|mEq|mL|g"
        r"|puffs?|tab(?:let)?s?|cap(?:sule)?s?|drops?|sprays?|%)(?!\w)"
    ),
    re.I,
)
"""A row of a medication table; a row never continues the row before."""
_AMOUNT = re.compile(r"\d[\d,./-]*[ ]?(?:mg|mcg|units?|mEq|mL|puffs?)(?!\w)", re.I)
_ENDED = ".:;?!"
_MIN_WIDTH = 60
_FULL = 0.72


class PrintedLine(NamedTuple):
    """One printed line, `text[start:end]`, without its line end."""

    start: int
    end: int
    text: str


class Sentence(NamedTuple):
    """A run of text that forms one statement."""

    start: int
    end: int


def lines_of(text: str) -> list[PrintedLine]:
    """Return all lines, empty ones included."""
    found, at = [], 0
    for line in text.split("\n"):
        found.append(PrintedLine(at, at + len(line), line))
        at += len(line) + 1
    return found


def bullet_end(line: str) -> int:
    """Return where the words of a line begin, after blanks and bullets."""
    m = _BULLET.match(line)
    return m.end() if m else len(line) - len(line.lstrip())


def sentences_of(text: str, lines: list[PrintedLine]) -> list[Sentence]:
    """Split the text into sentences. They cover every non-blank character, in order."""
    width = _usual_width(lines)
    blocks: list[tuple[int, int]] = []
    start = end = -1
    previous = ""
    for line in lines:
        if not line.text.strip():
            if start >= 0:
                blocks.append((start, end))
            start, previous = -1, ""
            continue
        if start >= 0 and not _continues(previous, line.text, width):
            blocks.append((start, end))
            start = -1
        if start < 0:
            start = line.start
        end, previous = line.end, line.text
    if start >= 0:
        blocks.append((start, end))
    found: list[Sentence] = []
    for first, last in blocks:
        at = first
        for m in _STOP.finditer(text, first, last):
            found.append(Sentence(at, m.end()))
            at = m.end()
        if text[at:last].strip():
            found.append(Sentence(at, last))
    return found


def _usual_width(lines: list[PrintedLine]) -> int:
    lengths = sorted(len(line.text.rstrip()) for line in lines if line.text.strip())
    return lengths[int(len(lengths) * 0.9)] if lengths else 0


def _continues(previous: str, line: str, width: int) -> bool:
    """Return whether `line` continues the sentence of the line before."""
    tail = previous.rstrip()
    head = line.lstrip()
    if tail.endswith(tuple(_ENDED)) or _BULLET.match(line):
        return False
    if _AMOUNT.match(head):
        return True
    if _ROW.match(previous) and _ROW.match(line):
        return False
    if head[0].islower() or head[0] in ",)(/&":
        return not _LABEL.match(line)
    if tail.endswith((",", " and", " or", " of", " with", " the", " for", " to", "/")):
        return not _LABEL.match(line)
    if width < _MIN_WIDTH or len(tail) < _FULL * width:
        return False
    return not _LABEL.match(line) and not head.isupper()
