"""The reach of a cue: its own subject, a symptom that stays, a task, and a time of life."""

from __future__ import annotations

import pytest

from tests.unit.test_local_assertions import judge


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("Pancreatitis: nausea has cleared, lipase is falling.", "Pancreatitis"),
        ("Heart failure: ankle swelling has resolved.", "Heart failure"),
        ("Pneumonia - fever is gone.", "Pneumonia"),
    ],
)
def test_an_end_reaches_only_its_own_subject(text: str, mention: str) -> None:
    assert judge(text, mention).temporality != "historical"


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("Pancreatitis: resolved.", "Pancreatitis"),
        ("Pneumonia: this has fully resolved.", "Pneumonia"),
        ("Pancreatitis: nausea has cleared, lipase is falling.", "nausea"),
        ("Nausea, vomiting and diarrhea have resolved.", "Nausea"),
        ("Rash - now gone.", "Rash"),
    ],
)
def test_an_end_still_reaches_its_subject(text: str, mention: str) -> None:
    assert judge(text, mention).temporality == "historical"


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("Refer to surgery if the hip pain gets worse.", "hip pain"),
        ("Call if her headache persists.", "headache"),
        ("If the rash does not improve, stop the cream.", "rash"),
        ("Chest film if cough or wheezing worsens.", "cough"),
        ("Chest film if cough or wheezing worsens.", "wheezing"),
    ],
)
def test_a_symptom_that_may_get_worse_is_there(text: str, mention: str) -> None:
    assert judge(text, mention).certainty != "hypothetical"


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("Call if she develops fever or the cough worsens.", "fever"),
        ("Call if any headache persists.", "headache"),
        ("Return if chest pain occurs.", "chest pain"),
        ("Call if you have a fever that persists.", "fever"),
        ("Call if fever or new cough worsens.", "cough"),
    ],
)
def test_a_symptom_that_may_begin_is_hypothetical(text: str, mention: str) -> None:
    assert judge(text, mention).certainty == "hypothetical"


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("She took a tablet that gave her hives.", "hives"),
        ("He had a statin that caused leg cramps.", "leg cramps"),
        ("As a boy he had measles.", "measles"),
        ("In childhood she suffered from croup.", "croup"),
    ],
)
def test_an_earlier_drug_or_time_of_life_is_past(text: str, mention: str) -> None:
    assert judge(text, mention).temporality == "historical"


@pytest.mark.parametrize(
    "text",
    [
        "Myocarditis has to be excluded.",
        "Myocarditis still needs to be ruled out.",
        "Biopsy to exclude myocarditis.",
    ],
)
def test_a_disease_to_exclude_is_possible(text: str) -> None:
    mention = "myocarditis" if "myocarditis" in text else "Myocarditis"
    assert judge(text, mention).certainty == "possible"


def test_bleeding_that_does_not_stop_ends_and_denies_nothing() -> None:
    said = judge("Call for bleeding that does not stop, bruising or dizziness.", "bruising")

    assert (said.temporality, said.negated) == (None, None)


def test_another_time_of_day_denies_nothing() -> None:
    text = "Take the tablet at night instead of in the morning for the dizziness."

    assert judge(text, "dizziness").negated is not True
