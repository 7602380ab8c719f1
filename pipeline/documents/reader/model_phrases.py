"""Text that addresses a language model, by the phrases of `model_phrases.txt`. Pure.

Such text is data, like every text of a page. The paragraph around such a phrase is suspect: a
person decides about every entity of it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from .types import ADDRESSES_A_MODEL, PageRead, Region, Suspect, Word

#: Read at import, because the child may open no file once it has seen the page.
_LINES = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
_TAGS = ("<", "[inst", "[/inst", "##")
#: Characters around a sign within which its phrase lies.
_REACH = 240
#: Lines after a phrase that belong to its paragraph even if they look like headings.
_LEAST_LINES = 3
_LONGEST_HEADING = 60


def addresses(text: str) -> list[tuple[int, int]]:
    """Return start and end of each phrase of `text` that addresses a model."""
    low = text.lower()
    if len(low) != len(text):  # a rare letter has two small letters, and offsets would move
        low = text
    found: set[tuple[int, int]] = set()
    for signs, phrases in _sections():
        for start, end in _windows(low, signs):
            found.update(match.span() for match in phrases.finditer(text, start, end))
    return sorted(found)


def with_addresses(page: PageRead) -> PageRead:
    """Return `page` with its paragraphs that address a model, and a warning."""
    found = addresses(page.text)
    if not found:
        return page
    spans = sorted({_paragraph(page.text, *each) for each in found})
    suspects = [Suspect(flag=ADDRESSES_A_MODEL, start=start, end=end) for start, end in spans]
    return replace(
        page,
        suspects=(*page.suspects, *suspects),
        regions=(*page.regions, *_regions(page, found)),
        warnings=tuple(dict.fromkeys((*page.warnings, ADDRESSES_A_MODEL))),
    )


@lru_cache(maxsize=1)
def _sections() -> tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]:
    """Return the signs of each section, in small letters, and its phrases."""
    sections: list[tuple[tuple[str, ...], re.Pattern[str]]] = []
    for head, lines in _read():
        if head == "TAGS":
            sections.append((_TAGS, re.compile("|".join(lines), re.I)))
            continue
        signs = tuple(head.removeprefix("ASK ").split("|"))
        phrases = "|".join(rf"(?<!\w)(?:{line})(?!\w)" for line in lines)
        sections.append((signs, re.compile(phrases, re.I)))
    return tuple(sections)


def _read() -> Iterator[tuple[str, list[str]]]:
    head, phrases = "", list[str]()
    for line in (*_LINES, "[END]"):
        if line.startswith("#"):
            continue
        section = re.fullmatch(r"\[(TAGS|END|ASK .*)\]", line)
        if not section:
            phrases.append(line.replace(" ?", r"\s*").replace(" ", r"\s+"))
            continue
        if phrases:
            yield head, phrases
        head, phrases = section[1], []


def _windows(low: str, signs: Iterable[str]) -> list[tuple[int, int]]:
    """Return the parts of a text around the signs, joined where they meet."""
    places = sorted(place for sign in signs for place in _places(low, sign))
    windows: list[tuple[int, int]] = []
    for place in places:
        start, end = max(0, place - _REACH), place + _REACH
        if windows and start <= windows[-1][1]:
            windows[-1] = (windows[-1][0], end)
        else:
            windows.append((start, end))
    return windows


def _places(low: str, sign: str) -> Iterator[int]:
    """Yield where a sign begins a word; a sign of three letters or fewer is a whole word."""
    place = low.find(sign)
    while place >= 0:
        end = place + len(sign)
        begins = place == 0 or not (sign[0].isalnum() and low[place - 1].isalnum())
        ends = len(sign) > 3 or end >= len(low) or not low[end].isalnum()
        if begins and ends:
            yield place
        place = low.find(sign, end)


def _paragraph(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the lines between the headings or empty lines around a phrase."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    lines = text.split("\n")
    first, last = bisect_right(starts, start) - 1, bisect_right(starts, max(start, end - 1)) - 1
    while first > 0 and not _is_edge(lines[first - 1]):
        first -= 1
    reach = last + _LEAST_LINES
    while last + 1 < len(lines) and (last < reach or not _is_edge(lines[last + 1])):
        last += 1
    return starts[first], starts[last] + len(lines[last])


def _is_edge(line: str) -> bool:
    """Return whether a line is empty or looks like a heading."""
    bare = line.strip()
    return len(bare) <= _LONGEST_HEADING and (not bare or bare.isupper() or bare.endswith(":"))


def _regions(page: PageRead, found: list[tuple[int, int]]) -> Iterator[Region]:
    """Return a region for each line of each phrase."""
    for start, end in found:
        lines: list[list[Word]] = []
        for word in page.words:
            if word.end <= start or end <= word.start:
                continue
            if lines and "\n" not in page.text[lines[-1][-1].end : word.start]:
                lines[-1].append(word)
            else:
                lines.append([word])
        yield from map(_around, lines)


def _around(words: list[Word]) -> Region:
    return Region(
        kind="to_a_model",
        x0=min(word.x0 for word in words),
        y0=min(word.y0 for word in words),
        x1=max(word.x1 for word in words),
        y1=max(word.y1 for word in words),
    )
