"""The units of doses and strengths, as UCUM codes.

A piece of a product has no UCUM unit: UCUM writes a piece as an annotation in braces (`{tablet}`).
"""

from __future__ import annotations

import re
from enum import Enum, auto


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


_MASS: dict[str, tuple[str, ...]] = {
    "mg": ("mg", "mgs", "milligram", "milligrams", "milligramme", "milligrammes"),
    "ug": ("ug", "mcg", "mcgs", "ugs", "microgram", "micrograms", "microgramme", "microgrammes"),
    "g": ("g", "gm", "gms", "gram", "grams", "gramme", "grammes"),
    "ng": ("ng", "nanogram", "nanograms"),
    "meq": ("meq", "meqs", "milliequivalent", "milliequivalents"),
    "mmol": ("mmol", "mmols", "millimole", "millimoles"),
    "[IU]": ("iu", "ius", "international unit", "international units"),
    # Units of botulinum toxin or of pancrelipase are no international units.
    "{unit}": ("unit", "units"),
}
_VOLUME: dict[str, tuple[str, ...]] = {
    "mL": (
        "ml", "mls", "cc", "ccs", "milliliter", "milliliters", "millilitre", "millilitres",
    ),
    "L": ("l", "liter", "liters", "litre", "litres"),
    "{teaspoon}": ("tsp", "tsps", "teaspoon", "teaspoons", "teaspoonful", "teaspoonfuls"),
    "{tablespoon}": (
        "tbsp", "tbsps", "tablespoon", "tablespoons", "tablespoonful", "tablespoonfuls",
    ),
}  # fmt: skip
_PIECE: dict[str, tuple[str, ...]] = {
    "{tablet}": ("tablet", "tablets", "tab", "tabs", "caplet", "caplets"),
    "{capsule}": ("capsule", "capsules", "cap", "caps"),
    "{pill}": ("pill", "pills"),
    "{lozenge}": ("lozenge", "lozenges"),
    "{suppository}": ("suppository", "suppositories"),
    "{gummy}": ("gummy", "gummies"),
    "{film}": ("film", "films"),
}
_SPRAY: dict[str, tuple[str, ...]] = {
    "{puff}": ("puff", "puffs"),
    "{spray}": ("spray", "sprays"),
    "{actuation}": ("actuation", "actuations", "act"),
    "{inhalation}": ("inhalation", "inhalations", "inh", "inhs"),
}
_OTHER: dict[str, tuple[str, ...]] = {
    "{drop}": ("drop", "drops", "gtt", "gtts"),
    "{patch}": ("patch", "patches"),
    "{application}": ("application", "applications"),
    "{ampule}": ("ampule", "ampules", "ampoule", "ampoules", "amp", "amps"),
    "{vial}": ("vial", "vials"),
    "{packet}": ("packet", "packets"),
    "{sachet}": ("sachet", "sachets"),
    "{scoop}": ("scoop", "scoops"),
    "{capful}": ("capful", "capfuls"),
    "{pump}": ("pump", "pumps"),
    "{nebule}": ("neb", "nebs", "nebule", "nebules"),
    "{bag}": ("bag", "bags"),
    "%": ("%",),
}
_PER: dict[str, tuple[str, ...]] = {
    "kg": ("kg",),
    "m2": ("m2", "m²", "m^2"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "min": ("min", "mins", "minute", "minutes"),
    "d": ("d", "day", "days"),
    "{dose}": ("dose",),
}
"""What a rate or a content can refer to, besides volumes and pieces."""

_KINDS = (
    (_MASS, UnitKind.MASS),
    (_VOLUME, UnitKind.VOLUME),
    (_PIECE, UnitKind.PIECE),
    (_SPRAY, UnitKind.SPRAY),
    (_OTHER, UnitKind.OTHER),
)
_UNITS = {
    word: (code, kind) for table, kind in _KINDS for code, words in table.items() for word in words
}
_DENOMINATORS = {word: code for code, words in _PER.items() for word in words} | {
    word: code
    for word, (code, kind) in _UNITS.items()
    if kind in (UnitKind.VOLUME, UnitKind.PIECE, UnitKind.SPRAY)
}


def _any_of(words: dict[str, object]) -> str:
    return "|".join(sorted((re.escape(word) for word in words), key=len, reverse=True))


UNIT = rf"(?:{_any_of({**_UNITS})})"
"""A pattern of a unit of a dose; match in lower case, after `plain`."""
DENOMINATOR = rf"(?:{_any_of({**_DENOMINATORS})})"
PIECE = rf"(?:{_any_of({word: None for words in _PIECE.values() for word in words})})"
COUNTED = frozenset(
    word for word, (_, kind) in _UNITS.items() if kind is not UnitKind.MASS and word != "%"
) - frozenset(_VOLUME["mL"] + _VOLUME["L"])
"""The words whose number can be a fraction (`1/2 tablet`, `half a teaspoon`)."""


def unit_of(printed: str) -> tuple[str, UnitKind]:
    """Return the UCUM code and the kind of a printed unit. Raises KeyError for other words."""
    return _UNITS[printed]


def denominator_of(printed: str) -> str:
    """Return the UCUM code of what a rate refers to. Raises KeyError for other words."""
    return _DENOMINATORS[printed]


def kind_of_code(code: str | None) -> UnitKind | None:
    """Return the kind of a UCUM code that this module gives; None for a rate or a content."""
    return _KIND_OF.get(code or "")


_KIND_OF = {code: kind for table, kind in _KINDS for code in table}
