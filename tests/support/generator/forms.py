"""Generated forms with check boxes: ticked conditions are stated, other conditions are not."""

from __future__ import annotations

import random

from tests.support.generator.cases import Expected, Made
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


def _fact(name: str, is_stated: bool) -> Expected:
    return Expected(category="condition", name=name, is_current=is_stated)
