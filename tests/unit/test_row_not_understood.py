"""A row with an unexplained token is published with its quote, flagged and not accepted."""

from __future__ import annotations

import re
from typing import Any

import pytest

from medproc.env import PROJECT_ROOT
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1.disputes import NOT_UNDERSTOOD_RULE
from tests.support.pass1_rows import rows_of

ENGINE = PROJECT_ROOT / "pipeline/providers/local"
NAMED = re.compile(r'"([^"\n]*not-understood[^"\n]*)"')
PARTS = ("not-understood", ".not-understood")
"""Parts with which the engine compares the name of a rule."""
ROW = "Potassium 4.2 qwx mmol/L 3.5-5.1"


def published(rule: str, quote: str = ROW) -> dict[str, Any]:
    entity = FoundEntity(category="lab", page=1, quote=quote, name="Potassium", rule=rule)
    (row,) = rows_of([entity], ROW)
    return row


@pytest.mark.parametrize("rule", ["lab.row-not-understood.v1", "med.sig-not-understood.v1"])
def test_an_unclear_row_is_flagged_and_not_accepted(rule: str) -> None:
    row = published(rule)

    assert row["accepted"] is False
    assert row["review_flags"] == ["row_not_understood"]
    assert row["quote"] == ROW


@pytest.mark.parametrize("rule", ["lab.row.v1", ""])
def test_other_rows_are_accepted_without_the_flag(rule: str) -> None:
    row = published(rule)

    assert row["accepted"] is True
    assert row["review_flags"] == []


def test_an_unclear_row_that_is_on_no_page_carries_both_flags() -> None:
    row = published("lab.row-not-understood.v1", quote="Chloride 99 qwx")

    assert row["accepted"] is False
    assert row["review_flags"] == ["row_not_understood", "unaligned"]


def test_every_rule_of_the_engine_that_is_not_understood_gets_the_flag() -> None:
    sources = (path.read_text(encoding="utf-8") for path in ENGINE.rglob("*.py"))
    rules = {name for source in sources for name in NAMED.findall(source)} - set(PARTS)

    assert len(rules) >= 5
    assert {rule for rule in rules if not rule.endswith(NOT_UNDERSTOOD_RULE)} == set()
