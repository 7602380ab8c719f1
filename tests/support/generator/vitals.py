"""Generated vital signs: one or several readings, in a list or in a sentence."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.generator.cases import Expected, Made


@dataclass(frozen=True, kw_only=True)
class Sign:
    """One vital sign: its printed names, the pattern of its published name, and its values."""

    printed: tuple[str, ...]
    name: str
    units: tuple[str, ...]
    value: Callable[[random.Random], str]


SIGNS = (
    Sign(
        printed=("BP", "Blood pressure", "B/P"),
        name=r"\bbp\b|b/p|blood pressure",
        units=("", " mmHg"),
        value=lambda rng: f"{rng.randint(84, 190)}/{rng.randint(44, 80)}",
    ),
    Sign(
        printed=("HR", "Pulse", "Heart rate"),
        name=r"\bhr\b|pulse|heart rate",
        units=("", " bpm"),
        value=lambda rng: f"{rng.randint(42, 150)}",
    ),
    Sign(
        printed=("RR", "Resp", "Respiratory rate"),
        name=r"\brr\b|resp",
        units=("", "/min"),
        value=lambda rng: f"{rng.randint(9, 34)}",
    ),
    Sign(
        printed=("Temp", "Temperature"),
        name="temp",
        units=(" F", " °F"),
        value=lambda rng: f"{rng.uniform(96, 104):.1f}",
    ),
    Sign(
        printed=("SpO2", "O2 sat"),
        name="spo2|o2 sat|oxygen",
        units=("%",),
        value=lambda rng: f"{rng.randint(81, 100)}",
    ),
)


def readings(rng: random.Random) -> Made:
    """Return a line with two to five signs."""
    signs = rng.sample(SIGNS, k=rng.randint(2, 5))
    values = [sign.value(rng) for sign in signs]
    colon, gap = rng.choice([" ", ": "]), rng.choice([", ", "  ", "\n", "; ", " | "])
    text = gap.join(
        f"{rng.choice(sign.printed)}{colon}{value}{rng.choice(sign.units)}"
        for sign, value in zip(signs, values, strict=True)
    )
    return "VITALS", text, tuple(map(_fact, signs, values))


def repeated(rng: random.Random) -> Made:
    """Return two readings of one sign, both of today."""
    sign = rng.choice(SIGNS)
    first, second = sign.value(rng), sign.value(rng)
    name, unit = rng.choice(sign.printed), rng.choice(sign.units)
    text = rng.choice(
        [
            f"{name} {first}{unit}, repeat {second}{unit}",
            f"{name} {first}{unit}; recheck {second}{unit}",
            f"{name} {first}{unit} lying, {second}{unit} standing",
            f"{name} at 08:00 {first}{unit}\n{name} at 12:00 {second}{unit}",
        ]
    )
    return "VITALS", text, (_fact(sign, first), _fact(sign, second))


def _fact(sign: Sign, value: str) -> Expected:
    return Expected(category="vital", name=sign.name, fields={"value": value})
