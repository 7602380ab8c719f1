"""Generated cases with the wide vocabulary, and whole pages of several sections."""

from __future__ import annotations

import random
import re

from tests.support.generator import (
    contexts,
    cues,
    lab_layouts,
    labs,
    medications,
    prescriptions,
    sentences,
    states,
    vital_tables,
    vitals,
)
from tests.support.generator.cases import Expected, FactKind, Made, Maker, Said
from tests.support.generator.medications import STOPPED, amount
from tests.support.generator.prescriptions import STYLES
from tests.support.generator.vocabulary import MANY_CONDITIONS, MANY_DRUGS, TESTS

DENIED = (*sentences.NEGATED, *cues.ANSWERED_NO)
STATED = (*sentences.STATED, *contexts.STATED_ANYWAY, *cues.ANSWERED_YES)
ASIDE = (
    *sentences.UNCERTAIN,
    *sentences.OTHERS,
    *contexts.IMAGINED,
    *contexts.DOUBTED,
    *contexts.PERSONS["family"],
    *contexts.PERSONS["other"],
    *cues.PEOPLE,
)
GAPS = ("\t", "\t", "    ", "  ")


def tests(rng: random.Random) -> Made:
    """Return one to five rows of many tests."""
    gap = rng.choice(GAPS)
    has_head, has_flag = rng.random() < 0.6, rng.random() < 0.5
    head = ["TEST", "RESULT", *(["FLAG"] if has_flag else []), "UNITS", "REFERENCE"]
    rows, facts = [head] if has_head else [], []
    taken: set[str] = set()
    for name, pattern, unit, bounds, digits, usual in rng.sample(TESTS, k=rng.randint(1, 5)):
        if pattern in taken:
            continue
        taken.add(pattern)
        value, reference = labs.result(rng, bounds, digits), labs.bounds_text(rng, usual)
        flag = rng.choice(["", *labs.FLAGS]) if has_flag else ""
        cells = [name, value, *([flag] if has_flag else []), unit, reference]
        rows.append(cells if gap == "\t" else [cell for cell in cells if cell])
        stated = {"value": value, "unit": unit, "reference_range": reference}
        fields = {**stated, "abnormal_flag": flag}
        facts.append(Expected(category="lab", name=pattern, fields=fields))
    return "LABORATORY RESULTS", "\n".join(map(gap.join, rows)), tuple(facts)


def drugs(rng: random.Random) -> Made:
    """Return one to five lines of many drugs, some of which are not taken."""
    mark = rng.choice(["", "", "- ", "\N{BULLET} ", "1. "])
    lines, facts = [], []
    for name, doses, unit in rng.sample(MANY_DRUGS, k=rng.randint(1, 5)):
        dose, style = f"{amount(rng.choice(doses))} {unit}", rng.choice(STYLES)
        route = rng.choice(["", "PO ", "by mouth "])
        line = f"{mark}{name} {dose} {route}{style}"
        pattern = rf"\b{name.lower()}"
        if rng.random() < 0.25:
            lines.append(f"{line} {rng.choice(STOPPED)}")
            facts.append(Expected(category="medication", name=pattern, kind=FactKind.ABSENT))
            continue
        lines.append(line)
        fields: dict[str, Said] = {"dose": dose, "frequency": prescriptions.fair_frequency(style)}
        facts.append(Expected(category="medication", name=pattern, fields=fields))
    return "CURRENT MEDICATIONS", "\n".join(lines), tuple(facts)


def denied(rng: random.Random) -> Made:
    """Return a denial of one of many conditions."""
    name, text = _sentence(rng, DENIED)
    return "ASSESSMENT", text, (_condition(name, FactKind.ABSENT),)


def stated(rng: random.Random) -> Made:
    """Return one of many conditions as a fact."""
    name, text = _sentence(rng, STATED)
    return "ASSESSMENT", text, (_condition(name, FactKind.CURRENT),)


def aside(rng: random.Random) -> Made:
    """Return one of many conditions that is uncertain, imagined, or another person's."""
    name, text = _sentence(rng, ASIDE)
    return "ASSESSMENT", text, (_condition(name, FactKind.ABSENT),)


def lists(rng: random.Random) -> Made:
    """Return several denied conditions and one stated condition."""
    a, b, c = rng.sample(MANY_CONDITIONS, k=3)
    frames = [*contexts.LISTS, *contexts.BOTH]
    frame = rng.choice(frames)
    text = frame.format(a=a, b=b, c=c, A=_capital(a), C=_capital(c))
    last = FactKind.CURRENT if frame in contexts.BOTH else FactKind.ABSENT
    kinds = (FactKind.ABSENT, FactKind.ABSENT, last)
    return "ASSESSMENT", text, tuple(map(_condition, (a, b, c), kinds))


def _sentence(rng: random.Random, frames: tuple[str, ...]) -> tuple[str, str]:
    name = rng.choice(MANY_CONDITIONS)
    return name, rng.choice(frames).format(x=name, X=_capital(name))


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _condition(name: str, kind: FactKind) -> Expected:
    return Expected(category="condition", name=re.escape(name.lower()), kind=kind)


SECTIONS: dict[str, tuple[Maker, ...]] = {
    "lab": (labs.table, lab_layouts.columns, lab_layouts.remarks, tests, lab_layouts.dated),
    "vital": (vitals.readings, vital_tables.flowsheet, vital_tables.listed),
    "medication": (
        drugs,
        prescriptions.table,
        prescriptions.frequency,
        states.above,
        medications.plain,
    ),
    "condition": (denied, stated, lists, sentences.mixed),
}


def page(rng: random.Random) -> Made:
    """Return a page of two to four sections, one per category."""
    chosen = rng.sample(list(SECTIONS), k=rng.randint(2, 4))
    parts: list[str] = []
    facts: list[Expected] = []
    for category in chosen:
        heading, text, stated_here = rng.choice(SECTIONS[category])(rng)
        parts.append(f"{heading}\n{text}")
        facts += stated_here
    return "CLINIC NOTE", "\n\n".join(parts), tuple(facts)
