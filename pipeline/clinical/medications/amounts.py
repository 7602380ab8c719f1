"""Printed doses and strengths as quantities, in exact decimal numbers.

An amount is read only if each of its words and figures is explained. Any other amount keeps its
printed text without a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from pipeline.clinical.attributes import Quantity
from pipeline.clinical.medications.dose_units import (
    CONTENT_UNIT,
    COUNTED,
    DENOMINATOR,
    PIECE,
    RATE_UNIT,
    UNIT,
    UnitKind,
    denominator_of,
    kind_of_code,
    unit_of,
)
from pipeline.clinical.page_text.spellings import NUMBER_WORDS

_LONGEST = 120
_WIDEST = 4
"""The widest range of a dose that is printed with a hyphen, as a ratio of its ends. Two ingredients
of one product often differ more (`5-325 mg`)."""
_MOST_INGREDIENTS = 4
_MILLION = 1_000_000
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("µμ", "u"),
        **dict.fromkeys("\xa0\n\r\t\f", " "),
        "½": " 1/2",
        "¼": " 1/4",
        "¾": " 3/4",
    }
)
_COUNTS = {**{w: n for w, n in NUMBER_WORDS.items() if w != "half"}, "eleven": "11"}
_COUNT_WORD = rf"(?:{'|'.join(_COUNTS)})"
_FIGURES = (
    r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3}){1,2}(?:\.[0-9]{1,4})?"
    r"|(?:0|[1-9][0-9]{0,6})(?:\.[0-9]{1,4})?|\.[0-9]{1,4})(?![0-9])"
)
_COMMA = (
    r"(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]{1,2}|0,[0-9]{1,3}|[1-9][0-9]{0,3},[0-9]{1,2})"
    r"(?![0-9,])"
)
"""A decimal comma is certain if no reader takes the comma for a sign of thousands."""
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}\.[0-9]{2}0")
"""A thousand or a decimal: `1.000`, `2.500`. A decimal such as 3.125 ends otherwise."""
_FIGURE_RUN = re.compile(r"[0-9][0-9.,]*")
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_DECIMAL_COMMA = re.compile(r"[0-9]+,[0-9]{1,2}")
_DECIMAL_THREE = re.compile(r"[1-9][0-9]{0,2}\.[0-9]{3}")
_FRACTION = r"(?:(?:[0-9]{1,2}[ ](?:and[ ])?)?(?:1/2|1/3|1/4|2/3|3/4))"
_SPOKEN = (
    rf"(?:{_COUNT_WORD}[ ]and[ ](?:a[ ]|one[- ])?half|one[- ]half|half|(?:a|one)[ ]quarter|quarter"
    r"|three[ -]quarters|an?(?:[ ](?:full|whole|single))?"
    rf"|{_COUNT_WORD})"
)
_NUMBER = rf"(?:{_FRACTION}|{_COMMA}|{_FIGURES}|{_SPOKEN})"
_OF = r"(?:[ ](?:of[ ])?(?:an?|one|the))?"
_AGAIN = rf"(?:[ ]?\([ ]?(?P<again>{_FRACTION}|{_FIGURES}|{_COUNT_WORD})[ ]?\))?"
_DOSE = re.compile(
    rf"(?P<n>{_NUMBER}){_AGAIN}(?:[ ]?(?:-|to|or)[ ]?(?P<high>{_NUMBER}))?"
    rf"(?P<million>[ ]million)?{_OF}[ -]?(?P<unit>{UNIT})"
    rf"(?P<per>(?:[ ]?(?:/|per)[ ]?(?:{RATE_UNIT}|(?:24|72)[ ]?(?:hours|hour|hrs|hr|h))){{0,2}})"
)
"""A dose: `20 mg`, `1-2 tablets`, `half a tablet`, `two (2) puffs`, `0.5 mcg/kg/min`."""
_UNIT_TWICE = re.compile(
    rf"(?P<n>{_FIGURES})[ ]?(?P<unit>{UNIT})[ ]?(?:-|to)"
    rf"[ ]?(?P<high>{_FIGURES})[ ]?(?P<also>{UNIT})"
)
"""A range that repeats its unit: `10 mg to 20 mg`."""
_PIECES = re.compile(
    rf"(?P<n>{_FRACTION}|{_COUNT_WORD}|[0-9]{{1,2}})[ ](?:x[ ])?"
    rf"(?P<strength>{_FIGURES}[ ]?{UNIT})[ -](?P<unit>{PIECE})"
    rf"|(?P<n2>{_FRACTION}|{_COUNT_WORD}|[0-9]{{1,2}})[ ](?P<unit2>{PIECE})"
    rf"[ ](?:of[ ])?\(?(?P<strength2>{_FIGURES}[ ]?{UNIT})(?P<each>[ ]each)?\)?"
)
"""A dose by its pieces: `two 20 mg tablets`, `2 tablets of 20 mg`."""
_MASS_WORD = r"(?:mg|mgs|mcg|mcgs|ug|g|gm)"
_SAID_TWICE = re.compile(
    r"(?P<first>[^()=]{2,40}?)[ ]?"
    r"(?:\((?P<inside>[^()=]{2,40}?)(?P<total>[ ]total(?:[ ]dose)?)?\)"
    r"|=[ ]?(?P<equal>[^()=]{2,40}))"
)
"""A dose in two forms: `20 mg (2 tablets)`, `5 mL (250 mg)`, `2 tablets = 20 mg`."""
_HYPHENATED = re.compile(
    rf"(?:{_FIGURES}|{_COMMA})[ ]?{_MASS_WORD}?[ ]?-[^a-z]*{_MASS_WORD}(?![a-z]|[ ]?/|[ ]per)"
)
_PART = re.compile(rf"(?P<n>{_COMMA}|{_FIGURES})[ ]?(?P<unit>{CONTENT_UNIT})?")
_PER_PART = re.compile(rf"[ ]?(?:/|per)[ ]?(?:(?P<size>{_FIGURES})[ ]?)?(?P<per>{DENOMINATOR})")
_BETWEEN = re.compile(r"[ ]?(?:/|-)[ ]?(?=[0-9.])")
_FORM = re.compile(rf"[ ](?:{PIECE}|oral|strength|er|xr|sr|xl|dr|ec|odt)(?![a-z])")
_VALUES = {"half": "0.5", "one-half": "0.5", "one half": "0.5", "quarter": "0.25"} | {
    "a quarter": "0.25", "one quarter": "0.25", "three quarters": "0.75",
    "three-quarters": "0.75", "1/2": "0.5", "1/4": "0.25", "3/4": "0.75",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReadDose:
    """A dose, with the strength that the words of the dose also state."""

    quantity: Quantity
    is_understood: bool
    strength: tuple[Quantity, ...] = ()


def plain(text: str) -> str:
    """Return a text in lower case with one spelling of each sign and single blanks."""
    return " ".join(text.translate(_SIGNS).lower().split())


def has_one_reading(text: str, decimal_sign: str | None) -> bool:
    """Return whether no figure of a text can be a thousand times larger with the other sign.

    `1,250` is a thousand and more unless the page writes decimal commas: a decimal has no last
    zero. `3,125` needs a page that writes decimal points.
    """
    for m in _FIGURE_RUN.finditer(text):
        figures = m.group().rstrip(".,")
        if _GROUPED.fullmatch(figures):
            certain = figures.count(",") > 1 or figures.endswith("0")
            if decimal_sign == "," or (decimal_sign is None and not certain):
                return False
        elif (_DECIMAL_COMMA.fullmatch(figures) and decimal_sign == ".") or (
            _DECIMAL_THREE.fullmatch(figures) and decimal_sign == ","
        ):
            return False
    return True


def dose_of(
    text: str,
    *,
    is_combination: bool = False,
    is_as_needed: bool = False,
    decimal_sign: str | None = None,
) -> ReadDose:
    """Read what is taken each time. `decimal_sign` is the sign that the page proves.

    `5-10 mg` is a range or a product with two ingredients. The figures are a range only if the dose
    is taken as needed, no name says that the product is a combination, and the figures are near.
    """
    printed = " ".join(text.split())
    low = plain(text)
    nothing = ReadDose(quantity=Quantity(printed=printed), is_understood=False)
    if not low or len(low) > _LONGEST or not has_one_reading(low, decimal_sign):
        return nothing
    if m := _PIECES.fullmatch(low):
        return _of_pieces(printed, m) or nothing
    if (m := _SAID_TWICE.fullmatch(low)) and (same := _of_total(printed, m)):
        return same
    m = _DOSE.fullmatch(low) or _UNIT_TWICE.fullmatch(low)
    quantity = _quantity(printed, m) if m else None
    contents = strength_of(text, is_combination=is_combination, decimal_sign=decimal_sign) or ()
    if quantity is not None and quantity.high is not None and _HYPHENATED.match(low):
        is_range = (
            is_as_needed
            and not is_combination
            and quantity.number is not None
            and quantity.high <= quantity.number * _WIDEST
        )
        quantity = quantity if is_range else None
    if quantity is not None:
        return ReadDose(quantity=quantity, is_understood=True)
    if len(contents) > 1 and (is_combination or "/" in low or _differ(contents)):
        return ReadDose(quantity=nothing.quantity, is_understood=True, strength=contents)
    return nothing


def _differ(contents: tuple[Quantity, ...]) -> bool:
    """Return whether contents differ too much to be the ends of one range."""
    numbers = [each.number for each in contents if each.number is not None]
    return max(numbers) > min(numbers) * _WIDEST


def _of_pieces(printed: str, m: re.Match[str]) -> ReadDose | None:
    count = _number(m["n"] or m["n2"])
    strength = strength_of(m["strength"] or m["strength2"])
    if count is None or strength is None:
        return None
    printed_unit = m["unit"] or m["unit2"]
    quantity = Quantity(
        printed=printed, number=count, unit=unit_of(printed_unit), printed_unit=printed_unit
    )
    is_total = m["n2"] and count != 1 and not m["each"] and "of" not in m.group().split()
    if is_total:
        # `2 tablets (50 mg)`: the mass can be the content of one tablet or the whole dose.
        return None
    return ReadDose(quantity=quantity, is_understood=True, strength=strength)


def _of_total(printed: str, m: re.Match[str]) -> ReadDose | None:
    """Return the mass of a dose that is printed in two forms; None if one form is unclear.

    `2 tablets (50 mg)` stays unclear: the mass can be that of one tablet.
    """
    one, other = dose_of(m["first"]), dose_of(m["inside"] or m["equal"])
    kinds = [kind_of_code(each.quantity.unit) for each in (one, other)]
    if not one.is_understood or not other.is_understood or UnitKind.MASS not in kinds:
        return None
    mass, pieces = (one, other) if kinds[0] is UnitKind.MASS else (other, one)
    if kind_of_code(pieces.quantity.unit) in (None, UnitKind.MASS) or pieces.quantity.high:
        return None
    is_certain = mass is one or m["total"] or m["equal"] or kinds[0] is UnitKind.VOLUME
    if not is_certain and pieces.quantity.number != 1:
        return None
    strength = pieces.strength
    if strength and (
        strength[0].unit != mass.quantity.unit
        or (strength[0].number or 0) * (pieces.quantity.number or 0) != mass.quantity.number
    ):
        return None
    quantity = mass.quantity.model_copy(update={"printed": printed})
    return ReadDose(quantity=quantity, is_understood=True, strength=strength)


def _quantity(printed: str, m: re.Match[str]) -> Quantity | None:
    groups = m.groupdict()
    number, printed_unit = _number(m["n"]), m["unit"]
    again, high = groups.get("again"), groups.get("high")
    if number is None or number <= 0 or (again and _number(again) != number):
        return None
    if groups.get("also") and unit_of(groups["also"]) != unit_of(printed_unit):
        return None
    last = _number(high) if high else None
    if high and (last is None or last <= number):
        return None
    if groups.get("million"):
        number, last = exact(number * _MILLION), exact(last * _MILLION) if last else None
    is_fraction = any("/" in part or part in _VALUES for part in (m["n"], high or ""))
    if is_fraction and printed_unit not in COUNTED:
        return None
    code = unit_of(printed_unit)
    per = re.findall(rf"(?:/|per)[ ]?([0-9]*)[ ]?({RATE_UNIT})(?![a-z])", groups.get("per") or "")
    for size, below in per:
        code += f"/({size}.{denominator_of(below)})" if size else f"/{denominator_of(below)}"
    tail = groups.get("per") or ""
    return Quantity(
        printed=printed,
        number=number,
        high=last,
        unit=code,
        printed_unit=_as_printed(printed, printed_unit + tail),
    )


def _as_printed(printed: str, unit: str) -> str:
    """Return the unit with the letters of the page."""
    at = plain(printed).rfind(unit)
    shown = " ".join(printed.split())
    same = len(plain(printed)) == len(shown)
    return shown[at : at + len(unit)].strip() if same and at >= 0 else unit.strip()


def strength_of(
    text: str, *, is_combination: bool = False, decimal_sign: str | None = None
) -> tuple[Quantity, ...] | None:
    """Read what a product contains: one quantity per ingredient; None if not understood.

    `is_combination` says that the name of the product names several ingredients.

    `160/4.5 mcg` gives two quantities. `250 mg/5 mL` gives 50 mg/mL, and a quotient without an end
    keeps the printed volume in its unit (`mg/(3.mL)`).
    """
    printed = " ".join(text.split())
    low = plain(text)
    if not low or len(low) > _LONGEST or not has_one_reading(low, decimal_sign):
        return None
    at, parts, is_hyphenated = 0, list[tuple[Decimal, str | None]](), False
    while True:
        m = _PART.match(low, at)
        number = _number(m["n"]) if m else None
        if m is None or number is None or number <= 0:
            return None
        parts.append((number, m["unit"]))
        at = m.end()
        joined = _BETWEEN.match(low, at)
        is_hyphenated = is_hyphenated or (joined is not None and "-" in joined.group())
        if joined is None or _PER_PART.match(low, at):
            break
        at = joined.end()
    per = _PER_PART.match(low, at)
    at = per.end() if per else at
    form = _FORM.match(low, at)
    at = form.end() if form else at
    if at != len(low) or parts[-1][1] is None or len(parts) > _MOST_INGREDIENTS:
        return None
    if is_hyphenated and len(parts) == 2 and not is_combination:
        (low_end, _), (high_end, _) = parts
        if low_end <= high_end <= low_end * _WIDEST:
            return None
    return _contents(printed, parts, per)


def _contents(
    printed: str, parts: list[tuple[Decimal, str | None]], per: re.Match[str] | None
) -> tuple[Quantity, ...] | None:
    found = list[Quantity]()
    unit = ""
    for number, own in reversed(parts):
        unit = own or unit
        code = unit_of(unit)
        if per is not None:
            size = _number(per["size"]) if per["size"] else Decimal(1)
            if size is None or size <= 0:
                return None
            below = denominator_of(per["per"])
            content = _content(number, code, size, below)
            if content is None:
                return None
            number, code = content
        found.append(
            Quantity(
                printed=printed,
                number=number,
                unit=code,
                printed_unit=unit + (per.group() if per else ""),
            )
        )
    return tuple(reversed(found))


def _content(number: Decimal, code: str, size: Decimal, below: str) -> tuple[Decimal, str] | None:
    """Return a content per unit of volume; None if the content is no finite number."""
    if size == 1:
        return number, f"{code}/{below}"
    denominator = (Fraction(number) / Fraction(size)).denominator
    while denominator % 2 == 0:
        denominator //= 2
    while denominator % 5 == 0:
        denominator //= 5
    if denominator == 1:
        return exact(number / size), f"{code}/{below}"
    if size != int(size):
        # A factor of a UCUM unit is a whole number.
        return None
    return number, f"{code}/({int(size)}.{below})"


def exact(number: Decimal) -> Decimal:
    """Return a number without trailing zeros and without an exponent."""
    shown = f"{number:f}"
    return Decimal(shown.rstrip("0").rstrip(".") if "." in shown else shown)


def _number(text: str) -> Decimal | None:
    """Return the number of figures, of a fraction or of words; None if the number is endless."""
    text = " ".join(text.split())
    if text in _VALUES:
        return Decimal(_VALUES[text])
    if text in _COUNTS:
        return Decimal(_COUNTS[text])
    if re.fullmatch(r"an?(?: (?:full|whole|single))?", text):
        return Decimal(1)
    if m := re.fullmatch(rf"({_COUNT_WORD}) and (?:a |one[- ])?half", text):
        return Decimal(_COUNTS[m[1]]) + Decimal("0.5")
    if m := re.fullmatch(r"([0-9]{1,2}) (?:and )?([123]/[234])", text):
        part = _VALUES.get(m[2])
        return Decimal(m[1]) + Decimal(part) if part else None
    if _THOUSANDS.fullmatch(text):
        return None
    if re.fullmatch(_FIGURES, text):
        return exact(Decimal(text.replace(",", "")))
    if re.fullmatch(_COMMA, text):
        return exact(Decimal(text.replace(".", "").replace(",", ".")))
    return None
