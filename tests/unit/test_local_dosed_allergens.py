"""A drug with a dose and a frequency among allergies is not understood."""

from __future__ import annotations

import pytest

from tests.unit.test_local_provider import ask, page


@pytest.mark.parametrize(
    ("row", "is_clear"),
    [
        ("Codeine", True),
        ("Codeine - vomiting", True),
        ("Codeine 30 mg", True),
        ("Codeine: rash after 30 mg daily", True),
        ("Atenolol 25 mg daily", False),
        ("Glipizide XL 5 mg PO every morning", False),
        ("Albuterol 2 puffs q4h as needed", False),
    ],
)
def test_an_allergen_is_taken_by_no_schedule(row: str, is_clear: bool) -> None:
    entities = ask(page(f"ALLERGIES\nLatex\nWhat I swallow\n{row}\n")).entities

    unclear = {e.name for e in entities if (e.rule or "").endswith("not-understood.v1")}
    assert len(unclear) == (not is_clear)
    assert "Latex" in {e.name for e in entities} - unclear
