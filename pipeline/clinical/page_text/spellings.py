"""The comparable form of printed figures and units, and the search for such a form in a text.

This module is pure. `fold` makes only those spellings equal that mean the same to every reader;
each table gives its reason. A figure keeps its sign, its comparator and its decimals: `<0.50`,
`0.50`, `-2.5`, `2.5`, `1.0` and `10` all differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("µμ", "u"),
        "≤": "<=",
        "≥": ">=",
        "½": " 1/2",
        "¼": " 1/4",
        "¾": " 3/4",
        "×": "x",
        "\xa0": " ",
        "\n": " ",
        "\r": " ",
        "\f": " ",
        "’": "'",
        "‘": "'",
        **{raised: f"^{n}" for n, raised in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
        **{lowered: str(n) for n, lowered in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    }
)
"""Typographic variants of one sign. A raised figure stays apart: `98 ¹` is not `981`."""

NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), start=1
    )
} | {"half": "0.5", "twelve": "12"}
"""A count is printed in words or in figures (`two tablets`)."""

UNIT_SPELLINGS: dict[str, tuple[str, ...]] = {
    # Micrograms have three signs. They are never milligrams, which are a thousand times as much.
    "ug": ("mcg", "mcgs", "ugs", "microgram", "micrograms"),
    "mg": ("mgs", "milligram", "milligrams"),
    "g": ("gm", "gms", "gram", "grams"),
    "kg": ("kgs", "kilogram", "kilograms", "kilo", "kilos"),
    "ng": ("nanogram", "nanograms"),
    "lb": ("lbs", "pound", "pounds"),
    # A cubic centimetre is a millilitre, a cubic millimetre is a microlitre.
    "ml": ("mls", "cc", "ccs", "milliliter", "milliliters", "millilitre", "millilitres"),
    "ul": ("mcl", "mm3", "mm^3", "cumm", "microliter", "microliters"),
    "l": ("liter", "liters", "litre", "litres"),
    "dl": ("deciliter", "deciliters"),
    # Laboratories and pharmacies print U, IU and units for the same count.
    "u": ("unit", "units", "iu", "ius"),
    "meq": ("meqs", "milliequivalent", "milliequivalents"),
    "mmol": ("mmols", "millimole", "millimoles"),
    "min": ("mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "s": ("sec", "secs", "second", "seconds"),
    "day": ("days",),
    "week": ("weeks", "wk", "wks"),
    "%": ("percent",),
    "mmhg": ("mm hg",),
    # A rate per minute is printed as beats, breaths or bpm; the name says of what.
    "bpm": ("beats/min", "beats per minute"),
    "tablet": ("tab", "tabs", "tablets"),
    "capsule": ("cap", "caps", "capsules"),
    "puff": ("puffs",),
    "drop": ("drops", "gtt", "gtts"),
    "spray": ("sprays",),
    "patch": ("patches",),
    "teaspoon": ("tsp", "tsps", "teaspoons"),
    "tablespoon": ("tbsp", "tbsps", "tablespoons"),
    "inhalation": ("inhalations",),
    # Degrees are printed with or without the sign.
    "°f": ("f", "deg f", "degrees f", "degrees fahrenheit", "fahrenheit"),
    "°c": ("c", "deg c", "degrees c", "degrees celsius", "celsius"),
}
"""Canonical unit → its other spellings, in lower case."""

_CANONICAL = {other: unit for unit, others in UNIT_SPELLINGS.items() for other in others}
_BY_LETTER = {
    first: sorted((each[1:] for each in _CANONICAL if each[0] == first), key=len, reverse=True)
    for first in sorted({each[0] for each in _CANONICAL})
}
"""The first letter of spellings → the rest of each, longer rests first."""
# At most places no spelling begins with the letter, and then no spelling is tried.
_SPELLED = re.compile(
    r"(?:(?<![a-z0-9^/°])(?<!\d\.)|(?<=/))(?:"
    + "|".join(
        f"{first}(?:{'|'.join(map(re.escape, rests))})" for first, rests in _BY_LETTER.items()
    )
    + r")(?![a-z0-9^])"
)
_WORDS = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b")
_HALVES = re.compile(r"\bone(?P<more> and a)?[ -]half\b|\b(?:an?|one) half\b")
_COMPARATORS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(?:less|lower) than or equal to\b|\bup to\b|[<][ ]or[ ]=|=<"), "<="),
    (re.compile(r"\b(?:greater|more|higher) than or equal to\b|[>][ ]or[ ]="), ">="),
    (re.compile(r"\b(?:less|lower) than\b"), "<"),
    (re.compile(r"\b(?:greater|more|higher) than\b"), ">"),
)
"""A comparator in words is the same comparator."""
_LONE = r"(?<![a-z]\d)(?<![a-z]\d\d)"
"""Not behind the figure of a name: `SpO2: 96` is no ratio and `B12 - 450` is no range."""
_STEPS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("", re.compile(r"-+>|=+>|→"), " ; "),
    (",", re.compile(r"(?<![\d.,])(\d{1,3})\.(\d{3}),(\d+)(?![\d.,])"), r"\1\2.\3"),
    (",", re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), ""),
    (",", re.compile(r"(?<=\d),(?=\d)"), "."),
    (".", re.compile(r"(?<![\w.])\.(?=\d)"), "0."),
    ("1/2", re.compile(r"(?<![\d./])(\d+) ?(?:and )?1/2(?![\d/])"), r"\1.5"),
    ("1/2", re.compile(r"(?<![\d./])1/2(?![\d/])"), "0.5"),
    ("0.5 ", re.compile(r"\b0\.5 (?:of )?(?:an?|the) "), "0.5 "),
    ("1/4", re.compile(r"(?<![\d./])1/4(?![\d/])"), "0.25"),
    ("", re.compile(r"([<>]=?) +(?=\d)"), r"\1"),
    (" over ", re.compile(r"(?<=\d) over (?=\d)"), "/"),
    ("from ", re.compile(r"(\bfrom [<>]?=?\d[\d.]*) to "), r"\1 ; "),
    ("/", re.compile(rf"{_LONE}(?<=\d) ?/ ?(?=\d)"), "/"),
    (":", re.compile(r"(?<![\w.-])1 ?: ?(?=\d)"), "1:"),
    ("", re.compile(rf"{_LONE}(?<=\d) ?(?:-|\bto\b) ?(?=\d)"), "-"),
    (
        "10",
        re.compile(
            r"(?:\bx ?)?(?<![\d.])10 ?(?:\^|\*\*?|e)? ?\(?(3|6|9|12)\)?(?= ?/ ?(?:[u]|mc)?l)"
        ),
        r"10^\1",
    ),
    # A raised sign behind a figure marks a footnote, unless the figure is a power of ten.
    ("^", re.compile(r"(?<!(?<![\d.])10)(?<=\d)\^(?=[a-z0-9](?![a-z0-9]))"), " ^"),
    ("/", re.compile(r"(?<![a-z])(?:k|th|thou|thousand)(?=/(?:u|mc)l|/mm)"), "10^3"),
    ("", re.compile(r"[°º] ?(?=[fc]\b)"), "°"),
    ("-", re.compile(r"(?<=\d)-(?=[a-z])"), " "),
    ("", re.compile(r"(?<=\d)(?=[a-z%°])"), " "),
    ("/", re.compile(r"(?<=[a-z0-9%])[ ]?/[ ]?(?=[a-z])"), "/"),
    (" per ", re.compile(r"\b(ug|mg|mcg|g|u|units?|meq|ml) per (?=[a-z\d])"), r"\1/"),
    ("", re.compile(r"~~|[()\[\]|*]"), " "),
)
"""Figures: an arrow is no comparator; a comma groups thousands before three digits, and is a
decimal comma otherwise; `.5` is `0.5`; blanks inside a range, a ratio or a power mean nothing.

The first text of a step is part of all that its pattern matches: most texts need few steps."""
_BLANKS = re.compile(r"[ ]*\t[ \t]*|  +")


@lru_cache(maxsize=4_096)
def fold(text: str) -> str:
    """Return the comparable form of a text; a TAB between cells stays a TAB."""
    found = text.translate(_SIGNS).lower()
    if len(found) > 3:
        for pattern, sign in _COMPARATORS:
            found = pattern.sub(sign, found)
        if "half" in found:
            found = _HALVES.sub(lambda m: "1.5" if m["more"] else "0.5", found)
        found = _WORDS.sub(lambda m: NUMBER_WORDS[m.group()], found)
    for needed, pattern, form in _STEPS:
        if needed in found:
            found = pattern.sub(form, found)
    found = _SPELLED.sub(lambda m: _CANONICAL[m.group()], found)
    return _BLANKS.sub(lambda m: "\t" if "\t" in m.group() else " ", found).strip()


def places(needle: str, hay: str) -> Iterator[tuple[int, int]]:
    """Yield the places of a folded text in another folded text, whole figures and words only."""
    at = hay.find(needle) if needle else -1
    while at >= 0:
        if _begins(needle, hay, at) and _ends(needle, hay, at + len(needle)):
            yield at, at + len(needle)
        at = hay.find(needle, at + 1)


def occurs(needle: str, hay: str) -> bool:
    """Return whether a folded text occurs in another folded text."""
    return next(places(needle, hay), None) is not None


_BEFORE_FIGURE = re.compile(r"(?:[<>]=?|~|\d[-.:/^]|(?:^|[^\w)%\]])[-+])$")
"""What makes a figure another figure: a comparator, a sign, or the rest of a longer figure."""
_AFTER_FIGURE = re.compile(r"\d|[-.:/^]\d|\+|\^")
_AFTER_WORD = re.compile(r"\w|/(?!(?:day|dose|d)\b)[a-z0-9]|\^")


def _begins(needle: str, hay: str, at: int) -> bool:
    before = hay[max(0, at - 3) : at]
    if needle[0].isdigit():
        return not before[-1:].isalnum() and not _BEFORE_FIGURE.search(before)
    if needle[0].isalnum():
        return not before[-1:].isalnum() and not before.endswith(("/", "^"))
    return True


def _ends(needle: str, hay: str, end: int) -> bool:
    after = hay[end : end + 6]
    if needle[-1].isdigit():
        return not _AFTER_FIGURE.match(after)
    if needle[-1].isalnum():
        return not _AFTER_WORD.match(after)
    return True
