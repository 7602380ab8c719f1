"""Structured values that follow from the printed value alone: numbers, units, ranges, doses, times.

Every rule states the reading of the samples' own notation. UCUM codes are those of UCUM 2.2.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

Json = dict[str, Any]

UNITS: dict[str, tuple[str, ...]] = {
    "%": ("%",),
    "/hpf": ("/[HPF]",),
    "/min": ("/min", "{breaths}/min"),
    "IU/L": ("[IU]/L", "[iU]/L"),
    "IU/mL": ("[IU]/mL", "[iU]/mL"),
    "K/uL": ("10*3/uL", "10^3/uL"),
    "U/L": ("U/L",),
    "bpm": ("/min", "{beats}/min"),
    "fL": ("fL",),
    "g": ("g",),
    "g/dL": ("g/dL",),
    "in": ("[in_i]", "[in_us]"),
    "kg/m2": ("kg/m2",),
    "lb": ("[lb_av]",),
    "mEq": ("meq",),
    "mIU/L": ("m[IU]/L", "m[iU]/L"),
    "mL": ("mL",),
    "mL/min/1.73m2": ("mL/min/{1.73_m2}", "mL/min/1.73.m2", "mL/min/{1.73m2}"),
    "mcg": ("ug",),
    "mg": ("mg",),
    "mg/L": ("mg/L",),
    "mg/dL": ("mg/dL",),
    "mg/g": ("mg/g",),
    "mg/g creat": ("mg/g{creat}", "mg/g"),
    "mmHg": ("mm[Hg]",),
    "mmol/L": ("mmol/L",),
    "ng/dL": ("ng/dL",),
    "ng/mL": ("ng/mL",),
    "pg": ("pg",),
    "pg/mL": ("pg/mL",),
    "ug/dL": ("ug/dL",),
    "ug/mL": ("ug/mL",),
    "x10E3/uL": ("10*3/uL", "10^3/uL"),
    "x10E6/uL": ("10*6/uL", "10^6/uL"),
    "°F": ("[degF]",),
}
"""Printed unit → UCUM codes of the same meaning, the usual code first."""
UNCERTAIN_UNITS: dict[str, tuple[str, ...]] = {
    "units": ("[IU]", "[iU]", "{unit}", "{units}", "[USP'U]"),
    "tablet": ("{tablet}", "{tbl}", "{Tablet}"),
}
"""Printed unit → UCUM codes that are allowed but not required."""
SI: dict[str, tuple[str, tuple[str, ...]]] = {
    "1742-6": ("1", ("U/L",)),
    "1751-7": ("10", ("g/L",)),
    "6768-6": ("1", ("U/L",)),
    "1920-8": ("0.017", ("ukat/L",)),
    "3094-0": ("0.357", ("mmol/L",)),
    "2160-0": ("88.4", ("umol/L",)),
    "2276-4": ("1", ("ug/L",)),
    "2345-7": ("0.05551", ("mmol/L",)),
    "4548-4": ("0.01", ("1", "{fraction}", "{ratio}")),
    "19123-9": ("0.4114", ("mmol/L",)),
    "2500-7": ("0.179", ("umol/L",)),
    "2571-8": ("0.01129", ("mmol/L",)),
    "10839-9": ("1", ("ug/L",)),
    # The samples print these in SI units; the other system has mEq/L.
    "2028-9": ("1", ("meq/L", "mmol/L")),
    "2075-0": ("1", ("meq/L", "mmol/L")),
    "2823-3": ("1", ("meq/L", "mmol/L")),
    "2951-2": ("1", ("meq/L", "mmol/L")),
}
"""LOINC → factor of `labunits` and UCUM codes of the other unit system."""
ROUTES: dict[str, tuple[str, ...]] = {
    "PO": ("oral", "by mouth"),
    "by mouth": ("oral", "by mouth"),
    "oral": ("oral", "by mouth"),
    "IV": ("intravenous",),
    "subcut": ("subcutaneous",),
    "inhaled": ("inhaled", "inhalation", "respiratory (inhalation)"),
    "nebulized": ("nebulized", "inhaled", "inhalation", "respiratory (inhalation)"),
}
"""Printed route → words of the same meaning."""
_DAILY: Json = {"frequency": 1, "period": 1, "period_unit": "d"}
TIMINGS: dict[str, tuple[Json, Json]] = {
    "daily": (_DAILY, {}),
    "once daily": (_DAILY, {}),
    "every morning": ({**_DAILY, "when": ["MORN"]}, {}),
    "at bedtime": ({**_DAILY, "when": ["HS"]}, {}),
    "nightly": (_DAILY, {"when": [{"one_of": ["HS", "NIGHT"]}]}),
    "BID": ({**_DAILY, "frequency": 2}, {}),
    "twice daily": ({**_DAILY, "frequency": 2}, {}),
    "TID": ({**_DAILY, "frequency": 3}, {}),
    "weekly": ({**_DAILY, "period_unit": "wk"}, {}),
    "q4h PRN": ({"frequency": 1, "period": 4, "period_unit": "h", "as_needed": True}, {}),
    "q6h PRN": ({"frequency": 1, "period": 6, "period_unit": "h", "as_needed": True}, {}),
    "q8h PRN": ({"frequency": 1, "period": 8, "period_unit": "h", "as_needed": True}, {}),
    "once": ({"count": 1}, {"frequency": 1}),
}
"""Printed frequency → required and allowed values of the timing."""
_WORDS = {"one": "1", "two": "2"}
_NUMBER = re.compile(r"([<>]=?)?\s*(\d[\d,]*(?:\.\d+)?)")
_RANGE = re.compile(r"(\d[\d.]*)-(\d[\d.]*)$")


def one_of(values: tuple[str, ...]) -> Any:
    """Return the only value, or the alternatives."""
    return values[0] if len(values) == 1 else {"one_of": list(values)}


def number(printed: str) -> Decimal | None:
    """Return the number of a printed value; None for a word, a titer or an ordinal."""
    found = _NUMBER.fullmatch(printed)
    return Decimal(found[2].replace(",", "")) if found else None


def quantity(printed: str, unit: str | None) -> tuple[Json, Json]:
    """Return the required and the allowed parts of a quantity."""
    found = _NUMBER.fullmatch(printed)
    if found is None:
        raise ValueError(f"{printed!r} is not a number")
    required: Json = {"number": found[2].replace(",", "")}
    if found[1]:
        required["comparator"] = found[1]
    if unit in UNCERTAIN_UNITS:
        return required, {"unit": one_of(UNCERTAIN_UNITS[unit])}
    if unit:
        required["unit"] = one_of(UNITS[unit])
    return required, {}


def dose(printed: str) -> tuple[Json, Json]:
    """Return the required and the allowed parts of a printed dose such as `2,000 units`."""
    amount, _, unit = printed.partition(" ")
    return quantity(_WORDS.get(amount, amount), unit)


def reference_range(printed: str) -> Json:
    """Return the structured range."""
    if found := _RANGE.match(printed):
        return {"low": found[1], "high": found[2]}
    if printed[0] == ">":
        return {"low": printed[1:], "low_is_exclusive": True}
    if printed[0] == "<":
        return {"high": printed[1:], "high_is_exclusive": True}
    return {"text": printed}


def flag(value: str, limits: Json) -> str | None:
    """Return H, L or N by comparing value and range; None if either is not a number."""
    amount = number(value)
    if amount is None or "text" in limits:
        return None
    low, high = (Decimal(limits[k]) if k in limits else None for k in ("low", "high"))
    if low is not None and (amount < low or (limits.get("low_is_exclusive") and amount == low)):
        return "L"
    if high is not None and (amount > high or (limits.get("high_is_exclusive") and amount == high)):
        return "H"
    return "N"


def converted(value: str, loinc: str | None) -> Json | None:
    """Return the value in the other unit system, by the factor of `labunits`."""
    amount = number(value)
    if amount is None or loinc is None:
        return None
    factor, units = SI[loinc]
    found: Json = {"number": str(amount * Decimal(factor)), "unit": one_of(units)}
    if value[0] in "<>":
        found["comparator"] = value[0]
    return found


def daily(amount: Json, timing: Json) -> Json | None:
    """Return the daily dose of a regular regimen in days; None if no daily dose follows.

    A weekly medicine has none: an average per day would read as a dose that is taken each day.
    """
    if timing.get("period_unit") != "d" or timing.get("as_needed"):
        return None
    total = Decimal(amount["number"]) * timing["frequency"] / timing["period"]
    found = {"number": str(total)}
    return {**found, "unit": amount["unit"]} if "unit" in amount else found
