"""The words that people read: the same on every page, in every command and in every document.

A status is a word and a shape, because some people cannot see the colour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from pipeline.core.states import Step


class StatusWord(StrEnum):
    """The word for a status, the same for every table."""

    RUNNING = "running"
    WAITING = "waiting"
    PARKED = "parked"
    FAILED = "failed"
    DEAD = "dead"
    DONE = "done"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    """The record does not need the pass, or this installation does not run the pass."""


WORDS: dict[str, StatusWord] = {
    "initiated": StatusWord.WAITING,
    "pending": StatusWord.WAITING,
    "processing": StatusWord.RUNNING,
    "parked": StatusWord.PARKED,
    "completed": StatusWord.DONE,
    "succeeded": StatusWord.DONE,
    "failed": StatusWord.FAILED,
    "dead": StatusWord.DEAD,
    "cancelled": StatusWord.CANCELLED,
    "skipped": StatusWord.SKIPPED,
}
"""The word for each value of a status column."""

SHAPES: dict[StatusWord, str] = {
    StatusWord.RUNNING: "●",
    StatusWord.WAITING: "◌",
    StatusWord.PARKED: "‖",
    StatusWord.FAILED: "✕",
    StatusWord.DEAD: "☠",
    StatusWord.DONE: "✓",
    StatusWord.CANCELLED: "–",
    StatusWord.SKIPPED: "·",
}
COLOURS: dict[StatusWord, str] = {
    StatusWord.RUNNING: "cyan",
    StatusWord.WAITING: "yellow",
    StatusWord.PARKED: "magenta",
    StatusWord.FAILED: "bold red",
    StatusWord.DEAD: "bold red",
    StatusWord.DONE: "green",
    StatusWord.CANCELLED: "dim",
    StatusWord.SKIPPED: "dim",
}
"""Styles of `rich`, for terminals."""

PASS_TITLES: dict[Step, str] = {
    Step.PAGES: "Pages",
    Step.PASS05: "Pass 0.5",
    Step.PASS1: "Pass 1",
    Step.PASS1_5: "Pass 1.5",
    Step.PASS2: "Pass 2",
    Step.PASS3: "Pass 3",
}


def missing_encounters(published: int, total: int) -> int:
    """Return how many encounters an incomplete record lacks: a part is published, the rest is not.

    A record without any published encounter shows no entities, so nothing of it is incomplete.
    """
    return total - published if published else 0


def incomplete_note(published: int, total: int) -> str:
    """Return `Record incomplete: 1 of 8 encounters is not published.`, or "" if none is missing.

    The entities of the other encounters are visible, so every view of these entities shows
    this sentence (requirement 9).
    """
    missing = missing_encounters(published, total)
    if not missing:
        return ""
    verb = "is" if missing == 1 else "are"
    return f"Record incomplete: {missing} of {counted(total, 'encounter')} {verb} not published."


def counted(number: int, noun: str) -> str:
    """Return `1 batch`, `12 batches`, `1,709 entities`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {plural(noun)}"


def plural(noun: str) -> str:
    """Return `batches`, `entities`, `entities with candidates`."""
    head, space, rest = noun.partition(" with ")
    if space:
        return f"{plural(head)}{space}{rest}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}{'es' if noun.endswith(('ch', 's', 'x')) else 's'}"


def work_item(noun: str, index: int, encounter_index: int | None = None) -> str:
    """Return `chunk 1` or `encounter 3, batch 2` for a 0-based index; people count from 1."""
    item = f"{noun} {index + 1}"
    return item if encounter_index is None else f"encounter {encounter_index}, {item}"


def ranges(numbers: Iterable[int]) -> str:
    """Return `1–3, 7` for 1, 2, 3 and 7."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)


def pages(numbers: Iterable[int]) -> str:
    """Return `page 4` or `pages 1–3, 7`."""
    if isinstance(numbers, range) and numbers.step == 1 and len(numbers) > 1:
        return f"pages {numbers[0]}–{numbers[-1]}"
    found = sorted(set(numbers))
    return f"{'page' if len(found) == 1 else 'pages'} {ranges(found)}"


def met(codes: Iterable[str]) -> str:
    """Return `API_5XX ×3, PARSE_JSON`: each code with its count, the most frequent first."""
    return ", ".join(f"{code} ×{n}" if n > 1 else code for code, n in Counter(codes).most_common())


def ended_with(code: str | None, message: str | None, context: Mapping[str, Any] | None) -> str:
    """Return why a batch or chunk failed: the codes of its calls, and its own other error."""
    codes = [entry["error_code"] for entry in (context or {}).get("attempt_history", ())]
    spent = code == "MAX_RETRIES_EXCEEDED" or (codes and codes[-1] == code)
    own = "" if codes and spent else (message or "").rstrip(".") or str(code)
    return "; ".join(filter(None, (met(codes), own)))


def flags_in_words(stored: Iterable[str], meanings: Mapping[Any, str]) -> tuple[str, ...]:
    """Return the meanings of stored flags (`code` or `code:attribute`), one for each code.

    The attributes of a code come before its meaning. An unknown code is shown as its own words.
    """
    attributes: dict[str, list[str]] = {}
    for flag in stored:
        code, _, attribute = flag.partition(":")
        attributes.setdefault(code, []).extend([attribute.replace("_", " ")] if attribute else [])
    return tuple(_flag(code, named, meanings) for code, named in attributes.items())


def _flag(code: str, attributes: Sequence[str], meanings: Mapping[Any, str]) -> str:
    if code not in meanings:
        return " ".join([code.replace("_", " "), *attributes])
    meaning = meanings[code].removesuffix(".")
    words = meaning[0].lower() + meaning[1:]
    return f"{', '.join(attributes)}: {words}" if attributes else words


def duration(seconds: float) -> str:
    """Return `0.4 s`, `12 s`, `4 min`, `2 h 5 min`."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
