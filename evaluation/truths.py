"""Scores of the engine on whole sample records against their truth, attribute by attribute.

A wrong or invented number is counted separately from a missed number, because a wrong number is
worse than none. A mention without a number (`his inhaler`) that the truth omits is no false
medication.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.notes import Misses
from evaluation.scores import Score
from pipeline.core.types import PageSlice
from pipeline.documents.reader import read_pages
from pipeline.providers.local.engine import detect
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import FoundEntity

_BATCH_PAGES = 10
"""Pages per request, like the planner's largest batch."""
_ATTRIBUTES: dict[str, tuple[tuple[str, str], ...]] = {
    "medication": (("dose", "dose"), ("route", "route"), ("frequency", "frequency")),
    "vital": (("value", "value"), ("unit", "unit")),
    "lab": (
        ("value", "value"),
        ("unit", "unit"),
        ("range", "reference_range"),
        ("flag", "abnormal_flag"),
    ),
    "allergy": (("reaction", "reaction"),),
}
"""Category → (field of the truth, field of the reply)."""
_NUMBER = {"medication": "dose", "vital": "value", "lab": "value"}
_ASSERTIONS: dict[str, tuple[str, tuple[object, ...]]] = {
    "negated": ("negated", (True,)),
    "historical": ("temporality", ("historical",)),
    "hypothetical": ("certainty", ("possible", "hypothetical")),
    "family": ("experiencer", ("family", "other")),
}
"""Assertion of the truth → (field of the reply, its values)."""


def score_truth(path: Path, misses: Misses | None = None) -> Iterator[Score]:
    """Yield the scores of one `<name>.truth.json` beside its file."""
    truth = json.loads(path.read_text(encoding="utf-8"))
    pages = _texts(truth, path.parent / truth["file"])
    if not pages:
        return
    found = _found(pages)
    yield from _compare(path.name.partition(".")[0], truth, pages, found, misses)


def _texts(truth: dict[str, Any], file: Path) -> dict[int, str]:
    if truth.get("page_texts"):
        return dict(enumerate(truth["page_texts"], start=1))
    if not truth.get("text_layer") or not file.is_file():
        return {}
    return {page.number: page.text for page in read_pages(file, 1, truth["pages"])}


def _found(pages: dict[int, str]) -> list[FoundEntity]:
    numbers = sorted(pages)
    found: list[FoundEntity] = []
    for first in range(0, len(numbers), _BATCH_PAGES):
        asked = tuple(
            PageSlice(page=n, start=0, text=pages[n]) for n in numbers[first : first + _BATCH_PAGES]
        )
        question = Question(kind="entities", item_token="0" * 8, include_zones=False, slices=asked)
        found.extend(detect(question).entities)
    return found


def _compare(
    name: str,
    truth: dict[str, Any],
    pages: dict[int, str],
    found: list[FoundEntity],
    misses: Misses | None,
) -> Iterator[Score]:
    free = list(found)
    counts: Counter[tuple[str, str]] = Counter()
    for entity in (e for encounter in truth["encounters"] for e in encounter["entities"]):
        category = entity["category"]
        match = _match(entity, pages, free)
        if match is None:
            counts[category, "missed"] += 1
            if misses is not None:
                misses(
                    name,
                    f"{category}: missed",
                    f"p{entity['page']} {entity['quote']} @ {entity['line']}",
                )
            continue
        free.remove(match)
        wrong = [
            f"{field}={getattr(match, theirs)!r} not {entity.get(field)!r}"
            for field, theirs in _ATTRIBUTES.get(category, ())
            if _plain(entity.get(field)) != _plain(getattr(match, theirs))
        ]
        number = _NUMBER.get(category)
        is_number_wrong = any(w.startswith(f"{number}=") and "=None" not in w for w in wrong)
        counts[category, "wrong number" if is_number_wrong else "wrong" if wrong else "right"] += 1
        expected = entity.get("assertion", "present")
        asserted = [
            name for name, (field, values) in _ASSERTIONS.items() if getattr(match, field) in values
        ]
        fits = expected in asserted if expected != "present" else not asserted
        counts["assertion", "right" if fits else "wrong"] += 1
        if misses is not None and wrong:
            misses(
                name,
                f"{category}: wrong",
                f"p{entity['page']} {entity['line']} -> {wrong} {match.rule}",
            )
        if misses is not None and not fits:
            misses(
                name,
                "assertion",
                f"p{entity['page']} {expected} not {asserted}: "
                f"{entity['quote']} @ {entity['line']}",
            )
    for extra in free:
        number = _NUMBER.get(extra.category)
        invented = number is not None and getattr(extra, number) is not None
        counts[extra.category, "invented" if invented else "extra"] += 1
        if misses is not None:
            line = _line(pages[extra.page], extra.start or 0)
            misses(
                name,
                f"{extra.category}: extra",
                f"p{extra.page} [{extra.quote}] @ {line} {extra.rule}",
            )
    yield from _as_scores(name, counts)


def _match(
    entity: dict[str, Any], pages: dict[int, str], free: list[FoundEntity]
) -> FoundEntity | None:
    text = pages[entity["page"]]
    best: tuple[int, FoundEntity] | None = None
    for line_at in _places(text, entity["line"]):
        for at in _places(entity["line"], entity["quote"]) or [0]:
            start = line_at + at
            end = start + len(entity["quote"])
            for candidate in free:
                if candidate.page != entity["page"] or candidate.start is None:
                    continue
                if candidate.category != entity["category"] and not (
                    {candidate.category, entity["category"]} <= {"condition", "symptom"}
                ):
                    continue
                shared = min(end, candidate.start + len(candidate.quote)) - max(
                    start, candidate.start
                )
                if shared > 0 and (best is None or shared > best[0]):
                    best = (shared, candidate)
    return best[1] if best else None


def _places(text: str, words: str) -> list[int]:
    found, at = [], text.find(words)
    while at >= 0:
        found.append(at)
        at = text.find(words, at + 1)
    return found


def _line(text: str, offset: int) -> str:
    first = text.rfind("\n", 0, offset) + 1
    last = text.find("\n", offset)
    return text[first : last if last >= 0 else len(text)]


def _plain(words: str | None) -> str:
    return " ".join((words or "").split())


def _as_scores(name: str, counts: Counter[tuple[str, str]]) -> Iterator[Score]:
    structured = ("medication", "vital", "lab", "allergy", "immunization")
    for category in (*structured, "condition", "symptom", "procedure"):
        right = counts[category, "right"]
        wrong = counts[category, "wrong"] + counts[category, "wrong number"]
        missed = counts[category, "missed"]
        if right + wrong + missed == 0:
            continue
        measure = f"{category}, all attributes right" if category in _ATTRIBUTES else category
        yield Score(
            data=name,
            part="all",
            measure=measure,
            tp=right,
            fp=wrong + counts[category, "invented" if category in _NUMBER else "extra"],
            fn=missed + wrong,
        )
    bad_numbers = sum(
        count for (_, what), count in counts.items() if what in ("wrong number", "invented")
    )
    wrong_numbers = sum(count for (_, what), count in counts.items() if what == "wrong number")
    numbers = sum(
        count
        for (category, what), count in counts.items()
        if category in _NUMBER and what in ("right", "wrong", "wrong number")
    )
    yield Score(
        data=name,
        part="all",
        measure="numbers not wrong",
        tp=numbers - wrong_numbers,
        fp=bad_numbers,
        fn=0,
    )
    yield Score(
        data=name,
        part="all",
        measure="assertions",
        tp=counts["assertion", "right"],
        fp=counts["assertion", "wrong"],
        fn=counts["assertion", "wrong"],
    )
