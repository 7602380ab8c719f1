"""Sentences that a page break divides: the end of a page, and the words that continue it.

A cue at the end of a page (`no nausea or`) reaches the first words of the next page, although
footers and running headers stand between.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from typing import NamedTuple

from pipeline.clinical.page_text.lines import PrintedLine, Sentence
from pipeline.providers.local.text.document import Document
from pipeline.providers.local.text.titles import is_page_line

_EDGE_LINES = 4
"""The most lines of a footer or a running header."""
_RUNNING = re.compile(r"\b(?:MRN|DOB|D\.O\.B|patient(?:[ ]name)?[ ]*:|confidential)\b", re.I)
_ENDED = (".", "!", "?", ":", ";", "|")


class Continued(NamedTuple):
    """The beginning, on the page before, of a sentence."""

    words: str
    body: int
    """Where the sentence goes on, behind the running header."""


def continued_sentences(
    document: Document, lines: Sequence[PrintedLine], sentences: Sequence[Sentence]
) -> dict[int, Continued]:
    """Return the beginnings of divided sentences, by the start of the second part."""
    found: dict[int, Continued] = {}
    starts = [sentence.start for sentence in sentences]
    at = [line.start for line in lines]
    for before, piece in zip(document.pieces, document.pieces[1:], strict=False):
        if piece.slice.page == before.slice.page or not sentences:
            continue
        left = _edge(
            lines[bisect.bisect_left(at, before.start) : bisect.bisect_left(at, before.end)][::-1]
        )
        right = _edge(
            lines[bisect.bisect_left(at, piece.start) : bisect.bisect_left(at, piece.end)]
        )
        if left is None or right is None or left.text.rstrip().endswith(_ENDED):
            continue
        body = right.start + len(right.text) - len(right.text.lstrip())
        if not document.text[body : body + 1].islower():
            continue
        first = sentences[max(0, bisect.bisect_right(starts, left.end - 1) - 1)]
        second = sentences[max(0, bisect.bisect_right(starts, body) - 1)]
        words = document.text[first.start : left.end].replace("\n", " ")
        found[second.start] = Continued(words, max(body, second.start))
    return found


def _edge(lines: Sequence[PrintedLine]) -> PrintedLine | None:
    """Return the first line of the text, behind at most four running lines."""
    filled = [line for line in lines if line.text.strip()][: _EDGE_LINES + 1]
    return next((line for line in filled if not _is_running(line.text)), None)


def _is_running(text: str) -> bool:
    return is_page_line(text) or _RUNNING.search(text) is not None
