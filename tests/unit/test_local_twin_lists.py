"""Lists with unknown headings that are printed as rows are not understood."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_provider import ask, page


def entities(text: str) -> list[FoundEntity]:
    """Return the entities of a page; `→` is a TAB."""
    return ask(page(text.replace("→", "\t"))).entities


def unclear(text: str) -> set[str]:
    """Return the names of the entities that are not understood."""
    return {e.name for e in entities(text) if (e.rule or "").endswith("not-understood.v1")}


@pytest.mark.parametrize(
    ("heads", "left", "right"),
    [
        ("His own list→From the neighbours", "Gout|Asthma", "Lupus|Psoriasis"),
        (
            "No good for me→What I swallow",
            "Codeine|Amoxicillin",
            "Atenolol 25 mg daily|Glipizide 5 mg daily",
        ),
        (
            "Now→Not any more",
            "Losartan 50 mg daily|Sertraline 50 mg daily",
            "Atenolol 25 mg daily|Glipizide 5 mg daily",
        ),
        (
            "Her father has→Her father takes",
            "Gout|Asthma",
            "Allopurinol 100 mg daily|Montelukast 10 mg daily",
        ),
        (
            "ALLERGIES→What I swallow",
            "Codeine|Amoxicillin",
            "Atenolol 25 mg daily|Glipizide 5 mg daily",
        ),
    ],
)
def test_names_beside_names_below_unknown_headings(heads: str, left: str, right: str) -> None:
    rows = [f"{a}→{b}" for a, b in zip(left.split("|"), right.split("|"), strict=True)]
    text = "\n".join([heads, *rows])

    published = entities(text)

    assert len(published) >= 4
    assert unclear(text) == {e.name for e in published}
    assert {e.dose for e in published} == {None}


@pytest.mark.parametrize(
    "text",
    [
        "PAST MEDICAL HISTORY\nGout→Asthma\nLupus→Psoriasis\nMigraine→Epilepsy",
        "MEDICATIONS\nDrug→Used for\nAtenolol 25 mg daily→Angina\nGlipizide 5 mg daily→Diabetes",
        "What he has→What he takes\nGout→Allopurinol 100 mg daily\nAsthma→Montelukast 10 mg daily",
        "ALLERGIES\nWhat it was→What came of it\nCodeine→hives\nAmoxicillin→rash",
    ],
)
def test_tables_and_lists_in_columns_stay(text: str) -> None:
    assert entities(text)
    assert unclear(text) == set()
