"""Checks for doubtful numbers: impossible for a living person, far off range, or not in the quote.

This module is pure. OCR most often loses the decimal point (`7.2` becomes `72`). So a value far
above its printed range is doubted even if the table lacks the analyte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.providers.schemas import FoundEntity

IMPLAUSIBLE = "implausible_value"
UNQUOTED = "number_not_in_quote"

_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_FIGURE = re.compile(r"\d+(?:[.,]\d+)?|(?<![\w.,])[.,]\d+")
_LOST_POINT = 6.0
"""Factor above a range with decimals at which a whole number may have lost its point. The smallest
such error for `4.0-5.6` is 40, seven times the upper bound."""
_FAR_OFF = 50.0
"""Factor above the range at which any value is doubted; enzymes in acute disease reach about 20."""

_VITALS = (
    (r"blood pressure|\bbp\b", 20, 300),
    (r"heart rate|pulse(?! ox)\b|\bhr\b", 20, 300),
    (r"respirat|\brr\b", 4, 80),
    (r"temp", 25, 115),
    (r"spo2|\bo2\b|saturation|pulse ox", 40, 100),
    (r"\bbmi\b|body mass", 8, 100),
    (r"\bpain", 0, 10),
)
_LABS = (
    (r"(hemoglobin|hgb|hb) ?a1c|a1c|glycated hemoglobin", 3, 20),
    (r"potassium|k", 1.2, 10),
    (r"sodium|na", 90, 200),
    (r"chloride|cl", 60, 150),
    (r"bicarbonate|co2|carbon dioxide|hco3", 4, 60),
    (r"creatinine|creat|cr", 0.1, 25),
    (r"(blood )?urea nitrogen|bun", 1, 250),
    (r"(total )?calcium|ca", 2, 20),
    (r"magnesium|mg", 0.3, 10),
    (r"phosphorus|phosphate", 0.3, 20),
    (r"albumin", 0.5, 8),
    (r"hemoglobin|hgb|hb", 2, 25),
    (r"hematocrit|hct", 6, 75),
    (r"platelets?( count)?|plt", 1, 3_000_000),
    (r"wbc( count)?|white blood cells?( count)?", 0.1, 500_000),
    (r"rbc( count)?|red blood cells?( count)?", 0.5, 10_000_000),
    (r"mcv", 40, 160),
    (r"inr", 0.5, 20),
    (r"tsh", 0.001, 300),
    (r"glucose|blood sugar", 10, 1_800),
    (r"(arterial )?ph", 6.5, 8),
)
"""Bounds of survival in the usual units of the United States, wide on purpose. Cell counts are
printed per microlitre or in thousands, so their upper bounds allow both."""
_SI = (
    (r"(hemoglobin|hgb|hb) ?a1c|a1c|glycated hemoglobin", r"mmol/mol", 10.9),
    (r"creatinine|creat|cr", r"[µμu]mol/l", 88.4),
    (r"(blood )?urea nitrogen|bun", r"mmol/l", 0.357),
    (r"(total )?calcium|ca", r"mmol/l", 0.25),
    (r"magnesium|mg", r"mmol/l", 0.411),
    (r"phosphorus|phosphate", r"mmol/l", 0.323),
    (r"albumin|hemoglobin|hgb|hb", r"g/l", 10.0),
    (r"hematocrit|hct", r"l/l", 0.01),
    (r"glucose|blood sugar", r"mmol/l", 0.0555),
)
"""Name, SI unit, and the factor from the usual unit of the United States to the SI unit."""
_WIDE = re.compile(
    r"troponin|\bcrp\b|c-reactive|bnp|hcg|d-?dimer|procalcitonin|\bck\b|creatine kinase|\brna\b"
    r"|\bdna\b|ferritin|\bpsa\b|\bcea\b|\bafp\b|\bige\b|antibod|\bca[ -]?\d"
)
"""Tests whose values exceed their range by any factor in common diseases."""
_NEAR = 4.0
"""A value within this factor of its printed range is possible in the unit of the range."""
_SPECIMEN = re.compile(r"^(serum|plasma|blood|whole blood|venous) |,? (serum|plasma|blood)$")
_COMPILED = {
    "vital": tuple((re.compile(p), low, high) for p, low, high in _VITALS),
    "lab": tuple((re.compile(f"(?:{p})$"), low, high) for p, low, high in _LABS),
}
_SI_COMPILED = tuple((re.compile(f"(?:{p})$"), re.compile(f"{u}$"), f) for p, u, f in _SI)


def doubts(entity: FoundEntity) -> Iterator[str]:
    """Yield the reasons why a person must check this entity's number."""
    if entity.category not in ("vital", "lab") or entity.value is None:
        return
    numbers = [float(n.replace(",", ".")) for n in _NUMBER.findall(_plain(entity.value))]
    if numbers and (_outside_life(entity, numbers) or _far_off_range(entity, numbers)):
        yield IMPLAUSIBLE


def unquoted(entity: FoundEntity, quote: str) -> Iterator[str]:
    """Yield a reason if a number of the entity is missing from the quoted text.

    `quote` is the page's own text. A model can quote a row correctly and still report another dose.
    """
    printed = set(_figures(quote))
    reported = (
        entity.value,
        entity.strength,
        entity.dose,
        entity.previous_dose,
        entity.reference_range,
    )
    if any(number not in printed for text in reported if text for number in _figures(text)):
        yield UNQUOTED


def _figures(text: str) -> list[str]:
    return [_canonical(number) for number in _FIGURE.findall(_plain(text))]


def _canonical(number: str) -> str:
    whole, _, part = number.replace(",", ".").partition(".")
    return f"{whole.lstrip('0') or '0'}.{part}" if part else whole.lstrip("0") or "0"


def _plain(text: str) -> str:
    """Return a number's text without its thousands separators."""
    return re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)


def _outside_life(entity: FoundEntity, numbers: list[float]) -> bool:
    name = _SPECIMEN.sub("", entity.name.lower().strip())
    for pattern, low, high in _COMPILED[entity.category]:
        found = pattern.match(name) if entity.category == "lab" else pattern.search(name)
        if found:
            factor = _si_factor(name, entity.unit)
            outside = any(not low * factor <= n <= high * factor for n in numbers)
            return outside and not _is_near_range(entity, numbers)
    return False


def _si_factor(name: str, unit: str | None) -> float:
    """Return the factor that turns the usual bounds into bounds in `unit`."""
    plain = (unit or "").lower().replace(" ", "")
    for pattern, of_unit, factor in _SI_COMPILED:
        if pattern.match(name) and of_unit.match(plain):
            return factor
    return 1.0


def _is_near_range(entity: FoundEntity, numbers: list[float]) -> bool:
    """Return whether a value without a unit suits the printed range, which can be in SI units."""
    printed = _NUMBER.findall(_plain(entity.reference_range or ""))
    bounds = [float(n.replace(",", ".")) for n in printed]
    if entity.unit or len(bounds) != 2 or min(bounds) <= 0:
        return False
    return all(min(bounds) / _NEAR <= n <= max(bounds) * _NEAR for n in numbers)


def _far_off_range(entity: FoundEntity, numbers: list[float]) -> bool:
    printed = _NUMBER.findall(_plain(entity.reference_range or ""))
    bounds = [float(n.replace(",", ".")) for n in printed]
    is_titer = ":" in (entity.value or "")
    if entity.category != "lab" or is_titer or not bounds or max(bounds) <= 0:
        return False
    in_decimals = any("." in n or "," in n for n in printed)
    whole = "." not in (entity.value or "")
    if not (in_decimals and whole) and _WIDE.search(entity.name.lower()):
        return False
    factor = _LOST_POINT if in_decimals and whole else _FAR_OFF
    return any(n > max(bounds) * factor for n in numbers)
