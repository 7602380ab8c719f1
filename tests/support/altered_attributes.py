"""Alterations of right attributes: each makes one attribute of a reply of Pass 2 false."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from pipeline.providers.schemas import FoundAttributes
from tests.support.altered_replies import DOSE_UNITS, FREQUENCIES, NAMES, SAME_FREQUENCY, UNITS

Altered = tuple[str, FoundAttributes]
_STATUSES = {
    "condition": ("active", "recurrence", "relapse", "inactive", "remission", "resolved"),
    "symptom": ("active", "resolved", "inactive"),
    "medication": (
        "active", "stopped", "on_hold", "planned", "not_started", "changed", "entered_in_error",
    ),
    "allergy": ("active", "inactive", "resolved"),
    "immunization": ("completed", "not-done", "planned", "entered-in-error"),
    "procedure": ("completed", "not-done", "preparation", "in-progress", "unknown"),
}  # fmt: skip
_VERIFICATIONS = ("unconfirmed", "confirmed", "refuted", "entered-in-error")
_POSSIBLE = {"unconfirmed", "provisional", "differential"}
_SITES = ("knee", "left foot", "liver", "chest", "right eye", "abdomen")
_REASONS = ("pneumonia", "migraine", "seizures", "gout", "insomnia")


def altered(category: str, right: FoundAttributes, rng: random.Random) -> list[Altered]:
    """Return the attribute and the reply of each possible alteration, in a fixed order."""
    found: list[Altered] = []
    for name, change in _CHANGES.items():
        said = getattr(right, name)
        value = change(category, said, rng)
        if value is not None and value != said:
            found.append((name, right.model_copy(update={name: value})))
    return found


def _number(category: str, said: str | None, rng: random.Random) -> str | None:
    if not said or not (numbers := list(re.finditer(r"\d+(?:\.\d+)?", said))):
        return None
    m = rng.choice(numbers)
    number = m.group()
    changed = rng.choice(
        [
            number.replace(".", "") if "." in number else f"{number}0",
            f"{number}.5" if "." not in number else f"{number}5",
            f"{rng.choice([d for d in '123456789' if d != number[0]])}{number[1:]}",
        ]
    )
    if float(changed) == float(number):
        return None
    return said[: m.start()] + changed + said[m.end() :]


def _unit(category: str, said: str | None, rng: random.Random) -> str | None:
    return rng.choice([u for u in UNITS if u.lower() != said.lower()]) if said else None


def _dose(category: str, said: str | None, rng: random.Random) -> str | None:
    m = re.fullmatch(r"(.*\d)(\s*)([A-Za-zµ]+)", said or "")
    if m is None or rng.random() < 0.5:
        return _number(category, said, rng)
    own = m[3].lower().rstrip("s")
    return f"{m[1]}{m[2]}{rng.choice([u for u in DOSE_UNITS if u.lower().rstrip('s') != own])}"


def _frequency(category: str, said: str | None, rng: random.Random) -> str | None:
    if category != "medication" or not said:
        return None
    low = said.lower()
    same = {f for group in SAME_FREQUENCY for f in group if any(g in low for g in group)}
    return rng.choice([f for f in FREQUENCIES if f.lower() not in same and f.lower() not in low])


def _route(category: str, said: str | None, rng: random.Random) -> str | None:
    return rng.choice(["rectal", "intrathecal", "sublingual"]) if said else None


def _name(category: str, said: str | None, rng: random.Random) -> str | None:
    pool = NAMES.get(category)
    return rng.choice([n for n in pool if n not in said.lower()]) if said and pool else None


def _status(category: str, said: str | None, rng: random.Random) -> str | None:
    pool = _STATUSES.get(category)
    # `given 10/12/2023` says that an act is completed, whether or not a reader notices.
    known = said or ("completed" if category in ("immunization", "procedure") else None)
    return rng.choice([s for s in pool if s != known]) if pool else None


def _verification(category: str, said: str | None, rng: random.Random) -> str | None:
    if category not in ("condition", "symptom"):
        return None
    # A plain statement without a word of doubt is confirmed, so that is no false reading.
    left_out = _POSSIBLE if said in _POSSIBLE else {said or "confirmed"}
    return rng.choice([v for v in _VERIFICATIONS if v not in left_out])


def _severity(category: str, said: str | None, rng: random.Random) -> str | None:
    if category not in ("condition", "symptom", "allergy"):
        return None
    return rng.choice([g for g in ("mild", "moderate", "severe") if g != said])


def _side(category: str, said: str | None, rng: random.Random) -> str | None:
    if category not in ("condition", "symptom", "procedure"):
        return None
    return rng.choice([s for s in ("left", "right", "bilateral") if s != said])


def _site(category: str, said: str | None, rng: random.Random) -> str | None:
    if category not in ("condition", "symptom", "procedure"):
        return None
    return rng.choice([s for s in _SITES if s not in (said or "").lower()])


def _reason(category: str, said: str | None, rng: random.Random) -> str | None:
    if category != "medication":
        return None
    return rng.choice([r for r in _REASONS if r not in (said or "")])


def _start(category: str, said: str | None, rng: random.Random) -> str | None:
    if category in ("lab", "vital", "allergy"):
        return None
    return _number(category, said, rng) or rng.choice(
        ["since 2007", "03/09/2011", "since May 2012"]
    )


def _flag(category: str, said: str | None, rng: random.Random) -> str | None:
    return rng.choice([f for f in ("HH", "LL", "H", "L") if f != said]) if said else None


_CHANGES: dict[str, Callable[[str, str | None, random.Random], str | None]] = {
    "value": _number,
    "unit": _unit,
    "reference_range": _number,
    "abnormal_flag": _flag,
    "strength": _dose,
    "dose": _dose,
    "route": _route,
    "frequency": _frequency,
    "ingredient": _name,
    "substance": _name,
    "product": _name,
    "reaction": lambda category, said, rng: "priapism" if said else None,
    "indication": _reason,
    "status": _status,
    "verification": _verification,
    "severity": _severity,
    "laterality": _side,
    "body_site": _site,
    "start": _start,
    "stop": _start,
    "dose_number": _number,
}
