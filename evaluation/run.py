"""Find the data sets of a folder and score each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.attributes import AttributeOutcome, Tally
from evaluation.gold import anafora, brat, contexts
from evaluation.notes import Misses, score_notes
from evaluation.reports import CaseResult, cases, judge
from evaluation.scores import Score
from evaluation.truths import score_truth
from pipeline.core.types import PageSlice
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.text.document import compose


@dataclass
class Evaluation:
    """Everything that the data of a folder say about the engine."""

    attributes: Tally = field(default_factory=Tally)
    scores: list[Score] = field(default_factory=list)
    reports: list[CaseResult] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether the folder has no labelled data."""
        return not self.scores and not self.reports


def evaluate(folder: Path, misses: Misses | None = None) -> Evaluation:
    """Judge every data set under `folder`. Raises BadDataError for a file that cannot be used."""
    found = Evaluation()
    for place in sorted({folder, *(p for p in folder.rglob("*") if p.is_dir())}):
        for reader in (anafora, brat):
            notes = list(reader(place))
            if notes:
                found.scores += score_notes(place.name, notes, found.attributes, misses)
        for path in sorted(place.glob("context_*.jsonl")):
            found.scores += _score_contexts(path, misses)
        for path in sorted(place.glob("*.truth.json")):
            found.scores += score_truth(path, found.attributes, misses)
        for result in judge(cases(place)):
            found.reports.append(result)
            _count(found.attributes, result, misses)
    return found


def _count(tally: Tally, result: CaseResult, misses: Misses | None) -> None:
    for checked in result.checked:
        for category, attribute, outcome in checked.outcomes:
            tally.add(category, attribute, outcome)
        if misses is not None and not checked.holds:
            measure = AttributeOutcome.WRONG.value if checked.is_wrong else "does not hold"
            misses(result.id, measure, json.dumps(checked.expectation, ensure_ascii=False))


def _score_contexts(path: Path, misses: Misses | None) -> Iterator[Score]:
    counts = {name: [0, 0, 0] for name in ("negation", "history", "hypothesis")}
    cases = 0
    for note, expected in contexts(path):
        cases += 1
        reading = DocumentState.of(compose((PageSlice(page=1, start=0, text=note.text),)))
        assertion = reading.judge(note.spans[0].start, note.spans[0].end)
        for name, wanted, got in (
            ("negation", expected["negation"] == "negated", assertion.negated is True),
            (
                "history",
                expected["temporality"] == "historical",
                assertion.temporality == "historical",
            ),
            (
                "hypothesis",
                expected["certainty"] == "uncertain",
                assertion.certainty in ("possible", "hypothetical"),
            ),
        ):
            row = counts[name]
            row[0] += wanted and got
            row[1] += got and not wanted
            row[2] += wanted and not got
            if misses is not None and wanted != got:
                misses(path.stem, name, note.text)
    if not cases:
        return
    for name, (tp, fp, fn) in counts.items():
        yield Score(data=path.stem, part="all", measure=f"{name} (en)", tp=tp, fp=fp, fn=fn)
