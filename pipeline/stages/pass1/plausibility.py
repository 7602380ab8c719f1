"""Checks for doubtful numbers: impossible for a living person, or far above the printed range.

This module is pure. A bound applies only to the units that it was written for. OCR most often loses
the decimal point (`7.2` becomes `72`). So a value far above its printed range is doubted even if
the table lacks the analyte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipeline.clinical.page_text.spellings import fold
from pipeline.providers.schemas import FoundEntity
from pipeline.stages.pass1.review_flags import Flag

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LOST_POINT = 6.0
"""Factor above a range with decimals at which a whole number may have lost its point. The smallest
such error for `4.0-5.6` is 40, seven times the upper bound."""
_FAR_OFF = 50.0
"""Factor above the range at which any value is doubted; enzymes in acute disease reach about 20."""
_WIDE = re.compile(
    r"troponin|\bcrp\b|c-reactive|bnp|hcg|d-?dimer|procalcitonin|\bck\b|creatine kinase|\brna\b"
    r"|\bdna\b|ferritin|\bpsa\b|\bcea\b|\bafp\b|\bige\b|antibod|\bca[ -]?\d"
)
"""Tests whose values exceed their range by any factor in common diseases."""
_NO_AMOUNT = re.compile(r"\d+:\d+|\d\+|\+\d")
"""A titer or a grade: its figures are no amount."""


class UnitBounds(NamedTuple):
    """The values that a living person can have, in some units."""

    units: str
    """Folded units, separated by blanks; `-` means a value without a unit."""
    low: float
    high: float


class SurvivalLimits(NamedTuple):
    """The bounds of one measurement."""

    names: str
    bounds: tuple[UnitBounds, ...]


_PER_UL = "10^3/ul 10^9/l"
VITALS: tuple[SurvivalLimits, ...] = (
    SurvivalLimits(
        r"blood pressure|\bbp\b", (UnitBounds("mmhg -", 20, 300), UnitBounds("kpa", 2.6, 40))
    ),
    SurvivalLimits(r"heart rate|pulse(?! ox)\b|\bhr\b", (UnitBounds("bpm /min -", 20, 300),)),
    SurvivalLimits(r"respirat|\brr\b", (UnitBounds("bpm /min -", 4, 90),)),
    # Survived: 13.7 °C (Gilbert 2000, Lancet 355:375) and 46.5 °C (Slovis 1982, Ann Emerg Med).
    SurvivalLimits(r"temp", (UnitBounds("°f f - °", 56, 116), UnitBounds("°c c - °", 13, 46.5))),
    SurvivalLimits(r"spo2|\bo2\b|saturation|pulse ox", (UnitBounds("% -", 30, 100),)),
    SurvivalLimits(r"\bbmi\b|body mass", (UnitBounds("kg/m^2 kg/m2 -", 7, 210),)),
    SurvivalLimits(r"\bpain", (UnitBounds("-", 0, 10),)),
)
LABS: tuple[SurvivalLimits, ...] = (
    SurvivalLimits(
        r"(hemoglobin|hgb|hb) ?a1c|a1c|hba1c|glycated hemoglobin",
        (UnitBounds("% -", 3, 20), UnitBounds("mmol/mol", 9, 195)),
    ),
    SurvivalLimits(r"potassium|k", (UnitBounds("mmol/l meq/l -", 1, 15),)),
    SurvivalLimits(r"sodium|na", (UnitBounds("mmol/l meq/l -", 90, 210),)),
    SurvivalLimits(r"chloride|cl", (UnitBounds("mmol/l meq/l -", 50, 180),)),
    SurvivalLimits(r"bicarbonate|co2|carbon dioxide|hco3", (UnitBounds("mmol/l meq/l -", 2, 65),)),
    SurvivalLimits(
        r"creatinine|creat|cr", (UnitBounds("mg/dl -", 0.1, 40), UnitBounds("umol/l", 8, 3_540))
    ),
    SurvivalLimits(
        r"(blood )?urea nitrogen|bun",
        (UnitBounds("mg/dl -", 1, 300), UnitBounds("mmol/l", 0.3, 110)),
    ),
    SurvivalLimits(
        r"(total )?calcium|ca", (UnitBounds("mg/dl -", 2, 25), UnitBounds("mmol/l", 0.5, 6.3))
    ),
    SurvivalLimits(
        r"magnesium|mg",
        (
            UnitBounds("mg/dl -", 0.2, 25),
            UnitBounds("mmol/l", 0.1, 10.3),
            UnitBounds("meq/l", 0.1, 20.6),
        ),
    ),
    SurvivalLimits(
        r"phosphorus|phosphate", (UnitBounds("mg/dl -", 0.2, 30), UnitBounds("mmol/l", 0.06, 10))
    ),
    SurvivalLimits(r"albumin", (UnitBounds("g/dl -", 0.5, 8), UnitBounds("g/l", 5, 80))),
    SurvivalLimits(
        r"hemoglobin|hgb|hb",
        (UnitBounds("g/dl -", 1, 26), UnitBounds("g/l", 10, 260), UnitBounds("mmol/l", 0.6, 16.2)),
    ),
    SurvivalLimits(r"hematocrit|hct", (UnitBounds("% -", 3, 80), UnitBounds("l/l -", 0.03, 0.8))),
    SurvivalLimits(
        r"platelets?( count)?|plt",
        (UnitBounds(f"{_PER_UL} -", 0, 5_000), UnitBounds("/ul cells/ul -", 0, 5_000_000)),
    ),
    SurvivalLimits(
        r"wbc( count)?|white blood cells?( count)?",
        (UnitBounds(f"{_PER_UL} -", 0, 1_500), UnitBounds("/ul cells/ul -", 0, 1_500_000)),
    ),
    SurvivalLimits(
        r"rbc( count)?|red blood cells?( count)?",
        (
            UnitBounds("10^6/ul 10^12/l -", 0.3, 12),
            UnitBounds("/ul cells/ul -", 300_000, 12_000_000),
        ),
    ),
    SurvivalLimits(r"mcv", (UnitBounds("fl -", 40, 170),)),
    SurvivalLimits(r"inr", (UnitBounds("ratio -", 0.5, 30),)),
    SurvivalLimits(r"tsh", (UnitBounds("miu/l uiu/ml mu/l uu/ml -", 0, 1_500),)),
    SurvivalLimits(
        r"glucose|blood sugar", (UnitBounds("mg/dl -", 5, 3_000), UnitBounds("mmol/l", 0.3, 167))
    ),
    SurvivalLimits(r"arterial ph|blood ph", (UnitBounds("-", 6.3, 8),)),
    # Urine is more acid than blood.
    SurvivalLimits(r"ph", (UnitBounds("-", 4, 9),)),
)
"""Wide bounds of survival: a value outside them is a misread number or unit, never a finding. They
are no reference ranges. The bounds in two units of one analyte are the same amount."""
_SPECIMEN = re.compile(r"^(serum|plasma|blood|whole blood|venous) |,? (serum|plasma|blood)$")
_COMPILED = {
    "vital": tuple((re.compile(limits.names), limits.bounds) for limits in VITALS),
    "lab": tuple((re.compile(f"(?:{limits.names})$"), limits.bounds) for limits in LABS),
}


def doubts(entity: FoundEntity) -> Iterator[Flag]:
    """Yield the reasons why a person must check this entity's number."""
    if entity.category not in _COMPILED or entity.value is None:
        return
    value = fold(entity.value)
    numbers = [float(n) for n in _NUMBER.findall(value)]
    if not numbers or _NO_AMOUNT.search(value):
        return
    doubt = _outside_life(entity, numbers)
    if doubt is None and _is_far_off_range(entity, numbers):
        doubt = Flag.UNUSUAL_SIZE
    if doubt is not None:
        yield doubt


def _outside_life(entity: FoundEntity, numbers: list[float]) -> Flag | None:
    name = _SPECIMEN.sub("", entity.name.lower().strip())
    for pattern, bounds in _COMPILED[entity.category]:
        found = pattern.match(name) if entity.category == "lab" else pattern.search(name)
        if found:
            unit = fold(entity.unit) if entity.unit else "-"
            fitting = [each for each in bounds if unit in each.units.split()]
            if unit == "-" and (limits := _range(entity)):
                # A number without a unit is in the unit of its range.
                fitting = [each for each in bounds if _are_within(limits, [each])]
            if not fitting or _are_within(numbers, fitting):
                return None
            # Without a range too, the number may be in another unit than the usual one.
            is_open = unit == "-" and _are_within(numbers, bounds) and not _range(entity)
            return Flag.UNUSUAL_SIZE if is_open else Flag.IMPLAUSIBLE
    return None


def _are_within(numbers: list[float], bounds: Sequence[UnitBounds]) -> bool:
    return any(all(each.low <= n <= each.high for n in numbers) for each in bounds)


def _is_far_off_range(entity: FoundEntity, numbers: list[float]) -> bool:
    limits = _range(entity)
    if entity.category != "lab" or not limits or max(limits) <= 0:
        return False
    in_decimals = "." in fold(entity.reference_range or "")
    is_whole = "." not in fold(entity.value or "")
    if not (in_decimals and is_whole) and _WIDE.search(entity.name.lower()):
        return False
    factor = _LOST_POINT if in_decimals and is_whole else _FAR_OFF
    return any(n > max(limits) * factor for n in numbers)


def _range(entity: FoundEntity) -> list[float]:
    return [float(n) for n in _NUMBER.findall(fold(entity.reference_range or ""))]
