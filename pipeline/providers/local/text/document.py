"""Join the slices of a question into one text, and map its offsets back to the pages.

The analysed text has the same length as the pages' own text. Line prefixes and names of people are
replaced by blanks and never removed.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.clinical.page_text.lines import lines_of
from pipeline.core.types import PageSlice

_PREFIX = re.compile(r"^([A-Za-z]{2,12}|\d{1,3}|[>|#]+)([:|>.)]?)[ \t]")
_PERSON = re.compile(
    r"\b(?:Dr|DR|Mr|Mrs|Ms|Miss|Prof)\.?[ ][A-Z][\w'’-]+(?:[ ][A-Z][\w'’-]+)?"
    r"|\b[A-Z][\w'’-]+,?[ ](?:[A-Z]\.?[ ])?[A-Z][\w'’-]+,[ ]*(?:MD|M\.D\.|DO|RN|NP|PA|PA-C"
    r"|PharmD)\b"
)
_NAMED = re.compile(
    r"(?im)\b(?:patient(?:[ ]name)?|name|provider|physician|attending|signature|signed[ ]by|author"
    r"|electronically[ ]signed[ ]by|ordering[ ](?:provider|physician)|clinician|referral[ ]from"
    r"|referring[ ](?:provider|physician)|pcp|facility|address|ordered[ ]by)"
    r"[ ]*:[ \t]*([^\n]*?)(?=[ ]{2,}|[ ][A-Z][A-Za-z ]{1,20}:|$)"
)
_MIN_PREFIXED_LINES = 5
_PREFIXED_SHARE = 0.6


@dataclass(frozen=True)
class PlacedSlice:
    """The position of a slice in the document's text."""

    start: int
    end: int
    slice: PageSlice


@dataclass(frozen=True)
class Place:
    """A quote and its position on its page."""

    page: int
    start: int
    quote: str = field(repr=False)


@dataclass(frozen=True)
class Document:
    """All slices of a question, own and context, in their order."""

    raw: str = field(repr=False)
    text: str = field(repr=False)
    """`raw` with blanks in place of text that rules must not read; same length, same line ends."""
    pieces: tuple[PlacedSlice, ...] = field(repr=False)

    def piece_at(self, offset: int) -> PlacedSlice:
        """Return the slice that contains `offset`."""
        starts = [piece.start for piece in self.pieces]
        return self.pieces[max(0, bisect.bisect_right(starts, offset) - 1)]

    def is_own(self, offset: int) -> bool:
        """Return whether entities that begin at `offset` are reported."""
        return not self.piece_at(offset).slice.context

    def page_end(self, offset: int) -> int:
        """Return the end of the page that contains `offset`: no quote may reach beyond it."""
        at = self.piece_at(offset)
        end = at.end
        for piece in self.pieces[self.pieces.index(at) + 1 :]:
            if piece.start != end or piece.slice.page != at.slice.page:
                break
            end = piece.end
        return end

    def place(self, start: int, end: int) -> Place | None:
        """Turn a span of the text into a quote on the page where the span begins."""
        piece = self.piece_at(start)
        end = min(end, self.page_end(start))
        quote = self.raw[start:end].rstrip()
        if not quote:
            return None
        return Place(piece.slice.page, piece.slice.start + start - piece.start, quote)


def compose(slices: Sequence[PageSlice]) -> Document:
    """Join `slices`. Adjacent slices of one page join directly, other slices with a line end."""
    parts: list[str] = []
    pieces: list[PlacedSlice] = []
    at = 0
    last: PageSlice | None = None
    for part in slices:
        seamless = (
            last is not None
            and last.page == part.page
            and part.start == last.start + len(last.text)
        )
        if last is not None and not seamless:
            parts.append("\n")
            at += 1
        parts.append(part.text)
        pieces.append(PlacedSlice(at, at + len(part.text), part))
        at += len(part.text)
        last = part
    raw = "".join(parts)
    return Document(raw=raw, text=_readable(raw, pieces), pieces=tuple(pieces))


def _readable(raw: str, pieces: Sequence[PlacedSlice]) -> str:
    chars = list(raw.replace("\r", " ").replace("\f", " ").replace("\t", " ").replace("\xa0", " "))
    for piece in pieces:
        _blank_prefixes(raw, piece, chars)
    for pattern, group in ((_PERSON, 0), (_NAMED, 1)):
        for m in pattern.finditer(raw):
            chars[m.start(group) : m.end(group)] = " " * (m.end(group) - m.start(group))
    return "".join(chars)


def _blank_prefixes(raw: str, piece: PlacedSlice, chars: list[str]) -> None:
    """Blank a word with a colon, or a quote sign, that opens most lines of the page."""
    lines = [(line.start, line.text) for line in lines_of(piece.slice.text) if line.text.strip()]
    found = [
        (at, m) for at, line in lines if (m := _PREFIX.match(line)) and (m[2] or m[1][0] in ">|#")
    ]
    counts = Counter(m[1] for _, m in found)
    if not counts:
        return
    word, count = counts.most_common(1)[0]
    if count < _MIN_PREFIXED_LINES or count < _PREFIXED_SHARE * len(lines):
        return
    for at, m in found:
        if m[1] == word:
            start = piece.start + at
            chars[start : start + m.end()] = " " * m.end()
