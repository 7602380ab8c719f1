"""Generated results that are no plain numbers: titers, ordinals, words, and wrapped names."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, Made

TITERS = ("ANA", "RPR", "Rheumatoid factor")
ORDINALS = ("Urine protein", "Urine ketones", "Leukocyte esterase")
WORDS = ("Hepatitis C antibody", "HIV antibody", "Influenza A PCR", "SARS-CoV-2 RNA")
WRAPPED = (
    ("Alkaline", "Phosphatase", "U/L", (20, 400)),
    ("Thyroid Stimulating", "Hormone", "mIU/L", (1, 80)),
    ("Blood Urea", "Nitrogen", "mg/dL", (4, 120)),
    ("Alanine", "Aminotransferase", "U/L", (8, 900)),
)


def titer(rng: random.Random) -> Made:
    """Return a titer such as `ANA  <1:40`."""
    value = rng.choice(["", "", "<", ">", ">="]) + f"1:{rng.choice([8, 20, 40, 80, 320, 1280])}"
    return _row(rng, rng.choice(TITERS), value, rng.choice(["", "<1:40", "Neg <1:20"]))


def ordinal(rng: random.Random) -> Made:
    """Return an ordinal such as `Urine protein  2+`."""
    value = rng.choice(["trace", "1+", "2+", "3+", "4+", "Negative", "+++"])
    return _row(rng, rng.choice(ORDINALS), value, rng.choice(["", "Negative"]))


def word(rng: random.Random) -> Made:
    """Return a result in words such as `HIV antibody  Non-reactive`."""
    value = rng.choice(["Positive", "Negative", "Reactive", "Non-reactive", "Detected"])
    value = rng.choice([value, value.upper(), "Not detected", "Indeterminate"])
    return _row(rng, rng.choice(WORDS), value, rng.choice(["", "Negative", "Not detected"]))


def wrapped(rng: random.Random) -> Made:
    """Return a row whose name continues on the next line."""
    first, second, unit, bounds = rng.choice(WRAPPED)
    value = f"{rng.randint(*bounds)}"
    gap = rng.choice(["\t", "    "])
    text = gap.join([first, value, unit]) + f"\n{rng.choice(['', '  '])}{second}"
    fields: dict[str, str | bool] = {"value": value, "unit": unit}
    return "LABS", text, (Expected(category="lab", name=first.lower(), fields=fields),)


def _row(rng: random.Random, name: str, value: str, reference: str) -> Made:
    gap = rng.choice(["\t", "    ", ": "])
    text = f"{name}{gap}{value}"
    if reference:
        text += f"{'    ' if gap == ': ' else gap}{reference}"
    fields: dict[str, str | bool] = {"value": value}
    return "LABS", text, (Expected(category="lab", name=name.lower(), fields=fields),)
