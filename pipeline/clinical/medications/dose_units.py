"""The printed units of doses and strengths, and what each unit counts.

`clinical.units` gives the UCUM code. UCUM writes a piece of a product as an annotation in braces
(`{tablet}`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum, auto

from pipeline.clinical.units import UnitContext, ucum_code


class UnitKind(Enum):
    """What a unit counts; a daily dose multiplies only kinds that fit."""

    MASS = auto()
    """A mass, an amount of substance, or a count of activity."""
    VOLUME = auto()
    PIECE = auto()
    """A solid piece of a product: a tablet, a capsule, a suppository."""
    SPRAY = auto()
    """One release of a device: a puff, a spray, an actuation."""
    OTHER = auto()
    """A count that has no fixed content: a drop, an application, a patch."""


_SPOONS = (
    "tsp", "tsps", "teaspoon", "teaspoons", "teaspoonful", "teaspoonfuls", "tbsp", "tbsps",
    "tablespoon", "tablespoons", "tablespoonful", "tablespoonfuls",
)  # fmt: skip
_WORDS: dict[UnitKind, tuple[str, ...]] = {
    # `U` is left out: a reader or a scanner takes the letter for a zero (`10U`).
    UnitKind.MASS: (
        "mg", "mgs", "milligram", "milligrams", "mcg", "mcgs", "ug", "ugs", "microgram",
        "micrograms", "g", "gm", "gms", "gram", "grams", "ng", "nanogram", "nanograms", "meq",
        "meqs", "milliequivalent", "milliequivalents", "mmol", "mmols", "millimole", "millimoles",
        "iu", "unit", "units", "international unit", "international units",
    ),
    UnitKind.VOLUME: (
        "ml", "mls", "cc", "ccs", "milliliter", "milliliters", "millilitre", "millilitres", "l",
        "liter", "liters", "litre", "litres", *_SPOONS,
    ),
    UnitKind.PIECE: (
        "tablet", "tablets", "tab", "tabs", "caplet", "caplets", "capsule", "capsules", "cap",
        "caps", "pill", "pills", "lozenge", "lozenges", "suppository", "suppositories", "gummy",
        "gummies", "film", "films",
    ),
    UnitKind.SPRAY: (
        "puff", "puffs", "spray", "sprays", "actuation", "actuations", "act", "inhalation",
        "inhalations", "inh", "inhs",
    ),
    UnitKind.OTHER: (
        "drop", "drops", "gtt", "gtts", "patch", "patches", "application", "applications",
        "ampule", "ampules", "ampoule", "ampoules", "amp", "amps", "vial", "vials", "packet",
        "packets", "sachet", "sachets", "scoop", "scoops", "capful", "capfuls", "pump", "pumps",
        "neb", "nebs", "nebule", "nebules", "bag", "bags",
    ),
}  # fmt: skip
_PER = (
    "kg", "m2", "h", "hr", "hrs", "hour", "hours", "min", "mins", "minute", "minutes", "d", "day",
    "days", "dose",
)  # fmt: skip
"""What a rate or a content can refer to, besides volumes and pieces."""


def _code(word: str) -> str:
    code = ucum_code(word, context=UnitContext.MEDICATION)
    if code is None and (behind := ucum_code(f"mg/{word}", context=UnitContext.MEDICATION)):
        code = behind.partition("/")[2]
    if code is None:
        raise KeyError(word)
    return code


_UNITS = {word: (_code(word), kind) for kind, words in _WORDS.items() for word in words}
_DENOMINATORS = {word: _code(word) for word in _PER} | {
    word: code
    for word, (code, kind) in _UNITS.items()
    if kind not in (UnitKind.MASS, UnitKind.OTHER)
}


def _any_of(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


UNIT = rf"(?:{_any_of(_UNITS)})"
"""A pattern of a unit of a dose; match in lower case, after `amounts.plain`."""
CONTENT_UNIT = rf"(?:{UNIT}|%)"
RATE_UNIT = rf"(?:{_any_of(_PER)})"
"""What a dose can be per: a weight, an area, a time. A dose per volume is a content."""
DENOMINATOR = rf"(?:{_any_of(_DENOMINATORS)})"
PIECE = rf"(?:{_any_of(_WORDS[UnitKind.PIECE])})"
COUNTED = frozenset(_SPOONS).union(
    *(_WORDS[kind] for kind in (UnitKind.PIECE, UnitKind.SPRAY, UnitKind.OTHER))
)
"""The words whose number can be a fraction (`1/2 tablet`, `half a teaspoon`)."""


def unit_of(printed: str) -> str:
    """Return the UCUM code of a printed unit. Raises KeyError for other words."""
    return "%" if printed == "%" else _UNITS[printed][0]


def denominator_of(printed: str) -> str:
    """Return the UCUM code of the unit behind `per`, as `kg`. Raises KeyError for other words."""
    return _DENOMINATORS[printed]


def kind_of_code(code: str | None) -> UnitKind | None:
    """Return the kind of a UCUM code that `unit_of` gives; None for a rate or a content."""
    return _KIND_OF.get(code or "")


_KIND_OF = dict(_UNITS.values())
