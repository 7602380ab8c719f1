"""Generated sentences with assertion cues, targets, changes, and other persons."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made

CONDITIONS = (
    "pneumonia",
    "stroke",
    "diabetes",
    "hypertension",
    "asthma",
    "cellulitis",
    "pulmonary embolism",
    "hepatitis",
    "anemia",
    "appendicitis",
)
NEGATED = (
    "Patient is negative for {x}.",
    "Workup was negative for {x}.",
    "No evidence of {x}.",
    "{X} has been excluded.",
    "{X} was ruled out.",
    "Was not found to have {x}.",
    "Found not to have {x}.",
    "Was not diagnosed with {x}.",
    "Denies {x}.",
    "Without {x}.",
    "There is no {x}.",
    "The CT showed no {x}.",
    "{X} is not thought to be present.",
)
UNCERTAIN = (
    "Possible {x}.",
    "Rule out {x}.",
    "Concern for {x}.",
    "Cannot exclude {x}.",
    "Suspected {x}.",
    "Monitor for {x}.",
    "Screening for {x} is due.",
    "At risk for {x}.",
    "If {x} develops, call.",
)
OTHERS = (
    "His wife has {x}.",
    "Her roommate was treated for {x}.",
    "The donor had {x}.",
    "Her neighbor died of {x}.",
    "Her child has {x}.",
    "His father has {x}.",
    "Family history of {x} in a brother.",
)
STATED = (
    "Patient has {x}.",
    "Diagnosed with {x}.",
    "{X} is confirmed.",
    "Treated today for {x}.",
    "Here with {x}.",
    "CT confirms {x}.",
)
MIXED = (
    "No evidence of {x}, but {y} is confirmed.",
    "{Y} is confirmed; {x} was ruled out.",
    "Patient has {y} but denies {x}.",
    "Positive for {y}, negative for {x}.",
    "Patient has {y}. No {x}.",
    "Diagnosed with {y}; his wife has {x}.",
    "Patient has {y}; possible {x}.",
    "The CT showed {y} and no {x}.",
    "Treated for {y} without {x}.",
)
"""Here `{y}` is stated and `{x}` is not."""
TARGETS = (
    ("lab", "hemoglobin", "Transfuse if hemoglobin < 7."),
    ("lab", "a1c", "Goal A1c is < 7%."),
    ("lab", "inr", "Target INR 2.5."),
    ("lab", "potassium", "Notify MD for potassium > 5.5."),
    ("lab", "glucose", "Call if glucose is over 300."),
    ("lab", "magnesium", "Replete magnesium to > 2."),
    ("vital", "bp|blood pressure", "BP goal 130/80."),
    ("vital", "hr|heart rate|pulse", "Hold for HR 50."),
    ("vital", "temp", "Return for temperature of 101."),
    ("vital", "weight", "Weight down 10 lbs."),
    ("vital", "weight", "Weight increased 5 kg over two months."),
    ("lab", "creatinine", "Creatinine up 0.3 from baseline."),
)


def _sentence(rng: random.Random, frames: tuple[str, ...]) -> tuple[str, str]:
    condition = rng.choice(CONDITIONS)
    text = rng.choice(frames).format(x=condition, X=condition.capitalize())
    return condition, text


def negated(rng: random.Random) -> Made:
    """Return a denial."""
    name, text = _sentence(rng, NEGATED)
    return (
        "ASSESSMENT",
        text,
        (
            Expected(
                category="condition", name=name, fields={"negated": True}, kind=FactKind.ASIDE
            ),
            Expected(category="condition", name=name, kind=FactKind.ABSENT),
        ),
    )


def not_stated(rng: random.Random) -> Made:
    """Return a condition that is uncertain, or another person's."""
    name, text = _sentence(rng, rng.choice([UNCERTAIN, OTHERS]))
    return "ASSESSMENT", text, (Expected(category="condition", name=name, kind=FactKind.ABSENT),)


def stated(rng: random.Random) -> Made:
    """Return a condition of the patient."""
    name, text = _sentence(rng, STATED)
    return "ASSESSMENT", text, (Expected(category="condition", name=name),)


def target(rng: random.Random) -> Made:
    """Return a goal, a threshold or a change, none of which is a value of today."""
    category, name, text = rng.choice(TARGETS)
    return "PLAN", text, (Expected(category=category, name=name, kind=FactKind.ABSENT),)


def mixed(rng: random.Random) -> Made:
    """Return a sentence that states one condition, and another condition not."""
    stated_name, other = rng.sample(CONDITIONS, k=2)
    text = rng.choice(MIXED).format(x=other, y=stated_name, Y=stated_name.capitalize())
    return (
        "ASSESSMENT",
        text,
        (
            Expected(category="condition", name=stated_name),
            Expected(category="condition", name=other, kind=FactKind.ABSENT),
        ),
    )
