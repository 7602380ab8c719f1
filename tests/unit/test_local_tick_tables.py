"""Rows of a form with a column for each answer: a tick decides, an empty row says nothing."""

from __future__ import annotations

import pytest

from tests.unit.test_local_provider import ask, page


def said(text: str) -> dict[str, bool]:
    """Return the name of each published entity with its negation; `→` is a TAB."""
    entities = ask(page(text.replace("→", "\t"))).entities
    return {e.name: bool(e.negated) for e in entities}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("→Yes→No\nItching→→X\nHoarseness→X\n", {"Itching": True, "Hoarseness": False}),
        (
            "Symptom→No→Yes\nItching→X\nHoarseness→→X\nSwelling",
            {"Itching": True, "Hoarseness": False},
        ),
        (
            "→Yes→No→→Yes→No\nItching→→x→Hoarseness→x\nNausea→x→→Vomiting→→x\n→→→Cough→→x",
            {
                "Itching": True,
                "Hoarseness": False,
                "Nausea": False,
                "Vomiting": True,
                "Cough": True,
            },
        ),
        (
            "Symptom→Y→N→Symptom→Y→N\nItching→✓→✓→Nausea→→✓\nCough→→→Vomiting→✓",
            {"Nausea": True, "Vomiting": False},
        ),
        (
            "Symptom→Yes→No→Comments\nItching→X→→for two weeks\nNausea→→X\nCough",
            {"Itching": False, "Nausea": True},
        ),
        ("→Yes→No\nItching→→sometimes\nNausea→→X", {"Nausea": True}),
        (
            "→Positive→Negative→Not asked\nItching→→→x\nNausea→x\nCough→→x",
            {"Nausea": False, "Cough": True},
        ),
        (
            "→Yes→No\nItching→[ ]→[x]\nNausea→[x]→[ ]\nCough→[ ]→[ ]",
            {"Itching": True, "Nausea": False},
        ),
    ],
)
def test_columns_of_answers(rows: str, expected: dict[str, bool]) -> None:
    assert said("REVIEW OF SYSTEMS\n" + rows) == expected


def test_answers_before_the_items() -> None:
    text = "REVIEW OF SYSTEMS\nYes→No\n→x→Itching\nx→→Nausea\nx→x→Cough"

    assert said(text) == {"Itching": True, "Nausea": False}


def test_a_section_below_ends_the_table() -> None:
    text = "REVIEW OF SYSTEMS\n→Yes→No\nItching→→X\nNausea\nAssessment\nAsthma\nGout"

    assert said(text) == {"Itching": True, "Asthma": False, "Gout": False}


def test_a_result_beside_its_reference_is_no_row_of_headings() -> None:
    reply = ask(
        page("LABORATORY RESULTS\nNitrite\tPositive\tNegative\tA\nKetones\tNegative\tNegative")
    )

    assert {(e.name, e.value) for e in reply.entities} >= {("Nitrite", "Positive")}
