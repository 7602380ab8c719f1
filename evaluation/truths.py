"""Scores of the engine on whole sample records against their truth, attribute by attribute.

A wrong or invented number is counted separately from a missed number, because a wrong number is
worse than none. A mention without a number (`his inhaler`) that the truth omits is no false
medication.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.attributes import COLUMNS, AttributeOutcome, Tally
from evaluation.notes import Misses
from evaluation.published import Row, publish
from evaluation.scores import Bounds, Score
from pipeline.documents.reader import read_pages
from pipeline.providers.schemas import NOT_TAKEN

_ATTRIBUTES: dict[str, tuple[tuple[str, str], ...]] = {
    "medication": (
        ("dose", "dose"),
        ("strength", "strength"),
        ("route", "route"),
        ("frequency", "frequency"),
        ("step", "step"),
    ),
    "vital": (("value", "value"), ("unit", "unit")),
    "lab": (
        ("value", "value"),
        ("unit", "unit"),
        ("range", "reference_range"),
        ("flag", "abnormal_flag"),
    ),
    "allergy": (("reaction", "reaction"),),
}
"""Category → (field of the truth, column of the entity)."""
_NUMBER = {"medication": "dose", "vital": "value", "lab": "value"}
_ASSERTIONS: dict[str, tuple[str, tuple[object, ...]]] = {
    "negated": ("negated", (True,)),
    "historical": ("temporality", ("historical",)),
    "hypothetical": ("certainty", ("possible", "hypothetical")),
    "family": ("experiencer", ("family", "other")),
}
"""Assertion of the truth → (column of the entity, its values)."""


def score_truth(path: Path, tally: Tally, misses: Misses | None = None) -> Iterator[Score]:
    """Yield the scores of one `<name>.truth.json` beside its file, and count its attributes."""
    truth = json.loads(path.read_text(encoding="utf-8"))
    pages = _texts(truth, path.parent / truth["file"])
    if not pages:
        return
    comparison = _Comparison(path.name.partition(".")[0], pages, tally, misses)
    yield from comparison.scores(truth)


def _texts(truth: dict[str, Any], file: Path) -> dict[int, str]:
    if truth.get("page_texts"):
        return dict(enumerate(truth["page_texts"], start=1))
    if not truth.get("text_layer") or not file.is_file():
        return {}
    return {page.number: page.text for page in read_pages(file, 1, truth["pages"])}


class _Comparison:
    """One record beside its truth."""

    def __init__(
        self, name: str, pages: dict[int, str], tally: Tally, misses: Misses | None
    ) -> None:
        self.name = name
        self.pages = pages
        self.tally = tally
        self.misses = misses
        self.counts: Counter[tuple[str, str]] = Counter()

    def scores(self, truth: dict[str, Any]) -> Iterator[Score]:
        """Compare every entity of the truth with the published entities, and yield the scores."""
        free = list(publish(self.pages).rows)
        for entity in (e for encounter in truth["encounters"] for e in encounter["entities"]):
            match = _match(entity, self.pages, free)
            if match is None:
                self._count_missed(entity)
                continue
            free.remove(match)
            self._count_attributes(entity, match)
            self._count_assertion(entity, match)
        for extra in free:
            self._count_extra(extra)
        return _as_scores(self.name, self.counts)

    def _tell(self, measure: str, words: str) -> None:
        if self.misses is not None:
            self.misses(self.name, measure, words)

    def _count_missed(self, entity: dict[str, Any]) -> None:
        category = entity["category"]
        self.counts[category, "missed"] += 1
        self.tally.add(category, "name", AttributeOutcome.MISSED)
        for field, column in _ATTRIBUTES.get(category, ()):
            if entity.get(field):
                self.tally.add(category, COLUMNS[column], AttributeOutcome.MISSED)
        self._tell(f"{category}: missed", f"p{entity['page']} {entity['quote']} @ {entity['line']}")

    def _count_attributes(self, entity: dict[str, Any], match: Row) -> None:
        category = entity["category"]
        self.tally.add(
            category,
            "name",
            AttributeOutcome.FLAGGED if _is_flagged(match) else AttributeOutcome.RIGHT,
        )
        wrong = []
        for field, column in _ATTRIBUTES.get(category, ()):
            expected, found = _plain(entity.get(field)), _plain(match[column])
            if expected or found:
                outcome = _outcome(match, is_right=expected == found, is_told=bool(found))
                self.tally.add(category, COLUMNS[column], outcome)
            if expected != found:
                wrong.append(f"{field}={match[column]!r} not {entity.get(field)!r}")
        number = _NUMBER.get(category)
        is_number_wrong = any(w.startswith(f"{number}=") and "=None" not in w for w in wrong)
        verdict = "wrong number" if is_number_wrong else "wrong" if wrong else "right"
        self.counts[category, verdict] += 1
        if wrong:
            words = f"p{entity['page']} {entity['line']} -> {wrong} {match['rule']}"
            self._tell(f"{category}: wrong", words)

    def _count_assertion(self, entity: dict[str, Any], match: Row) -> None:
        category, expected = entity["category"], entity.get("assertion", "present")
        asserted = {a: col for a, (col, values) in _ASSERTIONS.items() if match[col] in values}
        # These states say of a medication what `negated`, `historical` or `hypothetical` say.
        is_not_taken = match["status"] in NOT_TAKEN
        fits = expected in asserted or (is_not_taken and expected not in ("present", "family"))
        if expected == "present":
            fits = not asserted and not is_not_taken
        self.counts["assertion", "right" if fits else "wrong"] += 1
        for column in {
            *asserted.values(),
            *([_ASSERTIONS[expected][0]] if expected != "present" else []),
        }:
            outcome = _outcome(match, is_right=fits, is_told=True)
            self.tally.add(category, COLUMNS[column], outcome)
        if entity.get("status") or (is_not_taken and expected == "present"):
            is_right = match["status"] == entity.get("status")
            outcome = _outcome(match, is_right=is_right, is_told=bool(match["status"]))
            self.tally.add(category, "status", outcome)
        if not fits:
            self._tell(
                "assertion",
                f"p{entity['page']} {expected} not {sorted(asserted)}: "
                f"{entity['quote']} @ {entity['line']}",
            )

    def _count_extra(self, extra: Row) -> None:
        category = extra["category"]
        number = _NUMBER.get(category)
        is_invented = number is not None and extra[number] is not None
        self.counts[category, "invented" if is_invented else "extra"] += 1
        if is_invented:
            self.tally.add(category, str(number), _outcome(extra, is_right=False, is_told=True))
        page, start = extra["page_number"], extra["char_start"] or 0
        words = f"p{page} [{extra['quote']}] @ {_line(self.pages[page], start)} {extra['rule']}"
        self._tell(f"{category}: extra", words)


def _is_flagged(row: Row) -> bool:
    return bool(row["review_flags"]) or not row["accepted"]


def _outcome(row: Row, *, is_right: bool, is_told: bool) -> AttributeOutcome:
    if _is_flagged(row):
        return AttributeOutcome.FLAGGED
    if is_right:
        return AttributeOutcome.RIGHT
    return AttributeOutcome.WRONG if is_told else AttributeOutcome.MISSED


def _match(entity: dict[str, Any], pages: dict[int, str], free: list[Row]) -> Row | None:
    best: tuple[int, Row] | None = None
    text = pages[entity["page"]]
    for start, end in _quotes(text, entity):
        for candidate in free:
            if candidate["page_number"] != entity["page"] or candidate["char_start"] is None:
                continue
            categories = {candidate["category"], entity["category"]}
            if len(categories) > 1 and not categories <= {"condition", "symptom"}:
                continue
            shared = min(end, candidate["char_end"]) - max(start, candidate["char_start"])
            if shared > 0 and (best is None or shared > best[0]):
                best = (shared, candidate)
    return best[1] if best else None


def _quotes(text: str, entity: dict[str, Any]) -> Iterator[Bounds]:
    """Yield the places of a quote in its printed line; a page can print the line in parts."""
    lines = list(_places(text, entity["line"])) or [(0, len(text))]
    for first, last in lines:
        quotes = list(_places(text[first:last], entity["quote"]))
        yield from ((first + start, first + end) for start, end in quotes)


def _places(text: str, words: str) -> Iterator[Bounds]:
    """Yield the places of words; every kind of white space is one space."""
    pattern = r"\s+".join(map(re.escape, words.split()))
    yield from (found.span() for found in re.finditer(pattern, text))


def _line(text: str, offset: int) -> str:
    first = text.rfind("\n", 0, offset) + 1
    last = text.find("\n", offset)
    return text[first : last if last >= 0 else len(text)]


def _plain(words: object) -> str:
    return "" if words is None else " ".join(str(words).split())


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
