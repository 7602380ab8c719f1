"""Generated medication lines: plain sigs, steps, dose changes, strengths, and states."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made

DRUGS = (
    ("Lisinopril", (5, 10, 20, 40), "mg"),
    ("Metoprolol", (12.5, 25, 50, 100), "mg"),
    ("Warfarin", (1, 2.5, 5, 7.5), "mg"),
    ("Prednisone", (5, 10, 20, 40, 60), "mg"),
    ("Gabapentin", (100, 300, 600), "mg"),
    ("Furosemide", (20, 40, 80), "mg"),
    ("Levothyroxine", (25, 50, 75, 88, 112), "mcg"),
    ("Amlodipine", (2.5, 5, 10), "mg"),
    ("Apixaban", (2.5, 5), "mg"),
    ("Sertraline", (25, 50, 100), "mg"),
)
FREQUENCIES = (
    "daily",
    "BID",
    "TID",
    "once daily",
    "twice daily",
    "every 8 hours",
    "at bedtime",
    "OD",
    "BD",
    "TDS",
    "QDS",
    "q6h",
    "1-0-1",
    "every other day",
)
STOPPED = (
    "(discontinued 01/2024)",
    "- stopped",
    "- patient not taking",
    "[held]",
    "- on hold",
    "- entered in error",
    "- declined by patient",
    "(never started)",
)


def amount(number: float) -> str:
    """Return a number as prescriptions print it."""
    return f"{number:g}"


def plain(rng: random.Random) -> Made:
    """Return a line such as `Lisinopril 10 mg PO daily`."""
    name, doses, unit = rng.choice(DRUGS)
    dose, frequency = f"{amount(rng.choice(doses))} {unit}", rng.choice(FREQUENCIES)
    route = rng.choice(["", " PO", " by mouth"])
    text = f"{name} {dose}{route} {frequency}"
    return "MEDICATIONS", text, (_taken(name, dose=dose, frequency=frequency),)


def changed(rng: random.Random) -> Made:
    """Return a dose change: the new dose is current, the old dose is not."""
    name, doses, unit = rng.choice(DRUGS)
    old, new = (f"{amount(d)} {unit}" for d in rng.sample(doses, k=2))
    frequency = rng.choice(["daily", "BID"])
    drug = name.lower()
    text = rng.choice(
        [
            f"Increase {drug} from {old} to {new} {frequency}.",
            f"{name} {old}, increased to {new} {frequency}.",
            f"{name} decreased to {new} from {old} {frequency}.",
            f"Change {drug} {old} to {new} {frequency}.",
            f"{name} dose reduced from {old} {frequency} to {new} {frequency}.",
        ]
    )
    return "PLAN", text, (_taken(name, dose=new), _not_taken(name, dose=old))


def steps(rng: random.Random) -> Made:
    """Return a taper or a split dose: every step is taken."""
    name, doses, unit = rng.choice([d for d in DRUGS if len(d[1]) > 2])
    first, second = (f"{amount(d)} {unit}" for d in rng.sample(doses, k=2))
    text = rng.choice(
        [
            f"{name} {first} in the morning and {second} at bedtime.",
            f"{name} {first} AM, {second} PM.",
            f"{name} taper: {first} x 2 days, {second} x 2 days.",
            f"{name} {first} daily for 3 days, then {second} daily for 3 days.",
            f"{name} {first} on Mondays and {second} on all other days.",
        ]
    )
    return "PLAN", text, (_taken(name, dose=first), _taken(name, dose=second))


def ended(rng: random.Random) -> Made:
    """Return a medication that the patient does not take."""
    name, doses, unit = rng.choice(DRUGS)
    dose = f"{amount(rng.choice(doses))} {unit}"
    text = f"{name} {dose} daily {rng.choice(STOPPED)}"
    return "MEDICATIONS", text, (_not_taken(name),)


def others(rng: random.Random) -> Made:
    """Return a medication that is conditional, planned, or another person's."""
    name, doses, unit = rng.choice(DRUGS)
    drug, dose = name.lower(), f"{amount(rng.choice(doses))} {unit}"
    text = rng.choice(
        [
            f"Consider starting {drug} {dose} daily.",
            f"If symptoms persist, start {drug} {dose} daily.",
            f"Patient declined {drug} {dose} daily.",
            f"His wife takes {drug} {dose} daily.",
            f"The patient's mother is on {drug} {dose} daily.",
            f"Do not exceed {drug} {dose} per day.",
            f"Could not tolerate {drug} {dose}.",
        ]
    )
    return "PLAN", text, (_not_taken(name),)


def _taken(name: str, **fields: str) -> Expected:
    return Expected(category="medication", name=name.lower(), fields=fields)


def _not_taken(name: str, **fields: str) -> Expected:
    return Expected(category="medication", name=name.lower(), fields=fields, kind=FactKind.ABSENT)
