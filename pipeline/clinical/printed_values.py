"""A printed value and the unit behind it."""

from __future__ import annotations

import re

from pipeline.clinical.numbers import read_number
from pipeline.clinical.units import UnitContext, ucum_code

_LONGEST = 80
_WITH_UNIT = re.compile(r"(?P<number>.*[0-9.)½¼¾])[ ]?(?P<unit>[%°º/µμ#\"”″A-Za-z\[{].*)")
_WITH_POWER = re.compile(r"(?P<number>[^x×*]*[0-9.])[ ]?(?P<unit>[x×*][ ]?10.+)", re.I)
_COMMENT = re.compile(
    r"[ ]?(?:\((?:calc(?:ulated)?|est(?:imated)?|hs)\.?\)|(?<=[ ])calc(?:ulated)?\.?)$"
    r"|^\(?calc(?:ulated)?\.?\)?$",
    re.I,
)


def without_comment(text: str) -> str:
    """Return a value, a unit or a range without the comment on its method (`(calc)`, `(hs)`)."""
    return _COMMENT.sub("", text).strip() if len(text) <= _LONGEST else text


def is_same_unit(one: str, other: str | None, context: UnitContext, name: str) -> bool:
    """Return whether two printed units of one analyte are one unit."""
    if other is None or not other.strip():
        return False
    if "".join(one.split()).casefold() == "".join(other.split()).casefold():
        return True
    code = ucum_code(one, context=context, name=name)
    return code is not None and code == ucum_code(other, context=context, name=name)


def split_unit(value: str, unit: str | None, context: UnitContext, name: str) -> tuple[str, str]:
    """Return a value and its unit apart (`7.2%`); the unit is "" if none is printed.

    The end of a value is its unit only if the unit has a UCUM code, or is the unit of the row.
    """
    plain = " ".join(value.split()) if len(value) <= _LONGEST else ""
    power = _WITH_POWER.fullmatch(plain)
    if power and ucum_code(power["unit"], context=context, name=name) is None:
        power = None
    # In 5.0 x 10^9/L the power belongs to the unit, as in the range 4.0-11.0 beside this value.
    m = power or _WITH_UNIT.fullmatch(plain)
    if m is None or not read_number(m["number"], has_fractions=True).is_understood:
        return value, unit or ""
    tail = m["unit"].strip()
    if unit is None or not unit.strip():
        is_unit = ucum_code(tail, context=context, name=name) is not None
    else:
        is_unit = is_same_unit(tail, unit, context, name)
    return (m["number"], tail) if is_unit else (value, unit or "")
