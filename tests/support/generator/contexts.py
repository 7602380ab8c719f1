"""Generated sentences whose cues change the time, the certainty, the person or the scope."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made, Said
from tests.support.generator.medications import DRUGS, amount
from tests.support.generator.sentences import CONDITIONS

HISTORY_OF = "History of {x}."
EARLIER = (
    HISTORY_OF,
    "{X} in 2009, resolved.",
    "Past medical history: {x} as a child.",
    "He had {x} ten years ago.",
    "Prior {x}, treated and resolved.",
    "Childhood {x}, now resolved.",
)
LASTING = ("diabetes", "hypertension", "asthma")
"""Chronic diseases: `history of` says that they are known, not that they are over."""
IMAGINED = (
    "If {x} develops, return at once.",
    "Return for signs of {x}.",
    "She is worried about {x}.",
    "Discussed the risk of {x}.",
    "Vaccinated against {x}.",
    "Call for any {x}.",
    "Screen for {x} next year.",
    "Prophylaxis against {x}.",
)
DOUBTED = (
    "Possible {x}.",
    "Probable {x}.",
    "Suspicious for {x}.",
    "Findings may represent {x}.",
    "Questionable {x}.",
    "{X} cannot be excluded.",
    "Differential includes {x}.",
    "? {x}",
    "Concerning for {x}.",
    "Likely {x}.",
)
PERSONS = {
    "family": (
        "Mother had {x}.",
        "His father died of {x}.",
        "Her sister has {x}.",
        "Brother diagnosed with {x} at 40.",
        "Family history is positive for {x}.",
        "Paternal grandfather with {x}.",
    ),
    "other": (
        "Her coworker has {x}.",
        "His roommate was diagnosed with {x}.",
        "The donor had {x}.",
        "Her classmate has {x}.",
        "Exposed to a neighbor with {x}.",
        "His caregiver was treated for {x}.",
    ),
}
STATED_ANYWAY = (
    "No change in {x}.",
    "No doubt that this is {x}.",
    "Not only {x} but more was found.",
    "{X} without complications.",
    "{X}, not well controlled.",
    "No improvement of the {x}.",
    "She has {x} and does not smoke.",
    "He has {x} but no insurance.",
    "{X} has not resolved.",
    "Tested positive for {x}.",
    "{X} is present.",
    "Known {x}.",
)
LISTS = (
    "Denies {a}, {b}, or {c}.",
    "Negative for {a}, {b} and {c}.",
    "No {a}, {b}, or {c}.",
    "There is no evidence of {a}, {b} or {c}.",
    "{A}, {b} and {c} were all ruled out.",
    "Without {a}, {b} or {c}.",
    "He never had {a}, {b} or {c}.",
)
BOTH = (
    "Denies {a} or {b}. Reports {c}.",
    "Negative for {a} and {b} but positive for {c}.",
    "No {a} or {b}; {c} is confirmed.",
    "Has {c}. No {a}. No {b}.",
    "{C} is present, {a} and {b} are absent.",
)
"""Here `{a}` and `{b}` are denied, and `{c}` is stated."""
ALLERGENS = ("penicillin", "latex", "codeine", "peanuts", "shellfish", "sulfa", "aspirin")
REACTIONS = ("hives", "rash", "anaphylaxis", "nausea", "swelling")
OTHERS_DRUGS = (
    "Her husband takes {d} {q} daily.",
    "Mother takes {d} {q}.",
    "She was given her neighbor's {d} {q}.",
    "The donor was on {d} {q}.",
    "His brother was started on {d} {q} BID.",
)


def earlier(rng: random.Random) -> Made:
    """Return a condition of the past."""
    name, frame = rng.choice(CONDITIONS), rng.choice(EARLIER)
    if frame == HISTORY_OF and name in LASTING:
        name = rng.choice([each for each in CONDITIONS if each not in LASTING])
    return _set_in(frame, name, temporality="historical")


def imagined(rng: random.Random) -> Made:
    """Return a condition that only could happen."""
    return _aside(rng, IMAGINED, certainty=("hypothetical", "possible"))


def doubted(rng: random.Random) -> Made:
    """Return a condition that is possible; no reader may publish the condition as certain."""
    return _aside(rng, DOUBTED, certainty=("possible", "hypothetical"))


def persons(rng: random.Random) -> Made:
    """Return a condition of another person."""
    person = rng.choice(list(PERSONS))
    return _aside(rng, PERSONS[person], experiencer=person)


def _aside(rng: random.Random, frames: tuple[str, ...], **fields: Said) -> Made:
    name = rng.choice(CONDITIONS)
    return _set_in(rng.choice(frames), name, **fields)


def _set_in(frame: str, name: str, **fields: Said) -> Made:
    text = frame.format(x=name, X=name.capitalize())
    return "ASSESSMENT", text, (_set_aside(name, **fields), _absent("condition", name))


def stated_anyway(rng: random.Random) -> Made:
    """Return a condition of the patient beside a word that looks like a denial."""
    name = rng.choice(CONDITIONS)
    text = rng.choice(STATED_ANYWAY).format(x=name, X=name.capitalize())
    return "ASSESSMENT", text, (Expected(category="condition", name=name),)


def lists(rng: random.Random) -> Made:
    """Return a denial of three conditions."""
    names = rng.sample(CONDITIONS, k=3)
    a, b, c = names
    text = rng.choice(LISTS).format(a=a, b=b, c=c, A=a.capitalize())
    return "ASSESSMENT", text, tuple(fact for name in names for fact in _denied(name))


def lists_and_stated(rng: random.Random) -> Made:
    """Return a denial of two conditions and a statement of a third."""
    a, b, c = rng.sample(CONDITIONS, k=3)
    text = rng.choice(BOTH).format(a=a, b=b, c=c, C=c.capitalize())
    facts = (*_denied(a), *_denied(b), Expected(category="condition", name=c))
    return "ASSESSMENT", text, facts


def other_persons_drug(rng: random.Random) -> Made:
    """Return a drug of another person."""
    name, doses, unit = rng.choice(DRUGS)
    text = rng.choice(OTHERS_DRUGS).format(d=name.lower(), q=f"{amount(rng.choice(doses))} {unit}")
    return "HISTORY", text, (_absent("medication", name.lower()),)


def allergies(rng: random.Random) -> Made:
    """Return a list of allergies, and substances that the patient tolerates."""
    names = rng.sample(ALLERGENS, k=rng.randint(2, 4))
    lines, facts = [], []
    for name in names:
        reaction, title = rng.choice(REACTIONS), name.capitalize()
        kind = rng.random()
        if kind < 0.7:
            gap = rng.choice([" - ", ": ", " (", "\t"])
            lines.append(f"{title}{gap}{reaction}" + (")" if gap == " (" else ""))
            fields: dict[str, Said] = {"reaction": reaction}
            facts.append(Expected(category="allergy", name=_stem(name), fields=fields))
            facts.append(_absent("condition", reaction))
        elif kind < 0.85:
            lines.append(rng.choice([f"Tolerates {name}.", f"No allergy to {name}."]))
            facts.append(_absent("allergy", _stem(name)))
        else:
            lines.append(title)
            facts.append(Expected(category="allergy", name=_stem(name)))
    return "ALLERGIES", "\n".join(lines), tuple(facts)


def lists_beside(rng: random.Random) -> Made:
    """Return allergies, medications or problems that a page prints side by side."""
    kinds = rng.sample(["ALLERGIES", "MEDICATIONS", "PROBLEM LIST"], k=2)
    blocks: list[str] = []
    facts: list[Expected] = []
    for kind in kinds:
        lines = [kind]
        for _ in range(rng.randint(2, 4)):
            line, fact = _item(rng, kind)
            if fact.name not in {f.name for f in facts}:
                lines.append(line)
                facts.append(fact)
        blocks.append("\n".join(lines))
    return "VISIT SUMMARY", "\v".join(blocks), tuple(facts)


def _item(rng: random.Random, kind: str) -> tuple[str, Expected]:
    if kind == "ALLERGIES":
        # Aspirin could be in both lists.
        name, reaction = rng.choice(ALLERGENS[:-1]), rng.choice(REACTIONS)
        fact = Expected(category="allergy", name=_stem(name), fields={"reaction": reaction})
        return f"{name.capitalize()} - {reaction}", fact
    if kind == "MEDICATIONS":
        drug, doses, unit = rng.choice(DRUGS)
        dose = f"{amount(rng.choice(doses))} {unit}"
        fact = Expected(category="medication", name=drug.lower(), fields={"dose": dose})
        return f"{drug} {dose} daily", fact
    name = rng.choice(CONDITIONS)
    # A problem list contains past problems too.
    return name.capitalize(), Expected(category="condition", name=name, kind=FactKind.ANY_TIME)


def _stem(name: str) -> str:
    return name.removesuffix("s")


def _set_aside(name: str, **fields: Said) -> Expected:
    return Expected(category="condition", name=name, fields=fields, kind=FactKind.ASIDE)


def _denied(name: str) -> list[Expected]:
    return [_set_aside(name, negated=True), _absent("condition", name)]


def _absent(category: str, name: str) -> Expected:
    return Expected(category=category, name=name, kind=FactKind.ABSENT)
