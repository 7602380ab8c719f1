"""Generated medication lines: strength and dose, tables, tapers, frequencies, several drugs."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made, Said
from tests.support.generator.labs import grid
from tests.support.generator.medications import DRUGS, FREQUENCIES, amount

PRODUCTS = (
    ("Metoprolol", "25 mg", "tablet", "take", "2 tablets"),
    ("Amoxicillin", "400 mg/5 mL", "suspension", "take", "7.5 mL"),
    ("Amoxicillin", "500 mg", "capsule", "take", "1 capsule"),
    ("Insulin glargine", "100 units/mL", "pen", "inject", "18 units"),
    ("Methotrexate", "2.5 mg", "tablet", "take", "6 tablets"),
    ("Acetaminophen", "160 mg/5 mL", "liquid", "give", "10 mL"),
    ("Digoxin", "125 mcg", "tablet", "take", "half a tablet"),
    ("Levothyroxine", "50 mcg", "tablet", "take", "1 tablet"),
    ("Albuterol", "90 mcg", "inhaler", "inhale", "2 puffs"),
    ("Enoxaparin", "40 mg/0.4 mL", "syringe", "inject", "40 mg"),
    ("Ibuprofen", "200 mg", "tablet", "take", "3 tablets"),
    ("Prednisone", "10 mg", "tablet", "take", "4 tablets"),
)
SIGS = (
    "{name} {strength} {form}, {verb} {dose} {frequency}",
    "{name} {strength} {form} - {verb} {dose} by mouth {frequency}",
    "{name} {strength} {form}: {verb} {dose} {frequency}",
    "{name} {strength} {form} {dose} {frequency}",
    "{name} {strength} {form}, {dose} {frequency}, #60, 3 refills",
    "{name} {strength} {form}. Sig: {verb} {dose} {frequency}. Disp: 90. Refills: 2.",
)
STYLES = (
    *FREQUENCIES, "q12h", "QHS", "qhs", "nightly", "every morning", "every 4 hours",
    "three times a day", "3 times daily", "once a week", "weekly", "every 72 hours", "q4-6h",
    "2x/day", "QID", "BID with meals", "twice a day", "every evening", "1-1-1", "0-0-1", "QOD",
    "every 6 hours as needed", "BID PRN", "q8h PRN", "once weekly on Sunday", "5 times a day",
    "every Monday", "b.i.d.", "q.d.", "t.i.d.",
)  # fmt: skip
PAIRS = (
    ("Amoxicillin-clavulanate", "875/125 mg", "BID"),
    ("Sulfamethoxazole-trimethoprim", "800/160 mg", "BID"),
    ("Hydrocodone-acetaminophen", "5/325 mg", "every 6 hours"),
    ("Losartan-hydrochlorothiazide", "50/12.5 mg", "daily"),
    ("Carbidopa-levodopa", "25/100 mg", "TID"),
)
HEADINGS = {
    "name": ("Medication", "Drug"),
    "dose": ("Dose",),
    "route": ("Route",),
    "frequency": ("Frequency", "Freq"),
    "status": ("Status",),
}
STATES = {
    "Active": "active",
    "Discontinued": "stopped",
    "On hold": "on_hold",
    "Stopped": "stopped",
    "Entered in error": "entered_in_error",
}


def strength(rng: random.Random) -> Made:
    """Return a product with its strength, and the dose taken each time."""
    name, content, form, verb, dose = rng.choice(PRODUCTS)
    frequency = rng.choice(["daily", "BID", "twice daily", "at bedtime", "every 6 hours"])
    text = rng.choice(SIGS).format(
        name=name, strength=content, form=form, verb=verb, dose=dose, frequency=frequency
    )
    fields = {"strength": content, "dose": dose, "frequency": frequency}
    return "MEDICATIONS", text, (_taken(name, **fields),)


def table(rng: random.Random) -> Made:
    """Return a table of drugs, at times with a column of states."""
    columns = ["dose", *rng.sample(["route", "frequency"], k=rng.randint(0, 2))]
    columns += ["status"] if rng.random() < 0.5 else []
    if rng.random() < 0.4:
        rng.shuffle(columns)
    rows, facts = [], []
    for name, doses, unit in rng.sample(DRUGS, k=rng.randint(2, 4)):
        dose, state = f"{amount(rng.choice(doses))} {unit}", rng.choice(list(STATES))
        frequency = rng.choice(["daily", "BID", "at bedtime", "q8h", "OD", "1-0-1"])
        cells = {"dose": dose, "route": rng.choice(["PO", "oral"]), "frequency": frequency}
        cells["status"] = state
        rows.append({"name": name, **{c: cells[c] for c in columns}})
        if "status" in columns and STATES[state] != "active":
            facts += _not_taken(name, STATES[state])
        else:
            fields = {"dose": dose}
            if "frequency" in columns:
                fields["frequency"] = frequency
            facts.append(_taken(name, **fields))
    head = {c: rng.choice(HEADINGS[c]) for c in rows[0]}
    lines = grid([head, *rows], rng.choice(["\t", "\t", "   "]))
    return "MEDICATIONS", "\n".join(lines), tuple(facts)


def frequency(rng: random.Random) -> Made:
    """Return one to four lines with frequencies of all styles."""
    lines, facts = [], []
    mark = rng.choice(["", "", "- ", "\N{BULLET} ", "1) "])
    for name, doses, unit in rng.sample(DRUGS, k=rng.randint(1, 4)):
        dose, style = f"{amount(rng.choice(doses))} {unit}", rng.choice(STYLES)
        lines.append(f"{mark}{name} {dose} {rng.choice(['', 'PO ', 'by mouth '])}{style}")
        facts.append(_taken(name, dose=dose, frequency=fair_frequency(style)))
    return "MEDICATIONS", "\n".join(lines), tuple(facts)


def fair_frequency(style: str) -> tuple[str, ...]:
    """Return the frequency with and without its condition."""
    plain = style.removesuffix(" as needed").removesuffix(" PRN").removesuffix(" with meals")
    return tuple(dict.fromkeys([style, plain]))


def taper(rng: random.Random) -> Made:
    """Return a taper of three steps, each with its place in the order."""
    name, doses, unit = rng.choice([d for d in DRUGS if len(d[1]) > 2])
    a, b, c = (f"{amount(d)} {unit}" for d in sorted(rng.sample(doses, k=3), reverse=True))
    text = rng.choice(
        [
            f"{name} {a} daily x 3 days, then {b} daily x 3 days, then {c} daily x 3 days.",
            f"{name} {a} for 5 days, {b} for 5 days, {c} for 5 days.",
            f"{name} taper: {a} daily for 1 week, {b} daily for 1 week, {c} daily for 1 week",
            f"{name} {a} daily for 4 days, followed by {b} for 4 days and {c} for 4 days.",
            f"{name}:\n{a} daily for 3 days\n{b} daily for 3 days\n{c} daily for 3 days",
            f"{name} {a} in the morning, {b} at noon and {c} at bedtime",
        ]
    )
    facts = [_taken(name, dose=dose, step=f"{at}") for at, dose in enumerate((a, b, c), start=1)]
    return "PLAN", text, tuple(facts)


def changed(rng: random.Random) -> Made:
    """Return a dose change: the new dose is taken, the old dose is kept as the old dose."""
    name, doses, unit = rng.choice(DRUGS)
    old, new = (f"{amount(d)} {unit}" for d in rng.sample(doses, k=2))
    drug = name.lower()
    text = rng.choice(
        [
            f"Increase {drug} from {old} to {new} daily.",
            f"{name} {old} increased to {new} daily.",
            f"{name} changed from {old} to {new} BID.",
            f"{name} {new} daily (was {old})",
            f"{name} {new} daily (previously {old} daily)",
            f"{name} {new} daily, up from {old}.",
            f"Titrate {drug} from {old} to {new} daily.",
            f"{name} {old} -> {new} daily",
            f"{name} {old} → {new} daily",
            f"{name} ~~{old}~~ {new} daily",
            f"Decrease {drug} to {new} daily from {old}.",
            f"We changed {drug} {old} daily to {new} daily today.",
        ]
    )
    fields: dict[str, Said] = {
        "dose": new,
        "previous_dose": ("", old),
        "status": ("", "active", "changed"),
    }
    gone = Expected(category="medication", name=drug, fields={"dose": old}, kind=FactKind.ABSENT)
    return "PLAN", text, (_taken(name, **fields), gone)


def several(rng: random.Random) -> Made:
    """Return two or three drugs in one line, among them combinations such as `875/125 mg`."""
    chosen = [
        (name, f"{amount(rng.choice(doses))} {unit}", rng.choice(["daily", "BID", "at bedtime"]))
        for name, doses, unit in rng.sample(DRUGS, k=2)
    ]
    chosen += rng.sample(PAIRS, k=rng.randint(0, 1))
    gap = rng.choice([", ", "; ", " and ", "\n"])
    text = gap.join(f"{name} {dose} {often}" for name, dose, often in chosen)
    if rng.random() < 0.3:
        text = f"Current medications include {text}."
    facts = [_taken(name, dose=dose, frequency=often) for name, dose, often in chosen]
    return "MEDICATIONS", text, tuple(facts)


def struck(rng: random.Random) -> Made:
    """Return a list in which some lines are struck through."""
    lines, facts = [], []
    for name, doses, unit in rng.sample(DRUGS, k=rng.randint(2, 4)):
        dose = f"{amount(rng.choice(doses))} {unit}"
        if rng.random() < 0.5:
            lines.append(f"~~{name} {dose} daily~~")
            facts += [_absent(name)]
        else:
            lines.append(f"{name} {dose} daily")
            facts.append(_taken(name, dose=dose))
    return "MEDICATIONS", "\n".join(lines), tuple(facts)


def ticked(rng: random.Random) -> Made:
    """Return a list in which a box shows which drugs the patient takes."""
    lines, facts = [], []
    for name, doses, unit in rng.sample(DRUGS, k=rng.randint(2, 4)):
        dose, is_ticked = f"{amount(rng.choice(doses))} {unit}", rng.random() < 0.5
        lines.append(f"{'[x]' if is_ticked else '[ ]'} {name} {dose} daily")
        facts.append(_taken(name, dose=dose) if is_ticked else _absent(name))
    return "CURRENT MEDICATIONS (check all that apply)", "\n".join(lines), tuple(facts)


def _taken(name: str, **fields: Said) -> Expected:
    return Expected(category="medication", name=name.lower(), fields=fields)


def _absent(name: str) -> Expected:
    return Expected(category="medication", name=name.lower(), kind=FactKind.ABSENT)


def _not_taken(name: str, state: str) -> list[Expected]:
    known = Expected(
        category="medication", name=name.lower(), fields={"status": state}, kind=FactKind.ASIDE
    )
    return [known, _absent(name)]
