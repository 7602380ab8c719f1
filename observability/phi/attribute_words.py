"""The structured attributes of an enriched entity in words, one label and one text for each.

The keys are those of `pipeline.clinical.attributes`. An unknown key keeps its own name, so that no
stored attribute is hidden.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from pipeline.clinical.attributes import ATTRIBUTES

Attributes = Mapping[str, Any]

LABELS = {
    "laterality": "side",
    "converted": "converted (computed)",
    "daily_dose": "daily dose (computed)",
    "computed_flag": "flag (computed)",
    "printed_flag": "flag (printed)",
    "value_text": "result",
    "effective": "date",
    "occurrence": "date",
    "performed": "date",
    "abatement": "ended",
    "components": "systolic, diastolic",
    "clinical_status": "status",
    "verification_status": "verification",
}
FLAGS = {
    "HH": "critically high (HH)",
    "H": "high (H)",
    "N": "normal (N)",
    "L": "low (L)",
    "LL": "critically low (LL)",
    "A": "abnormal (A)",
}
PERIODS = {"min": "minute", "h": "hour", "d": "day", "wk": "week", "mo": "month", "a": "year"}
WHEN = {
    "MORN": "in the morning",
    "NOON": "at noon",
    "AFT": "in the afternoon",
    "EVE": "in the evening",
    "NIGHT": "at night",
    "HS": "at bedtime",
    "WAKE": "after waking",
    "C": "with meals",
    "CM": "with breakfast",
    "CD": "with lunch",
    "CV": "with dinner",
    "AC": "before meals",
    "ACM": "before breakfast",
    "ACD": "before lunch",
    "ACV": "before dinner",
    "PC": "after meals",
    "PCM": "after breakfast",
    "PCD": "after lunch",
    "PCV": "after dinner",
}
"""Codes of FHIR EventTiming."""
_SHOWN_WITH_ANOTHER = frozenset({"printed_route", "printed_onset"})
"""Printed forms that are shown only if the structured form is missing."""
_UNITS = {
    "[degF]": "°F",
    "Cel": "°C",
    "10*12": "10¹²",
    "10*9": "10⁹",
    "10*6": "10⁶",
    "10*3": "10³",
    "_av]": "]",
    "_i]": "]",
    "1.73_m2": "1.73 m²",
}
_NOTE = re.compile(r"(?<=\w)\{")
"""The annotation of a UCUM unit, such as `g{creat}`."""
_BRACKETS = str.maketrans("", "", "[]{}")
_TIMES = {"1": "once", "2": "twice"}


def attribute_words(category: str, attributes: Attributes) -> tuple[tuple[str, str], ...]:
    """Return label and words of each attribute that has a value, in the order of the model."""
    model = ATTRIBUTES.get(category)
    # PostgreSQL sorts the keys of a JSON object by their length.
    known = list(model.model_fields) if model else []
    order = {name: place for place, name in enumerate(known)}
    found = []
    for name, value in sorted(attributes.items(), key=lambda of: order.get(of[0], len(order))):
        if name in _SHOWN_WITH_ANOTHER:
            if attributes.get(name.removeprefix("printed_")) is not None:
                continue
            name, value = name.removeprefix("printed_"), f"{value} (as printed)"
        if words := _said(name, value):
            found.append((LABELS.get(name, name.replace("_", " ")), words))
    return tuple(found)


def quantity(value: Attributes) -> str:
    """Return `500 mg`, `1–2 tablets`, `< 0.5 mg/dL`; the printed text if it has no number."""
    number = value.get("number")
    if number is None:
        return f"{value.get('printed', '')} (as printed)".strip()
    high = value.get("high")
    unit = value.get("unit") or value.get("printed_unit") or ""
    said = f"{_number(number)}–{_number(high)}" if high is not None else _number(number)
    return " ".join(filter(None, (value.get("comparator"), said, unit_words(unit))))


def timing(value: Attributes) -> str:
    """Return `3 times a day, before meals`; the printed text if it has no structure."""
    count = value.get("count")
    parts = [
        _often(value),
        *(WHEN.get(code, code) for code in value.get("when") or ()),
        "as needed" if value.get("as_needed") else "",
        ("once only" if count == 1 else f"{count} times in total") if count else "",
    ]
    return ", ".join(filter(None, parts)) or f"{value.get('printed', '')} (as printed)"


def _often(value: Attributes) -> str:
    unit = PERIODS.get(str(value.get("period_unit")))
    if value.get("frequency") is None or value.get("period") is None or unit is None:
        return ""
    times = _span(value["frequency"], value.get("frequency_max"))
    period = _span(value["period"], value.get("period_max"))
    often = "" if times == "1" else f"{_TIMES.get(times, f'{times} times')} "
    if period == "1":
        return f"{often or 'once '}{'an' if unit == 'hour' else 'a'} {unit}"
    return f"{often}every {period} {unit}s"


def _span(low: object, high: object) -> str:
    return _number(low) if high is None else f"{_number(low)}–{_number(high)}"


def _range(value: Attributes) -> str:
    if value.get("text"):
        return str(value["text"])
    low, high = value.get("low"), value.get("high")
    if low is None and high is None:
        return f"{value.get('printed', '')} (as printed)"
    if low is None:
        return f"{'<' if value.get('high_is_exclusive') else '≤'} {_number(high)}"
    if high is None:
        return f"{'>' if value.get('low_is_exclusive') else '≥'} {_number(low)}"
    return f"{_number(low)}–{_number(high)}"


def unit_words(unit: str) -> str:
    """Return a UCUM unit as people write it, without brackets and braces."""
    for code, words in _UNITS.items():
        unit = unit.replace(code, words)
    return _NOTE.sub(" {", unit).translate(_BRACKETS)


def _number(number: object) -> str:
    try:
        return f"{Decimal(str(number)):f}"
    except InvalidOperation:
        return str(number)


def _quantities(values: Sequence[Attributes] | Attributes) -> str:
    if isinstance(values, Mapping):
        return quantity(values)
    return ", ".join(quantity(each) for each in values)


def _said(name: str, value: Any) -> str:
    if value in (None, "", [], (), {}):
        return ""
    if name in _WORDS:
        return _WORDS[name](value)
    if isinstance(value, Mapping | list):
        return _quantities(value)
    if name in {"computed_flag"}:
        return FLAGS.get(str(value), str(value))
    return str(value).replace("_", " ") if name.endswith("status") else str(value)


_WORDS: dict[str, Callable[[Any], str]] = {
    "timing": timing,
    "reference_range": _range,
}
