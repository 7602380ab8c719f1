"""The text that continues across the end of a page: a sentence, a table or a section.

This module is pure. Running headers and footers are ignored. Only the form of a line counts, so
the same text always gives the same result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import IntEnum

_EDGE_LINES = 3
_PAGE_NUMBER = re.compile(
    r"(?i)^\W*(?:page\s*)?#(?:\s*(?:of|/)\s*#)?\W*$|\bpage\s+#(?:\s+of\s+#)?$"
)
_CONTINUED = re.compile(r"(?i)\b(?:continued|cont'?d|cont\.)")
_SIGNED = re.compile(r"(?i)\b(?:signed by|signature|end of (?:report|note|document)|dictated)\b")
_SECTION_WORDS = re.compile(
    r"(?i)^(?:\d{1,2}[.)]\s*)?(?:chief complaint|history(?: of .{3,25})?|hpi|subjective|objective|"
    r"interval history|review of systems|ros|past (?:medical|surgical) history|family history|"
    r"social history|(?:current |discharge |home )?medications?(?: list)?|allergies|immunizations?|"
    r"vital signs?|vitals|(?:physical )?exam(?:ination)?|labs?|laboratory (?:data|results)|results|"
    r"imaging|procedures?|findings|impression|assessment(?: (?:and|&) plan)?|plan|diagnos[ei]s|"
    r"hospital course|disposition|follow[- ]?up|technique|indications?|comments?|summary)"
    r"(?:,? (?:continued|cont\.?))?\s*:?$"
)
_CAPS_LABEL = re.compile(r"^[A-Z][A-Z /&,'()-]{3,50}:")
_FIELD = re.compile(
    r"^(?:Patient|Name|MRN|DOB|Date|Encounter|Facility|Provider|Visit)\b[^:]{0,30}:"
)
_BULLET = re.compile(r"^\s*(?:[-•*–‣▪]|\(?\d{1,2}[.)]|\(?[a-z][.)])\s+")
_HANGING = re.compile(
    r"(?i)(?:[,;:/(&–—-]|\b(?:a|an|the|and|or|of|to|in|on|at|by|for|with|from|that|which|who|is|"
    r"was|were|are|has|had|have|no|not|his|her|their|dr\.|mr\.|mrs\.|ms\.|vs\.|approx\.|e\.g\.))$"
)
_INITIAL = re.compile(r"\b[A-Z]\.$")
_DATED = re.compile(r"\s\d{1,4}[/-]\d{1,2}[/-]\d{2,4}\b|\s\d{1,2}:\d{2}\b")
_FUNCTION_WORD = re.compile(
    r"(?i)\b(?:the|and|was|were|is|are|has|had|with|that|which|she|he|patient|this|been|will)\b"
)
_SHORT_LINE = 45


class Safety(IntEnum):
    """How safely a batch can end between two pieces of text."""

    BROKEN = 0
    """A sentence or a table continues; a batch ends here only if forced."""
    SECTION = 1
    """Sentence and table are complete, but the section continues."""
    SAFE = 2
    """Nothing continues."""


def running_lines(texts: Sequence[str]) -> frozenset[str]:
    """Return the lines, digits masked, that are at the same place on at least half of the pages.

    A place is the first, second … line from the top or from the bottom.
    """
    counts: Counter[tuple[int, str]] = Counter()
    for text in texts:
        lines = [_mask(line) for line in text.split("\n") if line.strip()]
        counts.update((place, line) for place, line in enumerate(lines[:_EDGE_LINES]))
        counts.update((~place, line) for place, line in enumerate(lines[::-1][:_EDGE_LINES]))
    enough = max(2, (len(texts) + 1) // 2)
    return frozenset(line for (_, line), seen in counts.items() if seen >= enough)


def is_heading(line: str) -> bool:
    """Tell by its form whether a line begins a section or a note."""
    line = line.strip()
    if not 2 < len(line) <= 90:
        return False
    if _SECTION_WORDS.match(line) or _CAPS_LABEL.match(line):
        return True
    line = _DATED.sub("", line).strip(" -–—")
    if not 2 < len(line) <= 70:
        return False
    letters = [c for c in line if c.isalpha()]
    if len(letters) < 4 or sum(c.isdigit() for c in line) > 4:
        return False
    if all(c.isupper() for c in letters) and not line.endswith((",", ".")):
        return len(letters) * 2 > len(line)
    words = line[:-1].split()
    return line.endswith(":") and len(words) <= 6 and line[0].isupper()


def is_row(line: str) -> bool:
    """Return whether a line is a table row: aligned cells, or words and figures without a verb."""
    line = line.strip()
    if not line or is_heading(line):
        return False
    if line.count("|") >= 2 or "\t" in line or len(re.findall(r"\S {2,}(?=\S)", line)) >= 2:
        return True
    tokens = line.split()
    if not 2 <= len(tokens) <= 14 or line[-1] in ".!?:;," or _FUNCTION_WORD.search(line):
        return False
    return any(re.match(r"[<>]?\d", token) for token in tokens[1:])


def judge(before: str, after: str, running: Iterable[str], *, in_section: bool) -> Safety:
    """Judge the boundary between the text of one page and the text of the next page.

    `running` comes from `running_lines`; `in_section` says whether `before` ends inside a section.
    """
    drop = frozenset(running)
    ending, opening = _body(before, drop), _body(after, drop)
    if not ending or not opening:
        return Safety.SAFE
    last, first = ending[-1], opening[0]
    if _CONTINUED.search(last) or _CONTINUED.search(first):
        return Safety.BROKEN if is_row(opening[1 if len(opening) > 1 else 0]) else Safety.SECTION
    if is_heading(last):
        return Safety.SECTION
    if _sentence_goes_on(last, first) or (is_row(last) and is_row(first)):
        return Safety.BROKEN
    if is_heading(first) or _FIELD.match(first) or not in_section:
        return Safety.SAFE
    return Safety.SECTION


def section_open_after(text: str, running: Iterable[str], *, was_open: bool) -> bool:
    """Return whether a section is open at the end of `text`; `was_open` applies to its start."""
    for line in _body(text, frozenset(running)):
        if _SIGNED.search(line):
            was_open = False
        elif is_heading(line):
            was_open = True
    return was_open


def _sentence_goes_on(last: str, first: str) -> bool:
    if _HANGING.search(last) or (_INITIAL.search(last) and first[0].isupper()):
        return True
    if last.endswith((".", "!", "?", ")", '"', "”")) or is_heading(first) or _FIELD.match(first):
        return False
    if first[0].islower():
        return not is_row(last)
    if _BULLET.match(first) or is_row(last) or _SIGNED.search(last):
        return False
    return len(last) >= _SHORT_LINE


def _body(text: str, running: frozenset[str]) -> list[str]:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    first, last = 0, len(lines)
    while last > max(0, len(lines) - _EDGE_LINES) and _is_running(lines[last - 1], running):
        last -= 1
    while first < min(last, _EDGE_LINES) and _is_running(lines[first], running):
        first += 1
    return lines[first:last] or lines


def _is_running(line: str, running: frozenset[str]) -> bool:
    masked = _mask(line)
    return masked in running or bool(_PAGE_NUMBER.search(masked))


def _mask(line: str) -> str:
    return re.sub(r"\d+", "#", " ".join(line.split())).casefold()
