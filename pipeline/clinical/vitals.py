"""Structure a vital sign: value, components of a blood pressure, and the metric value.

A missing unit stays missing, and a value without a unit is not converted. Factors are exact: NIST
SP 811 (2008), appendix B.8: 1 in = 2.54 cm, 1 ft = 30.48 cm, 1 lb = 0.45359237 kg, 1 oz = 1/16 lb,
1 stone = 14 lb, and t/°C = (t/°F - 32) / 1.8.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal

from pipeline.clinical.attributes import Quantity, VitalAttributes
from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.numbers import (
    NOT_UNDERSTOOD,
    as_sign,
    decimal_sign,
    fraction,
    plain_number,
    read_number,
)
from pipeline.clinical.printed_values import split_unit
from pipeline.clinical.structured import Printed, Structured
from pipeline.clinical.units import UnitContext, ucum_code

_LONGEST = 60
_POUND = Decimal("0.45359237")
_FACTORS = {
    "[in_i]": (Decimal("2.54"), "cm"),
    "[ft_i]": (Decimal("30.48"), "cm"),
    "[lb_av]": (_POUND, "kg"),
    "[oz_av]": (_POUND / 16, "kg"),
    "[stone_av]": (_POUND * 14, "kg"),
}
_HUNDREDTH = Decimal("0.01")
_PLACES = {"cm": _HUNDREDTH, "kg": Decimal("0.001"), "Cel": _HUNDREDTH}
"""Decimals of a converted value; finer than any device that measures a person."""
_PRESSURE = re.compile(r"\b(?:b/?p|n?ibp|abp|blood pressures?|arterial pressure)s?\b", re.I)
_PAIN = re.compile(r"\bpain\b", re.I)
_HEIGHT = re.compile(r"\b(?:height|ht|length|stature)\b", re.I)
_WEIGHT = re.compile(r"\b(?:weight|wt|mass|[a-z]?[dib]?bw|efw|e?dw)\b", re.I)
_UNITS = (
    (
        re.compile(r"\b(?:b/?p|n?ibp|abp|map|[sd]bp|systolic|diastolic|pressures?)s?\b", re.I),
        frozenset({"mm[Hg]", "kPa", "cm[H2O]"}),
    ),
    (
        re.compile(r"\b(?:hr|pulses?|heart rate|rr|resp(?:irations?|iratory rate)?)\b", re.I),
        frozenset({"/min"}),
    ),
    (re.compile(r"\b(?:temp(?:erature)?|tmax|t-max)\b", re.I), frozenset({"[degF]", "Cel"})),
    (re.compile(r"\b(?:sp?[ao]o2|o2 sat\w*|sats?|saturation|fio2)\b", re.I), frozenset({"%"})),
    (re.compile(r"\b(?:bmi|body mass index)\b", re.I), frozenset({"kg/m2"})),
    (_WEIGHT, frozenset({"kg", "g", "[lb_av]", "[oz_av]", "[stone_av]"})),
    (
        re.compile(rf"{_HEIGHT.pattern}|\bcircumference\b", re.I),
        frozenset({"cm", "m", "mm", "[in_i]", "[ft_i]"}),
    ),
)
"""The units that a vital sign can have; another vital sign can have any unit."""
_N = r"[0-9]{1,3}(?:\.[0-9]{1,2})?"
_FRACTIONED = rf"{_N}(?:[ ]?[½¼¾]|[ -][1-7]/[248])?"
_SIDE = r"(?:[0-9]{2,3}(?:[ ]?-[ ]?[0-9]{2,3})?|palp(?:ated|ation)?|p|doppler|d)"
_PAIR = re.compile(
    rf"\(?(?P<upper>{_SIDE})\)?[ ]?(?:/|[ ]over[ ])[ ]?\(?(?P<lower>{_SIDE})\)?", re.I
)
_FELT = re.compile(r"palp(?:ated|ation)?|p|doppler|d", re.I)
_SCORE = re.compile(
    r"(?P<low>[0-9]{1,2})(?:[ ]?-[ ]?(?P<high>[0-9]{1,2}))?(?:[ ]?/[ ]?10|[ ]out[ ]of[ ]10)?", re.I
)
_LB = r"(?:lbs?\.?|pounds?|\#)"
_INCH = r"(?:in(?:ch(?:es)?|s)?\.?|[\"”″]|''|’’)"
_PARTS = (
    (
        re.compile(
            rf"(?P<big>[0-9])[ ]?(?:['’′]|ft\.?|feet|foot)[ ,]*(?:and[ ])?(?P<small>{_FRACTIONED})"
            rf"[ ]?{_INCH}?",
            re.I,
        ),
        _HEIGHT,
        12,
        "[in_i]",
    ),
    (
        re.compile(
            rf"(?P<big>[0-9]{{1,3}})[ ]?{_LB}[ ,]*(?:and[ ])?(?P<small>{_FRACTIONED})[ ]?"
            r"(?:ozs?\.?|ounces?)",
            re.I,
        ),
        _WEIGHT,
        16,
        "[oz_av]",
    ),
    (
        re.compile(
            rf"(?P<big>[0-9]{{1,2}})[ ]?(?:st\.?|stones?)[ ,]*(?:and[ ])?(?P<small>{_FRACTIONED})"
            rf"[ ]?{_LB}?",
            re.I,
        ),
        _WEIGHT,
        14,
        "[lb_av]",
    ),
)
"""Pattern of a value of two units, its vital sign, small units per large unit, and small unit."""
_WITH_EQUIVALENT = re.compile(r"(?P<one>[^()]+?)[ ]*\((?P<other>[^()]+)\)")
_METRIC = {"cm": Decimal(1), "kg": Decimal(1), "Cel": Decimal(1)} | {
    "m": Decimal(100),
    "g": Decimal("0.001"),
}
_NEAR = Decimal("0.01")
"""The largest relative difference between two prints of one amount."""
_GROUP = re.compile(r"(?<![0-9.,])[0-9]{1,3}[.,][0-9]{3}(?![0-9]|[.,][0-9])")
"""`3,250`: in grams no person weighs 3.25."""
_FEET = re.compile(r"(?P<big>[0-9])[ ]?['’′]")


def vital_attributes(printed: Printed) -> Structured:
    """Return the attributes of a vital sign."""
    flags: list[str] = []
    day = printed.facts.entity_date
    effective = day.isoformat() if day else None
    text = (printed.value or "").strip()
    if not text:
        return Structured(attributes=VitalAttributes(effective=effective))
    components = _pressure(printed, text, flags) if _is_pressure(printed) else ()
    value = None if components else _value_of(printed, text, flags)
    return Structured(
        attributes=VitalAttributes(
            value=value,
            components=components,
            converted=metric(value) if value else None,
            effective=effective,
        ),
        flags=tuple(flags),
    )


def metric(value: Quantity) -> Quantity | None:
    """Return a length in cm, a mass in kg or a temperature in °C; None for any other unit."""
    if value.number is None or value.unit is None:
        return None

    def amount(number: Decimal) -> Decimal:
        if value.unit == "[degF]":
            return ((number - 32) * 5 / 9).quantize(_PLACES["Cel"], ROUND_HALF_EVEN)
        factor, unit = _FACTORS[value.unit or ""]
        return (number * factor).quantize(_PLACES[unit], ROUND_HALF_EVEN)

    if value.unit != "[degF]" and value.unit not in _FACTORS:
        return None
    if value.number >= 100_000 or (value.high is not None and value.high >= 100_000):
        return None
    return value.model_copy(
        update={
            "number": amount(value.number),
            "high": None if value.high is None else amount(value.high),
            "unit": "Cel" if value.unit == "[degF]" else _FACTORS[value.unit][1],
        }
    )


def _is_pressure(printed: Printed) -> bool:
    return _PRESSURE.search(printed.facts.name) is not None


def _pressure(printed: Printed, text: str, flags: list[str]) -> tuple[Quantity, ...]:
    """Return systolic and diastolic pressure; nothing if the text is no pair."""
    plain = _plain(text)
    unit = printed.unit or ""
    if tail := re.search(r"[ ]?(mm[ ]?hg)$", plain, re.I):
        plain, unit = plain[: tail.start()].strip(), unit or tail[1]
    m = _PAIR.fullmatch(plain) if len(plain) <= _LONGEST else None
    if m is None:
        return ()
    code = _code(printed, unit, flags)
    sides = [_side(m[name], code, unit) for name in ("upper", "lower")]
    upper, lower = sides
    if upper is None or lower is None or upper.number is None:
        flags.append(flagged(EnrichmentFlag.NUMBER_NOT_UNDERSTOOD, "value"))
        return tuple(Quantity(printed=m[name]) for name in ("upper", "lower"))
    if lower.number is not None and upper.number <= lower.number:
        flags.append(flagged(EnrichmentFlag.NUMBER_NOT_UNDERSTOOD, "value"))
        return tuple(Quantity(printed=m[name]) for name in ("upper", "lower"))
    return (upper, lower)


def _side(text: str, code: str | None, unit: str) -> Quantity | None:
    if _FELT.fullmatch(text):
        return Quantity(printed=text)
    read = read_number(text)
    if read.number is None:
        return None
    return Quantity(
        printed=text, number=read.number, high=read.high, unit=code, printed_unit=unit or None
    )


def _value_of(printed: Printed, text: str, flags: list[str]) -> Quantity:
    """Return a value; an equal amount in parentheses behind the value is only its equivalent."""
    m = _WITH_EQUIVALENT.fullmatch(text) if len(text) <= _LONGEST and not printed.unit else None
    if m is None:
        return _value(printed, text, flags)
    doubts: list[str] = []
    one, other = (_value(printed, m[name], doubts) for name in ("one", "other"))
    first, second = _base(one), _base(other)
    if doubts or first is None or second is None or abs(first - second) > _NEAR * second:
        flags.append(flagged(EnrichmentFlag.NUMBER_NOT_UNDERSTOOD, "value"))
        return Quantity(printed=text)
    return one.model_copy(update={"printed": text})


def _base(value: Quantity) -> Decimal | None:
    """Return a length in cm, a mass in kg or a temperature in °C."""
    found = metric(value) or value
    scale = _METRIC.get(found.unit or "")
    return None if scale is None or found.number is None else found.number * scale


def _value(printed: Printed, text: str, flags: list[str]) -> Quantity:
    plain = _plain(text)
    name = printed.facts.name
    if _PAIN.search(name):
        return _score(text, plain, flags)
    if (parts := _of_two_units(printed, plain)) is not None:
        number, small = parts
        return Quantity(printed=text, number=number, unit=small, printed_unit=printed.unit)
    if _WEIGHT.search(name) and _unit_of(printed, plain) == "g":
        plain = _GROUP.sub(lambda m: re.sub("[.,]", "", m[0]), plain)
    sign = decimal_sign(plain) or as_sign(printed.decimal_sign)
    read = read_number(plain, sign=sign)
    amount: str = plain
    unit: str = printed.unit or ""
    if read.number is None:
        amount, unit = split_unit(plain, printed.unit, UnitContext.VITAL, name)
        read = read_number(amount, sign=sign, has_fractions=bool(_is_measured(name)))
    code = _code(printed, unit, flags)
    if read.high is not None and _HEIGHT.search(name):
        # 5-10 is five feet and ten inches, not a range.
        read = NOT_UNDERSTOOD
    if read.number is None:
        flags.append(flagged(EnrichmentFlag.NUMBER_NOT_UNDERSTOOD, "value"))
    return Quantity(
        printed=text,
        number=read.number,
        high=read.high,
        comparator=read.comparator,
        unit=code,
        printed_unit=unit.strip() or None,
    )


def _unit_of(printed: Printed, plain: str) -> str | None:
    """Return the UCUM code of the unit in or behind a value."""
    name = printed.facts.name
    unit = split_unit(_GROUP.sub("1", plain), printed.unit, UnitContext.VITAL, name)[1]
    return ucum_code(unit, context=UnitContext.VITAL, name=name) if unit else None


def _is_measured(name: str) -> bool:
    """Return whether a vital sign is a length or a mass, which can print `1/2`."""
    if "circumference" in name.casefold():
        return True
    return _HEIGHT.search(name) is not None or _WEIGHT.search(name) is not None


def _score(text: str, plain: str, flags: list[str]) -> Quantity:
    """Return a score of pain from 0 to 10."""
    m = _SCORE.fullmatch(plain)
    low = int(m["low"]) if m else 11
    high = int(m["high"]) if m and m["high"] else None
    if low > 10 or (high is not None and not low <= high <= 10):
        flags.append(flagged(EnrichmentFlag.NUMBER_NOT_UNDERSTOOD, "value"))
        return Quantity(printed=text)
    return Quantity(printed=text, number=Decimal(low), high=None if high is None else Decimal(high))


def _of_two_units(printed: Printed, plain: str) -> tuple[Decimal, str] | None:
    """Return a value of two units (`5'10"`, `7 lb 4 oz`) in its smaller unit."""
    name = printed.facts.name
    for form, vital, per, code in _PARTS:
        m = form.fullmatch(plain) or (
            form.fullmatch(f"{plain} {printed.unit}") if printed.unit else None
        )
        small = _amount(m["small"]) if m else None
        if m and small is not None and small < per and vital.search(name):
            return Decimal(m["big"]) * per + small, code
    m = _FEET.fullmatch(plain)
    if m and _HEIGHT.search(name) and not printed.unit:
        return Decimal(m["big"]), "[ft_i]"
    return None


def _amount(text: str) -> Decimal | None:
    """Return a number with or without a fraction: `10`, `10.5`, `10 1/2`, `4½`."""
    found = fraction(text)
    return found if found is not None else plain_number(text, ".")


def _code(printed: Printed, unit: str, flags: list[str]) -> str | None:
    if not unit.strip():
        return None
    name = printed.facts.name
    code = ucum_code(unit, context=UnitContext.VITAL, name=name)
    codes = next((codes for vital, codes in _UNITS if vital.search(name)), None)
    if codes is not None and code not in codes:
        # A rate in per cent is a cell of another column.
        code = None
    if code is None:
        flags.append(flagged(EnrichmentFlag.UNIT_UNKNOWN))
    return code


def _plain(text: str) -> str:
    return " ".join(text[: _LONGEST + 1].replace("–", "-").replace("—", "-").split())
