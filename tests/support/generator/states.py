"""Generated medication states that stand before or above the drug, and switches of drugs."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made
from tests.support.generator.medications import DRUGS, amount

BEFORE = (
    "Discontinue {drug} {dose} daily.",
    "Stop {drug} {dose}.",
    "Stopped {drug} {dose} daily last week.",
    "Hold {drug} {dose} until the next visit.",
    "D/C {drug} {dose}.",
    "Discontinued: {drug} {dose} daily",
    "Completed a course of {drug} {dose} in May.",
    "No longer takes {drug} {dose}.",
    "Used to take {drug} {dose} daily.",
    "Never started {drug} {dose}.",
    "Avoid {drug}.",
    "Was on {drug} {dose} daily until 2019.",
)
ABOVE = (
    "Stopped medications:",
    "Discontinued medications:",
    "STOP taking these medications:",
    "Medications on hold:",
    "Past medications:",
    "Declined by patient:",
)
SWITCHES = (
    "Switched from {old} {old_dose} to {new} {new_dose} daily.",
    "Stop {old} {old_dose}, start {new} {new_dose} daily.",
    "{Old} {old_dose} replaced by {new} {new_dose} daily.",
    "Changed {old} {old_dose} to {new} {new_dose} daily.",
    "Discontinue {old} {old_dose}; begin {new} {new_dose} daily.",
)


def before(rng: random.Random) -> Made:
    """Return a state that precedes the drug."""
    name, dose = _drug(rng)
    text = rng.choice(BEFORE).format(drug=name.lower(), dose=dose)
    return "PLAN", text, (_not_taken(name),)


def above(rng: random.Random) -> Made:
    """Return a list of one to three drugs below a state, and a list of current drugs."""
    drugs = rng.sample(DRUGS, k=rng.randint(2, 4))
    listed = [(name, f"{amount(rng.choice(doses))} {unit}") for name, doses, unit in drugs]
    bullet = rng.choice(["", "- ", "1. "])
    (current, dose), *ended = listed
    lines = ["Current medications:", f"{bullet}{current} {dose} daily", "", rng.choice(ABOVE)]
    lines += [f"{bullet}{name} {each} daily" for name, each in ended]
    taken = Expected(category="medication", name=current.lower(), fields={"dose": dose})
    return "MEDICATIONS", "\n".join(lines), (taken, *(_not_taken(name) for name, _ in ended))


def switched(rng: random.Random) -> Made:
    """Return a switch: the old drug is not taken, the new drug is."""
    (old, *_), (new, *_) = rng.sample(DRUGS, k=2)
    old_dose, new_dose = (_dose_of(rng, name) for name in (old, new))
    text = rng.choice(SWITCHES).format(
        old=old.lower(), Old=old, old_dose=old_dose, new=new.lower(), new_dose=new_dose
    )
    taken = Expected(category="medication", name=new.lower(), fields={"dose": new_dose})
    return "PLAN", text, (taken, _not_taken(old))


def _drug(rng: random.Random) -> tuple[str, str]:
    name = rng.choice(DRUGS)[0]
    return name, _dose_of(rng, name)


def _dose_of(rng: random.Random, drug: str) -> str:
    return next(
        f"{amount(rng.choice(doses))} {unit}" for name, doses, unit in DRUGS if name == drug
    )


def _not_taken(name: str) -> Expected:
    return Expected(category="medication", name=name.lower(), kind=FactKind.ABSENT)
