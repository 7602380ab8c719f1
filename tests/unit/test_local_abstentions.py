"""Negations apart from their finding, double negations, acts that were not done, graded zeros."""

from __future__ import annotations

import pytest

from pipeline.providers.schemas import FoundEntity
from tests.unit.test_local_provider import ask, page


def named(text: str, name: str) -> FoundEntity:
    (found,) = [e for e in ask(page(text)).entities if name in e.name.lower()]
    return found


@pytest.mark.parametrize(
    "text",
    [
        "No evidence could be found of pneumonia.",
        "No clear sign was seen on CT of pneumonia.",
        "At no time was there evidence of pneumonia.",
        "None of the films showed pneumonia.",
        "Nothing was noted on imaging to suggest pneumonia.",
        "Neither scan showed pneumonia.",
        "Evaluation excluded pneumonia.",
        "Pneumonia is no longer suspected.",
        "Pneumonia is no longer a concern.",
    ],
)
def test_a_negation_reaches_over_a_verb(text: str) -> None:
    assert named(f"IMPRESSION\n{text}", "pneumonia").negated is True


@pytest.mark.parametrize(
    "text",
    [
        "No response to therapy suggests pneumonia.",
        "No symptoms since the diagnosis of pneumonia.",
    ],
)
def test_a_negation_of_another_word_does_not_reach(text: str) -> None:
    assert named(f"HPI\n{text}", "pneumonia").negated is not True


@pytest.mark.parametrize(
    "text",
    [
        "He denies neither nausea nor chills.",
        "She has never denied nausea.",
        "He does not deny nausea.",
        "She neither confirms nor denies nausea.",
    ],
)
def test_a_double_negation_is_flagged(text: str) -> None:
    found = named(f"HPI\n{text}", "nausea")

    assert found.negated is not True
    assert "not-understood" in found.rule


@pytest.mark.parametrize(
    "text",
    [
        "Her last pneumonia episode was in 2012.",
        "Pneumonia, most recent episode in 2012.",
        "Previously had pneumonia.",
    ],
)
def test_an_episode_long_ago_is_historical(text: str) -> None:
    assert named(f"HPI\n{text}", "pneumonia").temporality == "historical"


@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        ("Pneumonia remains on the differential.", "possible"),
        ("Treat as pneumonia until the culture is back.", "possible"),
        ("Counselled on the symptoms of pneumonia.", "hypothetical"),
    ],
)
def test_a_finding_that_is_only_considered_is_not_certain(text: str, certainty: str) -> None:
    assert named(f"PLAN\n{text}", "pneumonia").certainty == certainty


@pytest.mark.parametrize(
    "text",
    [
        "Colonoscopy refused.",
        "Colonoscopy: deferred",
        "Colonoscopy - patient declined.",
        "Colonoscopy (cancelled)",
        "Colonoscopy was never done.",
        "She never underwent colonoscopy.",
        "Colonoscopy was offered but declined.",
        "Appendectomy 1998, colonoscopy refused",
    ],
)
def test_a_refused_procedure_is_not_done(text: str) -> None:
    assert named(f"PROCEDURES\n{text}", "colonoscopy").negated is True


def test_a_refusal_reaches_only_the_act_before() -> None:
    text = "PROCEDURES\nAppendectomy in 1998, colonoscopy refused"

    assert named(text, "appendectomy").negated is not True


def test_a_postponed_procedure_is_planned() -> None:
    assert named("PROCEDURES\nColonoscopy postponed.", "colonoscopy").temporality == "planned"


def test_a_symptom_that_declines_is_not_denied() -> None:
    assert named("HPI\nHer cough declined by the evening.", "cough").negated is not True


@pytest.mark.parametrize("text", ["Chills 0, nausea 2", "Chills: 0", "Chills 0/10"])
def test_a_grade_of_zero_is_flagged(text: str) -> None:
    assert "not-understood" in named(f"REVIEW OF SYSTEMS\n{text}", "chills").rule


def test_an_answer_does_not_reach_the_next_label() -> None:
    text = "PAST MEDICAL HISTORY\nGout: Current Stroke: Never Asthma: Current"

    assert [named(text, n).negated is True for n in ("gout", "stroke", "asthma")] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("heading", ["PAST MEDICAL HISTORY", "FAMILY HISTORY"])
def test_a_remark_in_parentheses_gives_only_its_own_finding_to_a_person(heading: str) -> None:
    text = f"{heading}\nStroke (mother), gout (patient)"

    assert named(text, "stroke").experiencer == "family"
    assert named(text, "gout").experiencer == "patient"


@pytest.mark.parametrize(
    "text",
    [
        "Her PCP diagnosed gout.",
        "Follow up with PCP.",
        "He tears the letter.",
        "She burns the toast.",
    ],
)
def test_physicians_and_verbs_are_no_diseases(text: str) -> None:
    names = {e.name.lower() for e in ask(page(f"HPI\n{text}")).entities}

    assert names <= {"gout"}


def test_pcp_after_words_of_an_infection_is_a_disease() -> None:
    assert named("HPI\nTreated for PCP.", "pcp").category == "condition"
