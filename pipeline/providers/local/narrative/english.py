"""Plain English for printed attributes: lists, dates, doses, and names inside a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from pipeline.clinical.narrative import timing

_FREQUENCIES = {
    "1/d": "daily",
    "2/d": "twice daily",
    "3/d": "three times daily",
    "4/d": "four times daily",
    "1/2d": "every other day",
    "1/wk": "once weekly",
    "2/wk": "twice weekly",
    "1/mo": "once monthly",
    "hs": "at bedtime",
    "night": "every night",
    "morning": "every morning",
    "evening": "every evening",
    "prn": "as needed",
    "meals": "with meals",
}
_ROUTES = {
    "oral": "by mouth",
    "intravenous": "intravenously",
    "intramuscular": "intramuscularly",
    "subcutaneous": "subcutaneously",
    "sublingual": "under the tongue",
    "topical": "topically",
    "inhaled": "by inhalation",
    "rectal": "rectally",
}
_NAMES = {
    "bp": "blood pressure",
    "hr": "heart rate",
    "rr": "respiratory rate",
    "resp": "respiratory rate",
    "temp": "temperature",
    "spo2": "oxygen saturation",
    "wt": "weight",
    "ht": "height",
}
_KEPT = {"Tdap", "Holter", "Foley", "Doppler", "Moderna", "Pfizer", "Pap"}
_PLAIN_CAPITAL = re.compile(r"[A-Z][a-z]+[,)\]]*")
_HOURS = re.compile(r"q(\d+)(?:-(\d+))?(h|d|w|min)$")
_UNITS_OF_TIME = {"h": "hour", "d": "day", "w": "week", "min": "minute"}


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Join parts as `a`, `a and b`, or `a, b, and c`; `then` has a comma before it."""
    if len(parts) < 2:
        return "".join(parts)
    if len(parts) == 2 and word != "then" and "," not in "".join(parts):
        return f"{parts[0]} {word} {parts[1]}"
    return f"{', '.join(parts[:-1])}, {word} {parts[-1]}"


def day(value: date) -> str:
    """Return a date as `March 5, 2024`."""
    return f"{value:%B} {value.day}, {value.year}"


def inside(name: str) -> str:
    """Return a name as it is written inside a sentence."""
    name = " ".join(name.split())
    known = _NAMES.get(name.casefold())
    if known:
        return known
    return " ".join(_lowered(word) for word in name.split(" "))


def _lowered(word: str) -> str:
    """Return a word with a plain capital in lower case; `TSH`, `Tdap`, `Crohn's` stay."""
    parts = re.split(r"([/(\[-])", word)
    return "".join(
        part.lower() if part not in _KEPT and _PLAIN_CAPITAL.fullmatch(part) else part
        for part in parts
    )


def sentence(text: str) -> str:
    """Return the text with a capital letter and a period; `pH` and `eGFR` keep their letters."""
    first = text.split(" ", 1)[0]
    if first.islower() or len(first) == 1:
        text = text[0].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


def frequency(printed: str) -> str:
    """Return a frequency in words; as printed, if a part of the print has no exact words."""
    keys = timing.ordered(printed)
    if keys is None:
        return printed
    words = [_FREQUENCIES.get(key) or _every(key) for key in keys]
    return " ".join(words) if all(words) else printed


def _every(key: str) -> str:
    found = _HOURS.fullmatch(key)
    if not found:
        return ""
    low, high, unit = found[1], found[2], _UNITS_OF_TIME[found[3]]
    return f"every {low} to {high} {unit}s" if high else f"every {low} {unit}s"


def route(printed: str) -> str:
    """Return a route in words; as printed, if the route has no exact words."""
    keys = timing.routes_in(printed)
    return _ROUTES.get(next(iter(keys)), printed) if len(keys) == 1 else printed


def quantity(value: str, unit: str | None) -> str:
    """Return a number with its unit as English prints both."""
    value = " ".join(value.split())
    if not unit:
        return value
    return f"{value}%" if unit == "%" else f"{value} {unit}"
