"""The local engine reads every structured item of the samples, and invents no number."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.attributes import Tally
from evaluation.truths import score_truth

SAMPLES = Path(__file__).parents[2] / "samples"
STRUCTURED = ("medication", "vital", "lab", "allergy", "immunization")


@pytest.mark.parametrize("name", ["lab_5p_8enc", "visits_20p_4enc", "traps_10p", "long_72p"])
def test_every_structured_item_of_a_text_record_is_right(name: str) -> None:
    misses: list[str] = []

    scores = list(
        score_truth(
            SAMPLES / f"{name}.truth.json",
            Tally(),
            lambda *words: misses.append(" | ".join(words)),
        )
    )

    structured = [s for s in scores if s.measure.startswith(STRUCTURED)]
    assert structured
    wrong = [m for m in misses if any(f"{kind}: " in m for kind in STRUCTURED) and "extra" not in m]
    assert wrong == []
    assert all(s.fn == 0 for s in structured)
    (numbers,) = (s for s in scores if s.measure == "numbers not wrong")
    assert numbers.fp == 0
    assert numbers.tp > 0
