"""Generated regimens: infusions, ranges, words, several lines, brands, and reasons of an end."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made, Said
from tests.support.generator.medications import DRUGS, amount

LINES: tuple[tuple[str, str, dict[str, Said]], ...] = (
    ("Heparin 1,000 units/hr IV", "heparin", {"dose": "1,000 units/hr"}),
    ("Norepinephrine 0.05 mcg/kg/min IV", "norepinephrine", {"dose": "0.05 mcg/kg/min"}),
    ("Fentanyl 25 mcg/hr patch every 72 hours", "fentanyl", {"frequency": "every 72 hours"}),
    ("Morphine 2-4 mg IV q4h PRN pain", "morphine", {"dose": "2-4 mg"}),
    ("Oxycodone 5 mg 1-2 tablets q6h PRN", "oxycodone", {"dose": ("1-2 tablets", "1-2 tablets")}),
    ("Albuterol inhaler 2 puffs q4h PRN", "albuterol", {"dose": "2 puffs"}),
    ("Vitamin D3 2000 units daily", "vitamin d3?", {"dose": "2000 units", "frequency": "daily"}),
    ("Aspirin EC 81 mg daily", "aspirin", {"dose": "81 mg", "frequency": "daily"}),
    ("Metformin ER 500 mg BID", "metformin", {"dose": "500 mg", "frequency": "BID"}),
    ("Toprol XL 50 mg daily", "toprol|metoprolol", {"dose": "50 mg", "frequency": "daily"}),
    ("Lantus 22 units at bedtime", "lantus|glargine", {"dose": "22 units"}),
    ("Insulin lispro 5 units TID with meals", "lispro", {"dose": "5 units"}),
    ("Ceftriaxone 1 g IV q24h x 7 days", "ceftriaxone", {"dose": "1 g", "frequency": "q24h"}),
    ("Azithromycin 500 mg day 1, then 250 mg daily x 4 days", "azithromycin", {"dose": "500 mg"}),
    ("Potassium chloride 20 mEq daily", "potassium chloride", {"dose": "20 mEq"}),
    ("Prednisone 10 mg (2 tablets) daily", "prednisone", {"frequency": "daily"}),
    ("Timolol 0.5% 1 drop each eye BID", "timolol", {"dose": "1 drop", "frequency": "BID"}),
    ("Hydrocortisone 1% cream to rash BID", "hydrocortisone", {"frequency": "BID"}),
    ("Epinephrine 0.3 mg IM once", r"\bepinephrine", {"dose": "0.3 mg"}),
    ("Levothyroxine 0.075 mg daily", "levothyroxine", {"dose": "0.075 mg"}),
    ("Digoxin 0.125mg daily", "digoxin", {"dose": "0.125mg", "frequency": "daily"}),
    ("Furosemide 40mg PO BID", "furosemide", {"dose": "40mg", "frequency": "BID"}),
    ("Enoxaparin 1 mg/kg SC q12h", "enoxaparin", {"dose": "1 mg/kg", "frequency": "q12h"}),
    ("Acetaminophen 650 mg q6h PRN, max 3 g/day", "acetaminophen", {"dose": "650 mg"}),
    ("Lorazepam 0.5 to 1 mg at bedtime PRN", "lorazepam", {"dose": "0.5 to 1 mg"}),
)  # fmt: skip
ENDS = (
    ("stopped", "{x} {d} daily, stopped due to cough"),
    ("stopped", "{x} {d} daily - discontinued by cardiology"),
    ("stopped", "{x} {d} daily (self-discontinued last week)"),
    ("stopped", "{x} {d} was stopped at the last visit."),
    ("stopped", "Took {x} {d} until March."),
    ("stopped", "Finished a 7-day course of {x} {d} yesterday."),
    ("stopped", "{x} {d} daily: completed"),
    ("stopped", "She came off {x} {d} in 2021."),
    ("stopped", "Off {x} since May."),
    ("on_hold", "{x} {d} daily, held for surgery"),
    ("on_hold", "Holding {x} {d} given the kidney injury."),
    ("on_hold", "{x} {d} daily - paused"),
    ("on_hold", "{x} {d} is on hold until the culture is back."),
    ("not_started", "{x} {d} daily - never filled"),
    ("not_started", "Prescribed {x} {d} but never took any."),
    ("not_started", "She declined {x} {d}."),
    ("not_started", "Refuses {x}."),
    ("not_started", "{x} was offered and declined."),
    ("planned", "Plan to start {x} {d} next month."),
    ("planned", "Will begin {x} {d} daily after the biopsy."),
    ("planned", "We discussed starting {x} {d}."),
    ("planned", "Could consider {x} {d} if no better."),
    ("planned", "May need {x} {d} later."),
    ("entered_in_error", "{x} {d} daily - entered in error"),
    ("entered_in_error", "{x} {d} daily (wrong patient)"),
)
GOES_ON = (
    "Continue {x} {d} daily.",
    "Restarted {x} {d} daily.",
    "{x} {d} daily, refilled today.",
    "Tolerating {x} {d} daily without side effects.",
    "Resume {x} {d} daily.",
    "{x} {d} daily - do not stop without advice.",
    "Started {x} {d} daily today.",
    "Has been taking {x} {d} daily since 2019.",
    "Remains on {x} {d} daily.",
    "Good response to {x} {d} daily.",
)
CORRECT = {
    "stopped": ("stopped", "not_started"),
    "on_hold": ("on_hold",),
    "not_started": ("not_started", "stopped"),
    "planned": ("planned", "not_started"),
    "entered_in_error": ("entered_in_error",),
}
"""Two states that a reader can fairly tell apart or not."""
SECTIONS = (
    ("CONTINUE:", "active"),
    ("START taking:", "active"),
    ("STOP taking:", "stopped"),
    ("HOLD:", "on_hold"),
    ("Discontinued:", "stopped"),
    ("Home medications:", "active"),
    ("Medications stopped during this stay:", "stopped"),
    ("Unchanged medications:", "active"),
)


def lines(rng: random.Random) -> Made:
    """Return one to four lines of unusual regimens."""
    mark = rng.choice(["", "- ", "\N{BULLET} "])
    chosen = rng.sample(LINES, k=rng.randint(1, 4))
    facts = [Expected(category="medication", name=name, fields=f) for _, name, f in chosen]
    if any("azithromycin" in name for _, name, _ in chosen):
        more: dict[str, Said] = {"dose": "250 mg"}
        facts.append(Expected(category="medication", name="azithromycin", fields=more))
    return "MEDICATIONS", "\n".join(mark + line for line, *_ in chosen), tuple(facts)


def ends(rng: random.Random) -> Made:
    """Return a drug that is not taken, with the state that the words say."""
    state, frame = rng.choice(ENDS)
    name, doses, unit = rng.choice(DRUGS)
    text = frame.format(x=name, d=f"{amount(rng.choice(doses))} {unit}")
    stated: dict[str, Said] = {"status": CORRECT[state]}
    return (
        "MEDICATIONS" if frame.startswith("{x}") else "PLAN",
        text,
        (
            Expected(category="medication", name=name.lower(), fields=stated, kind=FactKind.ASIDE),
            Expected(category="medication", name=name.lower(), kind=FactKind.ABSENT),
        ),
    )


def goes_on(rng: random.Random) -> Made:
    """Return a drug that is taken, beside a word that looks like an end."""
    name, doses, unit = rng.choice(DRUGS)
    dose = f"{amount(rng.choice(doses))} {unit}"
    text = rng.choice(GOES_ON).format(x=name, d=dose)
    fields: dict[str, Said] = {"dose": dose, "frequency": "daily"}
    return "PLAN", text, (Expected(category="medication", name=name.lower(), fields=fields),)


def sections(rng: random.Random) -> Made:
    """Return two or three lists under headings that state what happens with the drugs."""
    chosen = rng.sample(SECTIONS, k=rng.randint(2, 3))
    drugs = rng.sample(DRUGS, k=2 * len(chosen))
    blocks, facts = [], []
    for number, (heading, state) in enumerate(chosen):
        rows = [heading]
        for name, doses, unit in drugs[2 * number : 2 * number + rng.randint(1, 2)]:
            dose = f"{amount(rng.choice(doses))} {unit}"
            rows.append(f"{name} {dose} daily")
            is_taken = state == "active"
            fields: dict[str, Said] = {"dose": dose} if is_taken else {}
            kind = FactKind.CURRENT if is_taken else FactKind.ABSENT
            facts.append(
                Expected(category="medication", name=name.lower(), fields=fields, kind=kind)
            )
        blocks.append("\n".join(rows))
    return "DISCHARGE MEDICATIONS", "\n\n".join(blocks), tuple(facts)


def several_lines(rng: random.Random) -> Made:
    """Return prescriptions whose directions follow on the next lines."""
    blocks, facts = [], []
    for name, doses, unit in rng.sample(DRUGS, k=rng.randint(1, 3)):
        strength = f"{amount(rng.choice(doses))} {unit}"
        count = rng.choice(["1 tablet", "2 tablets"])
        often = rng.choice(["daily", "twice daily", "at bedtime"])
        first = rng.choice([f"{name} {strength} tablet", f"{name} {strength} oral tablet"])
        sig = rng.choice([f"Take {count} by mouth {often}", f"Sig: {count} PO {often}"])
        more = rng.choice(["", "\n  Disp: 30 Refills: 2", "\n  Dispense 90"])
        blocks.append(f"{first}\n  {sig}{more}")
        fields: dict[str, Said] = {"strength": strength, "dose": count, "frequency": often}
        facts.append(Expected(category="medication", name=name.lower(), fields=fields))
    return "MEDICATIONS", "\n".join(blocks), tuple(facts)
