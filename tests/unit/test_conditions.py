"""Sentences with the attributes of their conditions, as Pass 2 publishes them.

`fixtures/condition_sentences.jsonl` holds one entity a line: text, quote, attributes and flags.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tests.support.enriched_text import enriched_in

SEEN = date(2024, 3, 5)
FILE = Path(__file__).parents[1] / "fixtures" / "condition_sentences.jsonl"
CASES: list[dict[str, Any]] = [
    json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=[f"{c['text']}-{c['quote']}" for c in CASES])
def test_a_condition_has_what_its_text_states(case: dict[str, Any]) -> None:
    found = {facts.quote: made for facts, made in enriched_in(case["text"], seen=SEEN)}

    assert found[case["quote"]].attributes == case["attributes"]
    assert list(found[case["quote"]].flags) == case["flags"]


def test_the_table_covers_each_attribute_and_each_status() -> None:
    said = {(name, value) for case in CASES for name, value in case["attributes"].items()}

    assert len(CASES) > 300
    for status in ("active", "recurrence", "relapse", "inactive", "remission", "resolved"):
        assert ("clinical_status", status) in said
    for status in (
        "unconfirmed", "provisional", "differential", "confirmed", "refuted", "entered-in-error",
    ):  # fmt: skip
        assert ("verification_status", status) in said
