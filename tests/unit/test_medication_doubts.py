"""A medication beside words that can change its meaning is flagged, unless a rule explains them."""

from __future__ import annotations

import pytest

from pipeline.core.types import PageSlice
from pipeline.providers.local.engine import detect
from pipeline.providers.prompts import Question
from pipeline.providers.schemas import FoundEntity


def medications(text: str, heading: str = "PLAN") -> list[FoundEntity]:
    page = PageSlice(page=1, start=0, text=f"{heading}\n{text}\n")
    reply = detect(
        Question(kind="entities", item_token="a" * 32, include_zones=False, slices=(page,))
    )
    return [e for e in reply.entities if e.category == "medication"]


@pytest.mark.parametrize(
    "text",
    [
        "Side effects: ramipril - dry cough",
        "Ramipril 5 mg caused a cough.",
        "Developed hives on cefuroxime.",
        "Overdose of ibuprofen.",
        "Swallowed 20 tablets of ibuprofen 400 mg in a suicide attempt.",
        "Ran out of ramipril last week.",
        "Ramipril 5 mg daily but takes 2.5 mg.",
        "Ramipril 5 mg on the list; she actually takes 2.5 mg.",
        "Ramipril 5 mg daily. She only takes 2.5 mg.",
        "Ramipril 5 mg daily, taking differently: 2.5 mg daily",
        "In 2016 he took ramipril 5 mg daily.",
        "Supposed to take ramipril 5 mg daily.",
        "Next step: ramipril 5 mg daily.",
    ],
)
def test_words_that_no_rule_explains_make_the_medication_not_understood(text: str) -> None:
    found = medications(text)

    assert found
    assert all(e.rule is not None and e.rule.endswith("not-understood.v1") for e in found)
    assert all(e.dose is None and e.frequency is None for e in found)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Off ramipril since the fall.", "stopped"),
        ("Ramipril: off since 2020", "stopped"),
        ("Ramipril tolerated poorly.", "stopped"),
        ("Tried ramipril 5 mg for a month.", "stopped"),
        ("Prednisolone course completed.", "stopped"),
        ("Clopidogrel to be held 5 days before the procedure.", "on_hold"),
        ("Recommend ramipril 5 mg daily.", "planned"),
        ("Ramipril 5 mg was offered.", "planned"),
        ("Hold ramipril if systolic pressure is below 100.", "active"),
        ("If the pressure is low, hold ramipril.", "active"),
        ("Hold ramipril for SBP < 90.", "active"),
        ("Hold ramipril until the creatinine is known.", "on_hold"),
        ("His wife says he takes ramipril 5 mg daily.", "active"),
        ("Takes ramipril 5 mg daily for blood pressure, tolerating it well.", "active"),
    ],
)
def test_words_around_a_medication_give_its_status(text: str, status: str) -> None:
    (found,) = medications(text)

    assert found.status == status
    assert "not-understood" not in str(found.rule)


@pytest.mark.parametrize(
    "text",
    [
        "Tolerating ramipril 5 mg daily without side effects.",
        "Ramipril 5 mg daily - do not stop without advice.",
        "Hydrocortisone 1% cream to rash BID",
    ],
)
def test_harmless_words_leave_a_medication_understood(text: str) -> None:
    found = medications(text)

    assert found
    assert all("not-understood" not in str(e.rule) for e in found)


def test_a_drug_taken_until_a_month_is_stopped() -> None:
    (found,) = medications("Took ramipril 5 mg until March.")

    assert found.status == "stopped"


@pytest.mark.parametrize(
    "text",
    [
        "Either ramipril 5 mg or losartan 50 mg.",
        "First-line options include ramipril and losartan.",
        "Interaction between ramipril and losartan.",
        "Urine drug screen positive for morphine.",
        "Ramipril 5 mg daily - INCREASED",
        "Takes ramipril 5 mg daily but the pharmacy shows no fills.",
        "Transition to ramipril 5 mg daily when stable.",
    ],
)
def test_alternatives_tests_and_open_changes_are_not_understood(text: str) -> None:
    found = medications(text)

    assert found
    assert all(str(e.rule).endswith("not-understood.v1") for e in found)


def test_a_drug_that_the_next_statement_says_was_not_filled_is_not_started() -> None:
    (found,) = medications("Prescribed ramipril 5 mg daily; has not filled it yet.")

    assert found.status == "not_started"
