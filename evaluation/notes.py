"""Scores of the engine on labelled notes: drugs, findings, procedures, negation.

Negation is judged on the labelled spans, so that its score does not depend on the lexicon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from evaluation.attributes import AttributeOutcome, Tally
from evaluation.gold import GoldNote
from evaluation.scores import Bounds, Score, overlapping
from pipeline.core.types import PageSlice
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.engine import detect
from pipeline.providers.local.text.document import compose
from pipeline.providers.prompts import Question

KINDS: dict[str, tuple[str, ...]] = {
    "drug": ("medication", "allergy"),
    "finding": ("condition", "symptom"),
    "procedure": ("procedure",),
}
"""Kind of label → categories of this project. The labels count an allergen drug as a drug."""

LABELS = {"drug": "drugs", "finding": "conditions and symptoms", "procedure": "procedures"}
_ASIDE = ", other labels aside"
"""End of a measure that ignores found spans which the data set labels as a neighbouring kind."""
_CATEGORY = {"drug": "medication", "finding": "condition", "procedure": "procedure"}
"""Kind of label → the category under which its attributes are counted."""
Misses = Callable[[str, str, str], None]
"""Called with the note, the measure and the words around a miss."""


def score_notes(
    data: str, notes: Iterable[GoldNote], tally: Tally, misses: Misses | None = None
) -> Iterator[Score]:
    """Yield the scores over all notes and over each half.

    The rules were tuned on every other note by name; the other notes are the held-out half.
    """
    totals: dict[tuple[str, str], Score] = {}
    for index, note in enumerate(sorted(notes, key=lambda n: n.name)):
        half = "held out" if index % 2 else "tuned"
        tell = misses if half == "tuned" else None
        scores = (*_mentions(data, note, tell), *_negation(data, note, tell))
        for score in scores:
            _count(tally, score)
        for score in scores:
            for part in ("all", half):
                key = (score.measure, part)
                mine = replace(score, part=part)
                totals[key] = totals[key] + mine if key in totals else mine
    order = [
        *(f"{x}{end}" for x in LABELS.values() for end in ("", _ASIDE)),
        "negation on labelled spans",
    ]
    yield from sorted(
        totals.values(),
        key=lambda s: (order.index(s.measure), ("all", "tuned", "held out").index(s.part)),
    )


def _count(tally: Tally, score: Score) -> None:
    """Count names and negations; a mention without a label is in the table of scores only."""
    if score.measure.endswith(_ASIDE):
        return
    category = next(
        (_CATEGORY[kind] for kind, label in LABELS.items() if label == score.measure), ""
    )
    for _ in range(score.tp):
        tally.add(
            category or "condition", "name" if category else "negation", AttributeOutcome.RIGHT
        )
    if category:
        for _ in range(score.fn):
            tally.add(category, "name", AttributeOutcome.MISSED)
    else:
        for _ in range(score.fp + score.fn):
            tally.add("condition", "negation", AttributeOutcome.WRONG)


def found_spans(text: str) -> dict[str, list[Bounds]]:
    """Return the spans that the engine finds in `text`, by kind of label."""
    question = Question(
        kind="entities",
        item_token="0" * 8,
        include_zones=False,
        slices=(PageSlice(page=1, start=0, text=text),),
    )
    found: dict[str, list[Bounds]] = {kind: [] for kind in KINDS}
    for entity in detect(question).entities:
        for kind, categories in KINDS.items():
            if entity.category in categories and entity.start is not None:
                found[kind].append((entity.start, entity.start + len(entity.quote)))
    return found


def _mentions(data: str, note: GoldNote, misses: Misses | None) -> Iterator[Score]:
    found = found_spans(note.text)
    for kind, label in LABELS.items():
        gold = sorted({(s.start, s.end) for s in note.spans if s.kind == kind})
        matched, false, missed = overlapping(gold, found[kind])
        if misses is not None:
            for what, spans in (("false", false), ("missed", missed)):
                for start, end in spans:
                    words = f"{note.text[max(0, start - 25) : start]}[{note.text[start:end]}]"
                    misses(note.name, f"{label}: {what}", words + note.text[end : end + 15])
        yield Score(data=data, part="all", measure=label, tp=matched, fp=len(false), fn=len(missed))
        beside = [(s.start, s.end) for s in note.beside if s.kind == kind]
        if note.beside and kind != "drug":
            own = [span for span in false if not any(_overlap(span, other) for other in beside)]
            measure = f"{label}{_ASIDE}"
            yield Score(
                data=data, part="all", measure=measure, tp=matched, fp=len(own), fn=len(missed)
            )


def _overlap(left: Bounds, right: Bounds) -> bool:
    return left[0] < right[1] and right[0] < left[1]


def _negation(data: str, note: GoldNote, misses: Misses | None) -> Iterator[Score]:
    judged = [s for s in note.spans if s.negated is not None and s.kind == "finding"]
    if not judged:
        return
    reading = DocumentState.of(compose((PageSlice(page=1, start=0, text=note.text),)))
    tp = fp = fn = 0
    for span in judged:
        is_negated = reading.judge(span.start, span.end).negated is True
        tp += is_negated and span.negated is True
        fp += is_negated and not span.negated
        fn += not is_negated and span.negated is True
        if misses is not None and is_negated != span.negated:
            words = note.text[max(0, span.start - 70) : span.end + 20]
            misses(note.name, "negation: " + ("false" if is_negated else "missed"), words)
    yield Score(data=data, part="all", measure="negation on labelled spans", tp=tp, fp=fp, fn=fn)
