"""Boxes in front of their item, empty blanks, and answers in a cell of a table."""

from __future__ import annotations

import pytest

from tests.support.generator.published import Row, published


def rows_of(text: str, name: str) -> list[Row]:
    return [row for row in published(text) if row["name"].lower() == name.lower()]


@pytest.mark.parametrize(
    ("text", "name", "is_negated"),
    [
        ("PAST MEDICAL HISTORY\nYes No\n[ ] [x] Stroke\n[x] [ ] Gout", "Stroke", True),
        ("PAST MEDICAL HISTORY\nYes No\n[ ] [x] Stroke\n[x] [ ] Gout", "Gout", False),
        ("REVIEW OF SYSTEMS\nN Y\n☐ ☒ Fever", "Fever", False),
        ("REVIEW OF SYSTEMS\nItching\tDenied\nNausea\tPresent", "Itching", True),
        ("REVIEW OF SYSTEMS\nVomiting\tAbsent", "Vomiting", True),
        ("REVIEW OF SYSTEMS\nDizziness\tEndorses", "Dizziness", False),
    ],
)
def test_an_answer_is_read_with_its_column(text: str, name: str, is_negated: bool) -> None:
    (found,) = rows_of(text, name)

    assert found["negated"] is is_negated


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("PAST MEDICAL HISTORY\n[ ] [x] Stroke", "Stroke"),
        ("PAST MEDICAL HISTORY\n[x] [ ] Stroke", "Stroke"),
        ("PAST MEDICAL HISTORY\nYes No\n[ ] [ ] Stroke", "Stroke"),
        ("PAST MEDICAL HISTORY\nYes No\n[x] [ ] [ ] Stroke", "Stroke"),
        ("REVIEW OF SYSTEMS\nRash: ____ Nausea: ____", "Rash"),
        ("REVIEW OF SYSTEMS\nRash: ____ Nausea: ____", "Nausea"),
        ("REVIEW OF SYSTEMS\nRash: ____ Nausea: N/A", "Nausea"),
    ],
)
def test_an_item_without_a_decided_answer_is_not_published(text: str, name: str) -> None:
    assert rows_of(text, name) == []


def test_a_filled_blank_beside_an_empty_blank_is_read() -> None:
    text = "PAST MEDICAL HISTORY\nAsthma: _x_ Stroke: ___"

    assert [row["negated"] for row in rows_of(text, "Asthma")] == [False]
    assert rows_of(text, "Stroke") == []
