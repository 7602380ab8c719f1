"""Generated numbers that look like a vital sign, a laboratory value or a dose, and are none."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made
from tests.support.generator.vital_tables import BP, HR, RR, SPO2, TEMP

TEXTS = (
    ("Visual acuity 20/{n} right, 20/40 left.", "vital", BP.name),
    ("Strength 5/5 in all extremities.", "vital", "."),
    ("Apgar scores {s} and 9.", "vital", BP.name),
    ("Reflexes 2/4 throughout.", "vital", BP.name),
    ("Grade {s}/6 systolic murmur.", "vital", BP.name),
    ("Room {n}, bed 2.", "vital", "."),
    ("Seen by the team at 12/08.", "vital", BP.name),
    ("She smokes {s} cigarettes per day for {n} years.", "vital", "."),
    ("Phone 555-01{n}.", "lab", "."),
    ("He has {s} children.", "lab", "."),
    ("Stage {s}/4 disease on the scan of 03/1{s}.", "vital", BP.name),
    ("The lesion measures {s} x 2 cm.", "vital", "height|weight|length"),
    ("CT at level L{s}/S1.", "lab", "."),
    ("ICD code E11.{s}.", "lab", "."),
    ("Follow up in {s} weeks.", "medication", "."),
    ("Walks {s} miles per day.", "vital", "."),
    ("I/O 2400/1{n}0.", "vital", BP.name),
    ("Ejection fraction {n}%.", "vital", SPO2.name),
    ("Hospital day {s} of 7.", "vital", "."),
    ("Version {s}.{s} of the form, page 1/2.", "vital", BP.name),
    ("Gravida {s} para 2.", "lab", "."),
    ("Score {s}/10 on the screening form.", "vital", BP.name),
)


def numbers(rng: random.Random) -> Made:
    """Return a sentence with a number that is no measurement of this kind."""
    text, category, name = rng.choice(TEXTS)
    printed = text.format(n=rng.randint(22, 78), s=rng.randint(2, 8))
    return "EXAM", printed, (Expected(category=category, name=name, kind=FactKind.ABSENT),)


def beside_vitals(rng: random.Random) -> Made:
    """Return vital signs beside other numbers, in one line."""
    upper, lower = rng.randint(98, 178), rng.randint(48, 88)
    pulse, breaths = rng.randint(50, 120), rng.randint(10, 28)
    warm = f"{rng.uniform(97, 103):.1f}"
    bp = f"{upper}/{lower}"
    text, extra = rng.choice(
        [
            (f"BP {bp} HR {pulse} RR {breaths} T {warm} pain 4/10", ["pain"]),
            (f"BP {bp} (MAP {lower + 12}), HR {pulse}, RR {breaths}, T {warm}", ["map|mean"]),
            (f"T {warm}, HR {pulse}, BP {bp}, RR {breaths}. Visual acuity 20/30.", []),
            (f"VS: BP {bp}; P {pulse}; R {breaths}; T {warm} F; GCS 15", ["gcs|glasgow"]),
            (f"08:15  BP {bp}  HR {pulse}  RR {breaths}  T {warm}  O2 2 L", ["o2|oxygen"]),
            (f"BP: {bp} mmHg | HR: {pulse} bpm | RR: {breaths} | T: {warm} F (oral)", []),
            (f"Temp {warm} Pulse {pulse} Resp {breaths} BP {bp} Ht 170 cm", ["ht|height"]),
        ]
    )
    facts = [
        Expected(category="vital", name=name, fields={"value": value})
        for name, value in (
            (BP.name, bp),
            (rf"{HR.name}|\bp\b", f"{pulse}"),
            (rf"{RR.name}|\br\b", f"{breaths}"),
            (rf"{TEMP.name}|\bt\b", warm),
        )
    ]
    free = [Expected(category="vital", name=name, kind=FactKind.FREE) for name in extra]
    return "VITALS", text, (*facts, *free)
