"""Convert a laboratory value between conventional and SI units, by the factors of `labunits`.

A value is converted only if its printed name, or its LOINC number, and its unit lead to one factor.
`labunits` 0.2.1 is MIT-licensed; its factors are used unchanged.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache
from pathlib import Path

from labunits import converters

from pipeline.clinical.attributes import Quantity
from pipeline.clinical.units import ucum_code

_NAMES = Path(__file__).parent / "lab_analytes.txt"
_FIGURES = 6
"""Significant figures of a quotient."""
_DIVISION = Context(prec=_FIGURES, rounding=ROUND_HALF_EVEN)
_PRODUCT = Context(prec=40)
_SCALE = re.compile(r"(?P<top>[munpfk]?)(?P<what>g|mol|U|\[IU\])/(?P<under>[dmun]?)L")
_PREFIX = {"": 0, "k": 3, "d": -1, "m": -3, "u": -6, "n": -9, "p": -12, "f": -15}
_TOLERANCE = Decimal("0.03")


@dataclass(frozen=True, slots=True)
class Conversion:
    """One factor: a conventional value times `factor` is the SI value."""

    loinc: str
    name: str
    conventional: str
    si: str
    factor: Decimal


def _key(name: str) -> str:
    return " ".join(name.casefold().split())


@cache
def conversions() -> tuple[Conversion, ...]:
    """Return the factors whose units have UCUM codes, differ, and do not contradict the factor."""
    found = []
    for row in converters.analytes():
        conventional = ucum_code(row.traditional_unit, name=row.name)
        si = ucum_code(row.si_unit, name=row.name)
        if conventional is None or si is None or conventional == si:
            continue
        made = Conversion(
            row.loinc_num, row.name, conventional, si, Decimal(str(row.conversion_factor))
        )
        if not _contradicts_units(made):
            found.append(made)
    return tuple(found)


def _contradicts_units(made: Conversion) -> bool:
    """Return whether the prefixes of two units yield another factor, or an impossible molar mass.

    labunits 0.2.1 gives acetylcholinesterase 1 U/mL = 1 U/L, and norepinephrine 1 pg/mL = 5.91
    nmol/L (0.17 g/mol). Both are wrong by a thousand.
    """
    one, other = _SCALE.fullmatch(made.conventional), _SCALE.fullmatch(made.si)
    if one is None or other is None:
        return False
    expected = Decimal(10) ** (_power(one) - _power(other))
    if (one["what"], other["what"]) == ("g", "mol"):
        # Hydrogen is the lightest substance, with 1 g/mol.
        return expected / made.factor < 1
    if one["what"] != other["what"]:
        return False
    return abs(made.factor / expected - 1) > _TOLERANCE


def _power(m: re.Match[str]) -> int:
    return _PREFIX[m["top"]] - _PREFIX[m["under"]]


@cache
def conventional_units() -> dict[str, str]:
    """Return the conventional unit of each LOINC number of `labunits`, as `labunits` prints it."""
    return {row.loinc_num: row.traditional_unit for row in converters.analytes()}


@cache
def _by_name() -> dict[str, tuple[Conversion, ...]]:
    rows: dict[str, list[Conversion]] = defaultdict(list)
    for made in conversions():
        rows[_key(made.name)].append(made)
    for line in _NAMES.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            printed, _, name = line.partition(";")
            for variant in printed.split("|"):
                rows[_key(variant)] = list(rows.get(_key(name), ()))
    return {name: tuple(made) for name, made in rows.items()}


@cache
def _by_loinc() -> dict[str, Conversion]:
    return {made.loinc: made for made in conversions()}


def converted(value: Quantity, *, name: str, loinc: str | None = None) -> Quantity | None:
    """Return a value in the other unit system; None if no single factor fits name and unit.

    A product is exact; a quotient has 6 significant figures. A LOINC number that `labunits` does
    not have leaves the name to decide.
    """
    if value.number is None or value.unit is None:
        return None
    rows: Iterable[Conversion] = _by_name().get(_key(name), ())
    if loinc is not None and loinc in _by_loinc():
        rows = (_by_loinc()[loinc],)
    to_si = {(c.si, c.factor) for c in rows if c.conventional == value.unit}
    to_conventional = {(c.conventional, c.factor) for c in rows if c.si == value.unit}
    if len(to_si) + len(to_conventional) != 1:
        return None
    unit, factor = next(iter(to_si or to_conventional))

    def amount(number: Decimal) -> Decimal:
        if to_si:
            return _plain(_PRODUCT.multiply(number, factor))
        return _plain(_DIVISION.divide(number, factor))

    return value.model_copy(
        update={
            "number": amount(value.number),
            "high": None if value.high is None else amount(value.high),
            "unit": unit,
        }
    )


def _plain(number: Decimal) -> Decimal:
    """Return a number without an exponent and without zeros at its end."""
    text = format(number, "f")
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)
