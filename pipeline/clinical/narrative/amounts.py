"""Numbers with comparator, sign and unit, as a sentence or an attribute states them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from pipeline.clinical.narrative.text import SentenceToken, starts_of, tokens_of, words_of

_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_PLAIN = re.compile(r"(?:0|[1-9][0-9]*)?\.[0-9]+|0|[1-9][0-9]*")
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        words_of("one two three four five six seven eight nine ten eleven twelve"), start=1
    )
} | {"half": "0.5"}
_ORDINAL_WORDS = {
    word: str(number)
    for number, word in enumerate(words_of("first second third fourth fifth"), start=1)
}
ORDINAL_JOIN = "th"
"""The join of an ordinal number: the second dose is not two doses."""
_COMPARATORS = {
    tuple(phrase.split(" ")): sign
    for sign, phrases in {
        "<=": "<=|less than or equal to|no more than|not more than|at most",
        ">=": ">=|greater than or equal to|at least|no less than|not less than",
        "<": "<|less than|below|under|lower than",
        ">": ">|greater than|more than|above|over|higher than",
    }.items()
    for phrase in phrases.split("|")
}
_COMPARATOR_STARTS = starts_of(_COMPARATORS)
_UNIT_NAMES = {
    name: unit
    for unit, names in {
        "mg": "mg mgs milligram milligrams",
        "mcg": "mcg ug microgram micrograms",
        "g": "g gram grams gm",
        "kg": "kg kgs kilogram kilograms",
        "ml": "ml milliliter milliliters millilitre millilitres",
        "l": "l liter liters litre litres",
        "%": "% percent",
        "mmhg": "mmhg millimetersofmercury millimetresofmercury",
        "permin": "bpm /min beatsperminute beats/min beats/minute breathsperminute breaths/min"
        " breaths/minute perminute /minute",
        "degf": "f °f degf degreesf degreesfahrenheit °fahrenheit fahrenheit",
        "degc": "c °c degc degreesc degreescelsius °celsius celsius",
        "unit": "unit units u",
        "iu": "iu internationalunit internationalunits",
        "tablet": "tablet tablets tab tabs",
        "capsule": "capsule capsules cap caps",
        "puff": "puff puffs",
        "drop": "drop drops gtt gtts",
        "spray": "spray sprays",
        "patch": "patch patches",
        "lb": "lb lbs pound pounds",
        "inch": "in inch inches",
        "cm": "cm centimeter centimeters centimetre centimetres",
        "meq": "meq milliequivalent milliequivalents",
        "mg/dl": "mg/dl milligramsperdeciliter mgperdl",
        "g/dl": "g/dl gramsperdeciliter",
        "mmol/l": "mmol/l millimolesperliter",
        "day": "day days",
        "week": "week weeks",
        "hour": "hour hours hr hrs",
        "month": "month months",
        "min": "min minute minutes",
        "second": "second seconds sec secs s",
    }.items()
    for name in names.split(" ")
}
_WORDS_OF_UNITS = {
    word + ending: sign
    for sign, words in {
        "mg": "milligram", "mcg": "microgram", "g": "gram", "ng": "nanogram", "pg": "picogram",
        "kg": "kilogram", "l": "liter|litre", "dl": "deciliter|decilitre",
        "ml": "milliliter|millilitre", "ul": "microliter|microlitre", "mmol": "millimole",
        "umol": "micromole", "nmol": "nanomole", "meq": "milliequivalent", "u": "unit",
        "iu": "international unit", "miu": "milli-international unit|milliinternational unit",
        "m2": "square meter|square metre|meter squared", "mm": "millimeter|millimetre",
        "hr": "hour", "min": "minute",
    }.items()
    for word in words.split("|")
    for ending in ("", "s")
}  # fmt: skip
_COMMON_UNITS = (
    "mmol/l meq/l mg/dl g/dl g/l mg/l ng/ml pg/ml ug/l ug/dl ug/ml u/l iu/l miu/l miu/ml mmol/mol"
    " umol/l nmol/l pmol/l kg/m^2 kg/m2 mg/g mg/kg mg/ml mcg/ml mcg/kg ml/hr mg/hr k/ul cells/ul"
    " 10^3/ul 10^9/l 10^6/ul ml/min ml/min/1.73m2 ml/min/1.73m^2 mm/hr fl /hpf"
)
_COMMON = frozenset(_COMMON_UNITS.split(" "))
_ONLY_CITED = frozenset({"in", "c", "f", "u", "s", "l", "day", "days", "cap", "caps"})
_RANGES = frozenset({"range", "ranges", "interval", "limits"})
_LONGEST = 9


@dataclass(frozen=True, kw_only=True)
class StatedAmount:
    """One number, or two of a range, a ratio or a blood pressure."""

    printed: str
    first: str
    second: str = ""
    join: str = ""
    """`-` range, `/` pair, `:` ratio, `+` ordinal, empty for one number."""
    comparator: str = ""
    negative: bool = False
    unit: str = ""
    """Unit in one spelling; empty without a unit."""

    def equals(self, other: StatedAmount) -> bool:
        """Return whether both state the same number, whatever the units."""
        return (
            (self.join, self.comparator, self.negative)
            == (other.join, other.comparator, other.negative)
            and same_number(self.first, other.first)
            and (not self.second or same_number(self.second, other.second))
        )


def number_of(printed: str) -> Decimal | None:
    """Return the value of a number; None if the decimal sign is not certain."""
    if _THOUSANDS.fullmatch(printed):
        printed = printed.replace(",", "")
    elif not _PLAIN.fullmatch(printed):
        return None
    try:
        return Decimal(printed)
    except InvalidOperation:
        return None


def same_number(a: str, b: str) -> bool:
    """Return whether two printed numbers are equal; `7` equals `7.0`."""
    if a == b:
        return True
    first, second = number_of(a), number_of(b)
    return first is not None and first == second


def unit_of(printed: str | None) -> str:
    """Return a unit in one spelling."""
    joined = "".join(t.text for t in tokens_of(printed or ""))
    joined = joined.replace("10*", "10^")
    return _UNIT_NAMES.get(joined, joined.replace("m^2", "m2"))


def read_amount(
    tokens: Sequence[SentenceToken], at: int, units: Iterable[str]
) -> tuple[StatedAmount, int] | None:
    """Return the amount that begins at a token, and the token after it.

    `units` are the units of the cited entities, in one spelling.
    """
    begin = at
    ordinal = _ordinal(tokens, at)
    if ordinal is not None:
        return ordinal, at + 1
    comparator, at = _comparator(tokens, at)
    negative = False
    if _is_sign(tokens, at):
        negative, at = tokens[at].text == "-", at + 1
    first = _number(tokens, at)
    if first is None:
        return None
    at += 1
    known = frozenset(units)
    join, second = "", ""
    unit, after = _unit(tokens, at, known)
    if not unit and not _is_change(tokens, begin, at):
        join, second, at = _second(tokens, at)
        unit, after = _unit(tokens, at, known)
    elif not unit:
        # "From 50 to 25 mg" are two amounts with one unit.
        unit, after = _unit(tokens, at + 2, known)[0], at
    elif _is_range(tokens, begin):
        join, second, at = _second(tokens, after)
        other, end = _unit(tokens, at, known)
        # "A range of 4.0% to 5.6%" is one range; "10 mg to 20 mg" are two amounts.
        join, second, at = (join, second, end) if join == "-" and other == unit else ("", "", after)
    else:
        at = after
    at = max(at, after)
    printed = " ".join(t.text for t in tokens[begin:at])
    return (
        StatedAmount(
            printed=printed,
            first=first,
            second=second,
            join=join,
            comparator=comparator,
            negative=negative,
            unit=unit,
        ),
        at,
    )


def _is_change(tokens: Sequence[SentenceToken], begin: int, at: int) -> bool:
    """Return whether a number at `begin` is the first of `from 50 to 25 mg`."""
    is_from = begin > 0 and tokens[begin - 1].text == "from" and not _is_range(tokens, begin)
    follows = [t.text for t in tokens[at : at + 1]] == ["to"] and at + 1 < len(tokens)
    return is_from and follows and tokens[at + 1].is_number


def _is_range(tokens: Sequence[SentenceToken], begin: int) -> bool:
    return any(t.text in _RANGES for t in tokens[max(0, begin - 3) : begin])


def whole_amount(printed: str | None, unit: str | None = None) -> StatedAmount | None:
    """Return the amount that a printed attribute consists of; None if there is more text."""
    tokens = tokens_of(printed or "")
    wanted = unit_of(unit)
    found = read_amount(tokens, 0, {wanted} if wanted else ())
    if found is None:
        return None
    amount, after = found
    rest = "".join(t.text for t in tokens[after:])
    if rest and not amount.unit and not any(t.is_number for t in tokens[after:]):
        amount = _with_unit(amount, unit_of(rest))
    elif rest:
        return None
    if wanted and not amount.unit:
        amount = _with_unit(amount, wanted)
    return amount


def amounts_in(printed: str | None) -> list[StatedAmount]:
    """Return all amounts of a text."""
    tokens = tokens_of(printed or "")
    found, at = [], 0
    while at < len(tokens):
        one = read_amount(tokens, at, ())
        if one is None:
            at += 1
            continue
        found.append(one[0])
        at = max(one[1], at + 1)
    return found


def _with_unit(amount: StatedAmount, unit: str) -> StatedAmount:
    return StatedAmount(
        printed=amount.printed,
        first=amount.first,
        second=amount.second,
        join=amount.join,
        comparator=amount.comparator,
        negative=amount.negative,
        unit=unit,
    )


def _is_sign(tokens: Sequence[SentenceToken], at: int) -> bool:
    """Return whether a sign begins a word and a number follows without a space."""
    part = tokens[at : at + 2]
    return (
        len(part) == 2
        and part[0].text in ("-", "+")
        and part[0].spaced
        and part[1].is_number
        and not part[1].spaced
    )


def _comparator(tokens: Sequence[SentenceToken], at: int) -> tuple[str, int]:
    if at >= len(tokens) or tokens[at].text not in _COMPARATOR_STARTS:
        return "", at
    for phrase, sign in _COMPARATORS.items():
        end = at + len(phrase)
        if tuple(t.text for t in tokens[at:end]) == phrase:
            return sign, end
    return "", at


def _ordinal(tokens: Sequence[SentenceToken], at: int) -> StatedAmount | None:
    """Return the number of `second dose`; a second without a dose is a unit or no number."""
    number = _ORDINAL_WORDS.get(tokens[at].text) if at < len(tokens) else None
    if number is None or not any(t.text == "dose" for t in tokens[at + 1 : at + 6]):
        return None
    return StatedAmount(printed=tokens[at].text, first=number, join=ORDINAL_JOIN)


def _number(tokens: Sequence[SentenceToken], at: int) -> str | None:
    if at >= len(tokens):
        return None
    token = tokens[at]
    if token.is_number:
        return token.text
    return _NUMBER_WORDS.get(token.text) if token.is_word else None


def _second(tokens: Sequence[SentenceToken], at: int) -> tuple[str, str, int]:
    """Return join, second number and the token after them."""
    if at >= len(tokens):
        return "", "", at
    text = tokens[at].text
    if text == "+" and not tokens[at].spaced:
        return "+", "", at + 1
    follows = at + 1 < len(tokens) and tokens[at + 1].is_number
    if follows and text in ("-", "to"):
        return "-", tokens[at + 1].text, at + 2
    if follows and text in ("/", "over"):
        return "/", tokens[at + 1].text, at + 2
    if follows and text == ":" and not tokens[at].spaced:
        return ":", tokens[at + 1].text, at + 2
    return "", "", at


def _unit(tokens: Sequence[SentenceToken], at: int, known: frozenset[str]) -> tuple[str, int]:
    """Return the longest unit at a token, and the token after the unit."""
    if at < len(tokens) and tokens[at].text == "-" and not tokens[at].spaced:
        hyphened = _unit(tokens, at + 1, known)
        if hyphened[0] and at + 1 < len(tokens) and tokens[at + 1].is_word:
            return hyphened
    unit, after = _simple_unit(tokens, at, known)
    # "400 mg/5 mL", "100 units/mL" and "0.05 mcg/kg/min" are amounts per something.
    while unit and after + 1 < len(tokens) and tokens[after].text == "/":
        number = tokens[after + 1].text if tokens[after + 1].is_number else ""
        per, end = _simple_unit(tokens, after + (2 if number else 1), known)
        if not per:
            break
        unit, after = f"{unit}/{number}{per}", end
    return unit, after


def _spelled_out(words: Sequence[str]) -> str:
    """Return the signs of a unit in words: `nanograms per milliliter` is `ng/ml`."""
    if "per" not in words:
        return ""
    at = words.index("per")
    sides = [" ".join(part) for part in (words[:at], words[at + 1 :])]
    signs = [_WORDS_OF_UNITS.get(side) for side in sides]
    return "/".join(sign for sign in signs if sign) if all(signs) else ""


def _simple_unit(
    tokens: Sequence[SentenceToken], at: int, known: frozenset[str]
) -> tuple[str, int]:
    for end in range(min(len(tokens), at + _LONGEST), at, -1):
        joined = "".join(t.text for t in tokens[at:end])
        spelled = _spelled_out([t.text for t in tokens[at:end]])
        unit = _UNIT_NAMES.get(joined, joined.replace("10*", "10^").replace("m^2", "m2"))
        if spelled and (spelled in known or spelled in _COMMON):
            return unit_of(spelled), end
        if unit in known:
            return unit, end
        if joined in _ONLY_CITED:
            continue
        if joined in _UNIT_NAMES or joined in _COMMON:
            return unit, end
    return "", at
