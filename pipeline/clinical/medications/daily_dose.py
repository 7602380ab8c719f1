"""The daily dose that follows from dose, timing and strength, and from nothing else.

The arithmetic is exact. A dose as needed, a total number of doses, a rate, and a timing that is not
daily have no daily dose.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from pipeline.clinical.attributes import Quantity, Timing
from pipeline.clinical.medications.amounts import exact
from pipeline.clinical.medications.dose_units import UnitKind, kind_of_code

_PER_PLACE = frozenset({"ophthalmic", "otic", "nasal"})
"""A dose by these routes can be meant for each eye, ear or nostril."""
_BY_PLACE = frozenset({"{drop}", "{spray}"})
"""Units of products for eyes, ears and nostrils: without a route, the place is open."""
_HOURS_PER_DAY = 24


class _Ends(NamedTuple):
    low: Decimal
    high: Decimal


def daily_dose(
    dose: Quantity, timing: Timing, strength: tuple[Quantity, ...], *, route: str | None
) -> Quantity | None:
    """Return the daily dose; None if the text does not determine it.

    The unit is a UCUM unit per day. `printed` joins the printed texts that were multiplied.
    """
    times = _times_per_day(timing)
    if times is None or dose.number is None or dose.unit is None or dose.comparator:
        return None
    if route in _PER_PLACE or _is_rate(dose.unit):
        return None
    if route is None and dose.unit in _BY_PLACE:
        return None
    taken = _Ends(dose.number, dose.high if dose.high is not None else dose.number)
    unit, texts = dose.unit, [dose.printed, timing.printed]
    content = _content(dose.unit, strength)
    if content is not None:
        taken = _Ends(taken.low * content[0], taken.high * content[0])
        unit, texts = content[1], [dose.printed, strength[0].printed, timing.printed]
    low, high = exact(taken.low * times.low), exact(taken.high * times.high)
    return Quantity(
        printed=" × ".join(dict.fromkeys(texts)),
        number=low,
        high=high if high != low else None,
        unit=f"{unit}/d",
    )


def _times_per_day(timing: Timing) -> _Ends | None:
    if timing.as_needed or timing.count is not None:
        return None
    if timing.frequency is None or timing.period is None:
        return None
    most = timing.frequency_max if timing.frequency_max is not None else timing.frequency
    longest = timing.period_max if timing.period_max is not None else timing.period
    if timing.period_unit == "d" and timing.period == longest == 1:
        return _Ends(timing.frequency, most)
    if timing.period_unit == "h" and all(
        0 < period <= _HOURS_PER_DAY and _HOURS_PER_DAY % period == 0
        for period in (timing.period, longest)
    ):
        return _Ends(
            timing.frequency * (_HOURS_PER_DAY // longest),
            most * (_HOURS_PER_DAY // timing.period),
        )
    return None


def _is_rate(unit: str) -> bool:
    parts = (part.strip("()").rpartition(".")[2] for part in unit.split("/")[1:])
    return any(part in ("h", "min", "d", "{dose}") for part in parts)


def _content(unit: str, strength: tuple[Quantity, ...]) -> tuple[Decimal, str] | None:
    """Return what one unit of the dose contains, if the one strength says so."""
    if len(strength) != 1 or strength[0].number is None or strength[0].unit is None:
        return None
    number, (numerator, _, below) = strength[0].number, strength[0].unit.partition("/")
    if strength[0].high is not None or kind_of_code(numerator) is not UnitKind.MASS:
        return None
    kind = kind_of_code(unit)
    if kind is UnitKind.PIECE and below in ("", unit):
        return number, numerator
    if kind is UnitKind.SPRAY and kind_of_code(below) is UnitKind.SPRAY:
        return number, numerator
    if kind is UnitKind.VOLUME and below == unit:
        return number, numerator
    return None
