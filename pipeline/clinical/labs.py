"""Structure a laboratory result: value, unit, converted value, reference range and flag.

The printed value always stays. A part that is not understood is flagged and left out.
"""

from __future__ import annotations

import re

from pipeline.clinical.attributes import Interpretation, LabAttributes, Quantity, Range
from pipeline.clinical.enrichment_flags import EnrichmentFlag, flagged
from pipeline.clinical.lab_conversion import converted
from pipeline.clinical.numbers import (
    DecimalSign,
    as_sign,
    decimal_sign,
    has_both_signs,
    read_number,
)
from pipeline.clinical.printed_values import is_same_unit, split_unit, without_comment
from pipeline.clinical.ranges import (
    ReadRange,
    computed_flag,
    contradicts,
    read_range,
)
from pipeline.clinical.structured import Printed, Structured
from pipeline.clinical.units import UnitContext, ucum_code

_DECIMAL_FLAG = "decimal_sign_contradicts"
"""Pass 1's flag of a number whose decimal sign its source leaves open."""
_GROUP = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:[.,][0-9]{3})+(?![0-9]|[.,][0-9])")
_POWER = re.compile(r"[x×*][ ]?10", re.I)
_LONGEST = 200
_WHOLE = frozenset({"/uL", "/mm3", "{cells}/uL", "{cells}/mm3", "{#}/uL"})
"""Units of counts, which have no decimals: `250,000 /uL` is a quarter of a million,
however the number is grouped."""


def lab_attributes(printed: Printed) -> Structured:
    """Return the attributes of a laboratory result."""
    flags: list[str] = []
    day = printed.facts.entity_date
    text, unit = _value_and_unit(printed)
    code = ucum_code(unit, name=printed.facts.name) if unit else None
    if unit and code is None:
        flags.append(flagged(EnrichmentFlag.UNIT_UNKNOWN))
    shown = _ungrouped(without_comment((printed.reference_range or "")[:_LONGEST]), code)
    sign = decimal_sign(text, shown) or as_sign(printed.decimal_sign)
    value, word = _value(printed, _ungrouped(text, code), sign, flags)
    if value is not None:
        value = value.model_copy(update={"unit": code, "printed_unit": unit or None})
    reference = _reference(printed, shown, unit, sign, flags)
    computed = _recomputed(printed, value, reference)
    expected = reference.range.text if reference else None
    if contradicts(printed.abnormal_flag, computed or _of_words(word, expected)):
        flags.append(flagged(EnrichmentFlag.FLAG_DIFFERS))
    return Structured(
        attributes=LabAttributes(
            value=value,
            value_text=word,
            converted=_converted(printed, value),
            reference_range=reference.range if reference else None,
            printed_flag=printed.abnormal_flag,
            computed_flag=computed,
            effective=day.isoformat() if day else None,
        ),
        flags=tuple(flags),
    )


def _of_words(word: str | None, expected: str | None) -> Interpretation | None:
    """Return N for a word that is the expected result; other words are not compared."""
    if word is None or expected is None:
        return None
    return "N" if word.casefold() == expected.casefold() else None


def _value_and_unit(printed: Printed) -> tuple[str, str]:
    value = without_comment((printed.value or "").strip())
    unit = without_comment((printed.unit or "").strip())
    if read_number(value).is_understood:
        return value, unit
    text, found = split_unit(value, unit or None, UnitContext.LAB, printed.facts.name)
    return text, found.strip()


def _ungrouped(text: str, code: str | None) -> str:
    """Return numbers of counts without the signs of their groups."""
    return _GROUP.sub(lambda m: re.sub("[.,]", "", m[0]), text) if code in _WHOLE else text


def _value(
    printed: Printed, text: str, sign: DecimalSign | None, flags: list[str]
) -> tuple[Quantity | None, str | None]:
    if not text:
        return None, None
    read = read_number(text, sign=sign)
    if read.text is not None:
        return None, read.text
    if read.number is None or _is_open(printed) or has_both_signs(text, printed.reference_range):
        flags.append(flagged(EnrichmentFlag.NUMBER_NOT_UNDERSTOOD, "value"))
        return Quantity(printed=printed.value or text), None
    return (
        Quantity(
            printed=printed.value or text,
            number=read.number,
            high=read.high,
            comparator=read.comparator,
        ),
        None,
    )


def _is_open(printed: Printed) -> bool:
    return any(f.partition(":")[0] == _DECIMAL_FLAG for f in printed.facts.review_flags)


def _reference(
    printed: Printed, shown: str, unit: str, sign: DecimalSign | None, flags: list[str]
) -> ReadRange | None:
    """Return the reference range; `shown` is the range without signs of groups."""
    whole = printed.reference_range
    if whole is None or not whole.strip():
        return None
    found = read_range(shown, sign=sign, name=printed.facts.name, unit=unit)
    if _is_open(printed) and found.range.text is None:
        found = ReadRange(Range(printed=whole))
    if not found.is_understood:
        flags.append(flagged(EnrichmentFlag.RANGE_NOT_UNDERSTOOD))
    return ReadRange(found.range.model_copy(update={"printed": whole}), found.printed_unit)


def _recomputed(
    printed: Printed, value: Quantity | None, reference: ReadRange | None
) -> Interpretation | None:
    """Return the recomputed flag; None if the range has another unit than the value."""
    if value is None or reference is None:
        return None
    if _has_power(value) and not _POWER.search(reference.range.printed):
        # The range can mean the number before the power of ten.
        return None
    theirs, name = reference.printed_unit, printed.facts.name
    if theirs and not is_same_unit(theirs, value.printed_unit, UnitContext.LAB, name):
        return None
    return computed_flag(value, reference.range)


def _has_power(value: Quantity) -> bool:
    """Return whether a power of ten belongs to the number, not to the unit."""
    if _POWER.search(value.printed_unit or ""):
        return False
    return _POWER.search(value.printed) is not None


def _converted(printed: Printed, value: Quantity | None) -> Quantity | None:
    if value is None:
        return None
    system, _, code = (printed.facts.code or "").partition("|")
    return converted(
        value, name=printed.facts.name, loinc=code if system == "LOINC" and code else None
    )
