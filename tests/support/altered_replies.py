"""Alterations of a model's reply: each changes one attribute of one entity into something false."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

Item = dict[str, Any]
"""An entity of a reply, as JSON."""

UNITS = (
    "mg/dL", "mmol/L", "g/dL", "g/L", "mEq/L", "K/uL", "U/L", "ng/mL", "pg/mL", "%", "mmHg", "kPa",
    "bpm", "°C", "°F", "kg", "lb", "mcg/L", "umol/L",
)  # fmt: skip
DOSE_UNITS = ("mg", "mcg", "g", "mL", "units", "mEq", "tablets", "capsules", "puffs", "drops")
FREQUENCIES = (
    "daily", "BID", "TID", "QID", "every other day", "weekly", "every 4 hours", "q8h", "q12h",
    "at bedtime", "twice daily", "three times a day", "monthly", "every morning", "as needed",
    "every 72 hours", "once",
)  # fmt: skip
SAME_FREQUENCY = (
    {"daily", "at bedtime", "every morning", "once daily", "nightly", "qhs", "qam", "every day"},
    {"bid", "twice daily", "b.i.d.", "twice a day", "two times a day"},
    {"tid", "three times a day", "three times daily"},
    {"qid", "four times a day", "four times daily"},
    {"weekly", "once weekly", "once a week"},
    {"as needed", "prn"},
)
"""Frequencies that are not told apart here: a change within a set may be no error."""
NAMES = {
    "medication": ("warfarin", "digoxin", "methotrexate", "insulin glargine", "oxycodone"),
    "lab": ("Lipase", "Ferritin", "Ammonia", "Lactate", "Cortisol"),
    "vital": ("BP", "HR", "RR", "Temp", "SpO2", "weight"),
    "condition": ("lupus", "multiple sclerosis", "cirrhosis", "melanoma", "stroke"),
    "symptom": ("hemoptysis", "syncope", "jaundice", "hematuria", "seizure"),
    "allergy": ("latex", "penicillin", "sulfa", "shellfish"),
    "immunization": ("rabies vaccine", "varicella vaccine", "yellow fever vaccine"),
    "procedure": ("thoracotomy", "nephrectomy", "bronchoscopy", "craniotomy"),
}
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


def alter(item: Item, others: Sequence[Item], rng: random.Random) -> tuple[str, Item] | None:
    """Return the kind of a random alteration and the altered entity; None if none is possible."""
    kinds = list(ALTERATIONS)
    rng.shuffle(kinds)
    for kind in kinds:
        changed = ALTERATIONS[kind](item, others, rng)
        if changed is not None:
            return kind, {**item, **changed}
    return None


def _unit(item: Item, others: Sequence[Item], rng: random.Random) -> Item | None:
    if unit := item.get("unit"):
        return {"unit": rng.choice([u for u in UNITS if not _is_same_unit(u, unit)])}
    for attribute in ("dose", "strength", "previous_dose"):
        m = re.fullmatch(r"(.*\d)(\s*)([A-Za-zµ]+)", item.get(attribute) or "")
        if m:
            choice = [u for u in DOSE_UNITS if u.lower().rstrip("s") != m[3].lower().rstrip("s")]
            choice = [u for u in choice if {u, m[3].lower()} != {"mcg", "µg"}]
            return {attribute: f"{m[1]}{m[2]}{rng.choice(choice)}"}
    return None


def _is_same_unit(one: str, other: str) -> bool:
    plain = [u.lower().replace("x10^3", "k").replace("10^3", "k") for u in (one, other)]
    # `page_text.spellings` reads `IU` and `U` as two spellings of one unit.
    plain = [unit.replace("iu/", "u/") for unit in plain]
    return plain[0] == plain[1] or {*plain} == {"bpm", "/min"}


def _sign(item: Item, others: Sequence[Item], rng: random.Random) -> Item | None:
    value = item.get("value") or ""
    if not _NUMBER.search(value):
        return None
    m = re.match(r"\s*([<>≤≥-]=?)\s*", value)
    if m:
        bare = value[m.end() :]
        return {"value": rng.choice([bare, (">" if m[1][0] in "<≤" else "<") + bare])}
    return {"value": rng.choice("<>-") + value}


def _digit(item: Item, others: Sequence[Item], rng: random.Random) -> Item | None:
    numbered = [
        a
        for a in ("value", "dose", "strength", "previous_dose", "reference_range")
        if _NUMBER.search(item.get(a) or "")
    ]
    if not numbered:
        return None
    attribute = rng.choice(numbered)
    text = item[attribute]
    m = rng.choice(list(_NUMBER.finditer(text)))
    number = m.group()
    at = rng.choice([i for i, c in enumerate(number) if c.isdigit()])
    changed = rng.choice(
        [
            number[:at]
            + rng.choice([d for d in "123456789" if d != number[at]])
            + number[at + 1 :],
            number[:at] + rng.choice("123456789") + number[at:],
            number.replace(".", "") if "." in number else number + "0",
            number + ".5" if "." not in number else number + "5",
        ]
    )
    if float(changed.replace(",", "")) == float(number.replace(",", "")):
        return None
    return {attribute: text[: m.start()] + changed + text[m.end() :]}


def _frequency(item: Item, others: Sequence[Item], rng: random.Random) -> Item | None:
    frequency = (item.get("frequency") or "").lower()
    if not frequency:
        return None
    same = {f for group in SAME_FREQUENCY for f in group if _says(frequency, group)}
    choice = [f for f in FREQUENCIES if f.lower() not in same and f.lower() not in frequency]
    return {"frequency": rng.choice(choice)}


def _says(frequency: str, group: set[str]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(f)}(?!\w)", frequency) for f in group)


def _name(item: Item, others: Sequence[Item], rng: random.Random) -> Item | None:
    name = item["name"].lower()
    pool = [
        *NAMES.get(item["category"], ()),
        *(o["name"] for o in others if o["category"] == item["category"]),
    ]
    words = set(re.findall(r"[a-z0-9]+", name))
    choice = sorted(
        {n for n in pool if not words & set(re.findall(r"[a-z0-9]+", n.lower()))} - {item["name"]}
    )
    same = ({"hr", "pulse"}, {"bp", "blood pressure"}, {"leg swelling", "edema"})
    choice = [n for n in choice if {n.lower(), name} not in same]
    return {"name": rng.choice(choice)} if choice else None


def _negation(item: Item, others: Sequence[Item], rng: random.Random) -> Item | None:
    if item.get("negated"):
        return {"negated": rng.choice([False, None])}
    return {"negated": True}


def _place(item: Item, others: Sequence[Item], rng: random.Random) -> Item | None:
    pages = sorted({o["page"] for o in others} - {item["page"]})
    elsewhere = [
        o["quote"]
        for o in others
        if o["category"] == item["category"]
        and o["name"].lower() not in item["quote"].lower()
        and item["name"].lower() not in o["quote"].lower()
        and o["quote"] != item["quote"]
    ]
    choices: list[Item] = [{"page": page} for page in pages[:1] + pages[-1:]]
    if elsewhere:
        choices.append({"quote": rng.choice(elsewhere)})
    return rng.choice(choices) if choices else None


ALTERATIONS: dict[str, Callable[[Item, Sequence[Item], random.Random], Item | None]] = {
    "unit": _unit,
    "sign": _sign,
    "digit": _digit,
    "frequency": _frequency,
    "name": _name,
    "negation": _negation,
    "place": _place,
}
"""Kind → the changed fields of an entity, or None if the entity lacks the attribute."""
