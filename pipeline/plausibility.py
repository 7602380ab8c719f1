"""Numbers that can hardly be right: outside what a living patient shows, or far off their range.

Pure; imports the reply's schema. A lost decimal point is the commonest slip of OCR (`7.2` read as
`72`), so a value ten times its range is doubted even where the analyte is not in the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.provider.schemas import FoundEntity

IMPLAUSIBLE = "implausible_value"

_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_FACTOR = 6.0
"""How far beyond its own reference range a value is doubted; enzymes in acute disease go further,
and a reviewer then confirms what is right: a flag is cheap, a wrong number is not."""

_LIMITS: tuple[tuple[str, float, float], ...] = (
    (r"blood pressure|\bbp\b", 20, 300),
    (r"heart rate|pulse\b|\bhr\b", 20, 300),
    (r"respirat|\brr\b", 4, 80),
    (r"temp", 25, 115),
    (r"spo2|o2 sat|saturation|pulse ox", 40, 100),
    (r"\bbmi\b|body mass", 8, 100),
    (r"\bpain", 0, 10),
    (r"a1c|glycated", 3, 20),
    (r"potassium|\bk\b", 1.2, 10),
    (r"sodium|\bna\b", 90, 200),
    (r"chloride|\bcl\b", 60, 150),
    (r"bicarbonate|\bco2\b|\bhco3\b", 4, 60),
    (r"creatinine", 0.1, 25),
    (r"urea nitrogen|\bbun\b", 1, 250),
    (r"calcium", 2, 20),
    (r"magnesium", 0.3, 10),
    (r"phosph(ate|orus)", 0.3, 20),
    (r"albumin", 0.5, 8),
    (r"hemoglobin|\bhgb\b|\bhb\b", 2, 25),
    (r"hematocrit|\bhct\b", 6, 75),
    (r"platelet|\bplt\b", 1, 3000),
    (r"\bwbc\b|white (blood )?cell|leukocyte", 0.1, 500),
    (r"\brbc\b|red (blood )?cell", 0.5, 10),
    (r"\bmcv\b", 40, 160),
    (r"\binr\b", 0.5, 20),
    (r"\btsh\b", 0.001, 300),
    (r"glucose", 10, 1800),
    (r"\bph\b", 4, 9),
)
"""Bounds of survival in the usual units of the United States; wide on purpose."""
_COMPILED = tuple((re.compile(pattern, re.I), low, high) for pattern, low, high in _LIMITS)


def doubts(entity: FoundEntity) -> Iterator[str]:
    """Yield the reasons why a person should look at this entity's number."""
    if entity.category not in ("vital", "lab") or entity.value is None:
        return
    numbers = [float(n.replace(",", ".")) for n in _NUMBER.findall(entity.value)]
    if numbers and (_outside_life(entity, numbers) or _far_off_range(entity, numbers)):
        yield IMPLAUSIBLE


def _outside_life(entity: FoundEntity, numbers: list[float]) -> bool:
    for pattern, low, high in _COMPILED:
        if pattern.search(entity.name):
            return any(not low <= n <= high for n in numbers)
    return False


def _far_off_range(entity: FoundEntity, numbers: list[float]) -> bool:
    bounds = [float(n.replace(",", ".")) for n in _NUMBER.findall(entity.reference_range or "")]
    if entity.category != "lab" or not bounds or max(bounds) <= 0:
        return False
    return any(n > max(bounds) * _FACTOR or 0 < n < min(bounds) / _FACTOR for n in numbers)
