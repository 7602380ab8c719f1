"""The steps of a prescription, and the tests of what follows at a place of the text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

from pipeline.clinical.medications.sig import (
    BETWEEN,
    DOSE,
    DURATION,
    FREQUENCY,
    GAP,
    ROUTE,
    Amount,
    kind_of,
    printed,
)

_REACH = 6
"""The most parts that may separate an amount from its frequency."""
_SUPPLY_FROM = 7
"""A count of at least this many pieces after complete directions is what is dispensed."""


class Tense(Enum):
    """What a dose means for the patient."""

    CURRENT = auto()
    OLD = auto()
    """The dose before a change."""
    TARGET = auto()
    """A dose that is planned, or reached only under a condition."""
    WRONG = auto()
    """A dose that the text corrects."""


@dataclass(slots=True)
class DoseStep:
    """One dose with its directions."""

    role: Tense
    start: int
    end: int
    dose: str | None = None
    kind: Amount | None = None
    strength: str | None = None
    route: str | None = None
    frequency: tuple[int, int] | None = None
    is_closed: bool = False
    """A frequency or a duration has followed the dose."""
    has_duration: bool = False
    has_product: bool = False
    """A form of the product (`tablets`) has followed the amount."""


@dataclass(slots=True)
class Directions:
    """What was read after a drug's name."""

    end: int
    """The end of the last explained part; without a part, the end of the name."""
    steps: list[DoseStep] = field(default_factory=list)
    unexplained: int | None = None
    """The end of the last amount without a role."""
    passed: list[tuple[int, int]] = field(default_factory=list)
    """The words that were passed without an explanation."""
    is_changed: bool = False
    """A verb of change gives the dose (`increased to 20 mg`), perhaps without the old dose."""
    is_switched: bool = False
    """The drug changes to something that is no dose (`changed to apixaban`)."""

    def frequency(self, text: str, step: DoseStep) -> str | None:
        """Return the frequency of a step as printed."""
        return printed(text[slice(*step.frequency)]) if step.frequency else None


def after_gap(text: str, at: int, limit: int) -> int:
    """Return where the next part begins."""
    gap = GAP.match(text, at, limit)
    return gap.end() if gap else at


def is_amount_next(text: str, at: int, limit: int) -> bool:
    """Return whether the next part is an amount."""
    return DOSE.match(text, after_gap(text, at, limit), limit) is not None


def is_directed(text: str, at: int, limit: int) -> bool:
    """Return whether a frequency or a duration follows, perhaps after a route or a form."""
    at = after_gap(text, at, limit)
    for _ in range(_REACH):
        if FREQUENCY.match(text, at, limit) or DURATION.match(text, at, limit):
            return True
        m = ROUTE.match(text, at, limit) or BETWEEN.match(text, at, limit)
        if m is None:
            return False
        at = after_gap(text, m.end(), limit)
    return False


def is_supply(dose: str, text: str, at: int, limit: int) -> bool:
    """Return whether a count after complete directions is what is dispensed."""
    number = re.match(r"\d+", dose)
    directed = FREQUENCY.match(text, after_gap(text, at, limit), limit)
    return number is not None and int(number[0]) >= _SUPPLY_FROM and directed is None


def explains(step: DoseStep, m: re.Match[str], limit: int, *, inside: bool) -> bool:
    """Return whether an amount only explains the dose before (`2 tablets (50 mg total)`).

    The content of a product becomes the strength of the step. `inside` means inside parentheses.
    """
    dose, text, end = m[1], m.string, m.end()
    kind = kind_of(dose)
    if kind is Amount.CONTENT:
        step.strength = step.strength or printed(dose)
        return step.kind is not Amount.CONTENT
    if step.kind is Amount.CONTENT or step.kind is kind:
        return False
    total = " total" in text[end : end + 12].lower() or text[: m.start()].rstrip().endswith("=")
    if kind is Amount.COUNT:
        is_one = re.match(r"(?:1|one|a)[ ]", dose, re.I) is not None
        return (inside and is_one) or (step.is_closed and is_supply(dose, text, end, limit))
    return inside or total or (step.kind is Amount.COUNT and not step.is_closed)


def is_strength(step: DoseStep, kind: Amount, *, inside: bool) -> bool:
    """Return whether the dose before an amount of `kind` is what the product contains."""
    if step.kind is Amount.CONTENT:
        return kind is not Amount.CONTENT
    if step.kind is Amount.MASS and kind is Amount.COUNT:
        return not inside
    return step.has_product and step.kind is Amount.MASS
