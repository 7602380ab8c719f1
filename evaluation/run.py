"""Find the data sets of a folder and score each of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evaluation.gold import anafora, brat, contexts
from evaluation.notes import Misses, score_notes
from evaluation.scores import Score
from evaluation.truths import score_truth
from pipeline.core.types import PageSlice
from pipeline.providers.local.document import compose
from pipeline.providers.local.document_state import DocumentState


def evaluate(folder: Path, misses: Misses | None = None) -> list[Score]:
    """Score every data set under `folder`; [] means that the folder has no labelled data."""
    scores: list[Score] = []
    for place in sorted({folder, *(p for p in folder.rglob("*") if p.is_dir())}):
        for reader in (anafora, brat):
            notes = list(reader(place))
            if notes:
                scores.extend(score_notes(place.name, notes, misses))
        for path in sorted(place.glob("context_*.jsonl")):
            scores.extend(_score_contexts(path, misses))
        for path in sorted(place.glob("*.truth.json")):
            scores.extend(score_truth(path, misses))
    return scores


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
