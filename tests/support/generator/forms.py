"""Generated forms with check boxes: ticked conditions are stated, other conditions are not."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, FactKind, Made
from tests.support.generator.sentences import CONDITIONS

BOXES = (
    ("[x]", "[ ]"),
    ("[X]", "[ ]"),
    ("\N{BALLOT BOX WITH CHECK}", "\N{BALLOT BOX}"),
    ("\N{BALLOT BOX WITH X}", "\N{BALLOT BOX}"),
    ("(x)", "( )"),
)


def boxes(rng: random.Random) -> Made:
    """Return three to six conditions with boxes, one per line or several per line."""
    names = rng.sample(CONDITIONS, k=rng.randint(3, 6))
    ticked = [rng.random() < 0.5 for _ in names]
    on, off = rng.choice(BOXES)
    gap = rng.choice(["\n", "\n", "   ", "\t"])
    text = gap.join(
        f"{on if is_ticked else off} {name.capitalize()}"
        for name, is_ticked in zip(names, ticked, strict=True)
    )
    return "ASSESSMENT", text, tuple(map(_fact, names, ticked))


def yes_or_no(rng: random.Random) -> Made:
    """Return two to four questions with a box for yes and a box for no."""
    names = rng.sample(CONDITIONS, k=rng.randint(2, 4))
    answers = [rng.random() < 0.5 for _ in names]
    on, off = rng.choice(BOXES)
    text = "\n".join(
        f"{name.capitalize()}  {on if answer else off} Yes  {off if answer else on} No"
        for name, answer in zip(names, answers, strict=True)
    )
    return "ASSESSMENT", text, tuple(map(_fact, names, answers))


def columns(rng: random.Random) -> Made:
    """Return a table whose columns `Yes` and `No` contain the boxes."""
    names = rng.sample(CONDITIONS, k=rng.randint(2, 5))
    answers = [rng.random() < 0.5 for _ in names]
    on, off = rng.choice(BOXES[:2])
    order = rng.choice([("Yes", "No"), ("No", "Yes")])
    lines = ["\t".join(["Condition", *order])]
    for name, answer in zip(names, answers, strict=True):
        cells = {"Yes": on if answer else off, "No": off if answer else on}
        lines.append("\t".join([name.capitalize(), *(cells[title] for title in order)]))
    facts = [
        _fact(name, answer, FactKind.ANY_TIME) for name, answer in zip(names, answers, strict=True)
    ]
    return "MEDICAL HISTORY", "\n".join(lines), tuple(facts)


def after(rng: random.Random) -> Made:
    """Return conditions whose box follows the name."""
    names = rng.sample(CONDITIONS, k=rng.randint(2, 5))
    ticked = [rng.random() < 0.5 for _ in names]
    gap = rng.choice([" ", "\t", "  "])
    lines = [
        f"{name.capitalize()}{gap}{'[x]' if is_ticked else '[ ]'}"
        for name, is_ticked in zip(names, ticked, strict=True)
    ]
    return "ASSESSMENT", "\n".join(lines), tuple(map(_fact, names, ticked))


def beside(rng: random.Random) -> Made:
    """Return two columns of boxes that a page prints side by side."""
    names = rng.sample(CONDITIONS, k=rng.randint(4, 8))
    ticked = [rng.random() < 0.5 for _ in names]
    lines = [
        f"{'[x]' if is_ticked else '[ ]'} {name.capitalize()}"
        for name, is_ticked in zip(names, ticked, strict=True)
    ]
    half = len(lines) // 2
    text = "\n".join(lines[:half]) + "\v" + "\n".join(lines[half:])
    return "ASSESSMENT", text, tuple(map(_fact, names, ticked))


def _fact(name: str, is_stated: bool, stated: FactKind = FactKind.CURRENT) -> Expected:
    kind = stated if is_stated else FactKind.ABSENT
    return Expected(category="condition", name=name, kind=kind)
