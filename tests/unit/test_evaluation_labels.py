"""One measure sets aside the found spans under labels of a neighbouring kind."""

from __future__ import annotations

from pathlib import Path

from evaluation.attributes import Tally
from evaluation.gold import brat
from evaluation.notes import score_notes

_TEXT = "An echocardiogram was done. A splenectomy followed. A colonoscopy was planned.\n"


def _label(number: int, kind: str, words: str) -> str:
    start = _TEXT.index(words)
    return f"T{number}\t{kind} {start} {start + len(words)}\t{words}\n"


def test_a_diagnostic_procedure_is_neither_expected_nor_wrong(tmp_path: Path) -> None:
    labels = _label(1, "Diagnostic_procedure", "echocardiogram")
    labels += _label(2, "Therapeutic_procedure", "splenectomy")
    (tmp_path / "a.txt").write_text(_TEXT)
    (tmp_path / "a.ann").write_text(labels)

    scores = {
        s.measure: s for s in score_notes("d", list(brat(tmp_path)), Tally()) if s.part == "all"
    }

    plain, aside = scores["procedures"], scores["procedures, other labels aside"]
    assert (plain.tp, plain.fp, plain.fn) == (1, 2, 0)
    assert (aside.tp, aside.fp, aside.fn) == (1, 1, 0)
