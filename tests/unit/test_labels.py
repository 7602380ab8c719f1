"""Counted nouns in sentences."""

from __future__ import annotations

import pytest

from pipeline.core.labels import counted


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (1, "day", "1 day"),
        (3, "day", "3 days"),
        (1_709, "entity", "1,709 entities"),
        (2, "batch", "2 batches"),
        (2, "entity with candidates", "2 entities with candidates"),
    ],
)
def test_a_counted_noun_has_its_plural(number: int, noun: str, words: str) -> None:
    assert counted(number, noun) == words
