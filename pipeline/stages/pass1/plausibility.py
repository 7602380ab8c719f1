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
_SPECIMEN = re.compile(r"^(serum|plasma|blood|whole blood|venous) |,? (serum|plasma|blood)$")
_COMPILED = {
    "vital": tuple((re.compile(p), low, high) for p, low, high in _VITALS),
    "lab": tuple((re.compile(f"(?:{p})$"), low, high) for p, low, high in _LABS),
}


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
            return any(not low <= n <= high for n in numbers)
    return False


def _far_off_range(entity: FoundEntity, numbers: list[float]) -> bool:
    printed = _NUMBER.findall(_plain(entity.reference_range or ""))
    bounds = [float(n.replace(",", ".")) for n in printed]
    if entity.category != "lab" or not bounds or max(bounds) <= 0:
        return False
    in_decimals = any("." in n or "," in n for n in printed)
    whole = "." not in (entity.value or "")
    factor = _LOST_POINT if in_decimals and whole else _FAR_OFF
    return any(n > max(bounds) * factor for n in numbers)
