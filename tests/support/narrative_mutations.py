"""Alterations of a narrative sentence, each of which makes the sentence untrue.

The module shares no code with the check: it knows only English words and the printed text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Alteration = Callable[[str, random.Random], str | None]
Rules = tuple[tuple[str, tuple[str, ...]], ...]
"""Pattern → the texts of which one replaces a match; `\\1` is the first group."""

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
DRUGS = (
    "lisinopril", "metoprolol", "furosemide", "warfarin", "apixaban", "sertraline", "gabapentin",
    "prednisone", "amlodipine", "levothyroxine", "metformin", "atorvastatin", "amoxicillin",
    "omeprazole", "insulin glargine", "albuterol", "hydrochlorothiazide", "aspirin", "clopidogrel",
    "losartan", "carvedilol", "spironolactone", "methotrexate", "digoxin", "tramadol",
    "penicillin", "codeine", "sulfa", "latex", "ibuprofen", "glipizide", "empagliflozin",
)  # fmt: skip
CONDITIONS = (
    "pneumonia", "stroke", "diabetes", "hypertension", "asthma", "cellulitis", "hepatitis",
    "anemia", "appendicitis", "pulmonary embolism", "osteoporosis", "depression", "bronchitis",
    "hip fracture", "deep vein thrombosis", "gout", "migraine", "psoriasis", "chest pain", "fever",
    "cough", "nausea", "pancreatitis", "heart failure", "atrial fibrillation", "chills",
    "shortness of breath", "headache", "rash", "hypothyroidism", "knee pain", "glaucoma",
)  # fmt: skip
_DATE = re.compile(
    rf"(?P<m>{'|'.join(MONTHS)}) (?P<d>\d{{1,2}}), (?P<y>\d{{4}})"
    r"|(?P<iso>\d{4}-\d{2}-\d{2})|(?P<us>\d{1,2}/\d{1,2}/\d{4})"
)
_NUMBER = re.compile(r"(?<![\w.,/-])(?:\d+(?:[.,]\d+)*)(?![\w]|[.,]\d)")
_UNITS = {
    "mg": "mcg", "mcg": "mg", "mg/dL": "mmol/L", "g/dL": "g/L", "mmol/L": "mg/dL", "mmHg": "kPa",
    "mm Hg": "kPa", "%": " mg/dL", "bpm": "mmHg", "U/L": "g/L", "ng/mL": "pg/mL", "pg/mL": "ng/mL",
    "tablets": "capsules", "tablet": "capsule", "kg": "lb", "lb": "kg", "units": "mL", "mL": "L",
    "10^3/uL": "10^6/uL", "K/uL": "M/uL", "mIU/L": "mIU/mL", "°F": "°C", "F": "C", "g/L": "g/dL",
    "mg/L": "mg/dL", "/min": "/h", "puffs": "tablets", "milligrams": "micrograms",
}  # fmt: skip


def number(text: str, rng: random.Random) -> str | None:
    """Change one digit of one number that is no date."""
    dates = [m.span() for m in _DATE.finditer(text)]
    places = [
        at
        for m in _NUMBER.finditer(text)
        if not any(a <= m.start() < b for a, b in dates)
        for at in range(*m.span())
        if text[at].isdigit()
    ]
    if not places:
        return None
    at = rng.choice(places)
    digit = rng.choice([d for d in "123456789" if d != text[at]])
    return text[:at] + digit + text[at + 1 :]


def unit(text: str, rng: random.Random) -> str | None:
    """Exchange the unit of one number."""
    places = []
    for old, new in _UNITS.items():
        for m in re.finditer(rf"(?<=\d)( ?){re.escape(old)}(?![\w/^%])", text):
            places.append((m.start(1), m.end(), f"{m[1]}{new}"))
    if not places:
        return None
    start, end, new = rng.choice(places)
    return text[:start] + new + text[end:]


def date(text: str, rng: random.Random) -> str | None:
    """Change day, month or year of one date."""
    found = matched_date(text)
    if not found:
        return None
    m = rng.choice(found)
    return text[: m.start()] + _other_date(m, rng) + text[m.end() :]


def matched_date(text: str) -> list[re.Match[str]]:
    """Return each date of a text, with the groups `m`, `d`, `y`, `iso` and `us`."""
    return list(_DATE.finditer(text))


def _other_date(m: re.Match[str], rng: random.Random) -> str:
    if m["iso"]:
        year, month, day = m["iso"].split("-")
    elif m["us"]:
        month, day, year = m["us"].split("/")
    else:
        year, month, day = m["y"], str(MONTHS.index(m["m"]) + 1), m["d"]
    part = rng.randrange(3)
    if part == 0:
        year = str(int(year) - rng.randint(1, 9))
    elif part == 1:
        month = str((int(month) + rng.randint(0, 10)) % 12 + 1)
    else:
        day = str(int(day) % 28 + 1)
    if m["iso"]:
        return f"{year}-{int(month):02}-{int(day):02}"
    if m["us"]:
        return f"{month}/{day}/{year}"
    return f"{MONTHS[int(month) - 1]} {day}, {year}"


def drug(text: str, rng: random.Random) -> str | None:
    """Exchange one drug or allergen."""
    return _exchange(text, rng, DRUGS)


def condition(text: str, rng: random.Random) -> str | None:
    """Exchange one condition or symptom."""
    return _exchange(text, rng, CONDITIONS)


def _exchange(text: str, rng: random.Random, names: tuple[str, ...]) -> str | None:
    there = [name for name in names if re.search(rf"\b{name}\b", text, re.I)]
    others = [name for name in names if name not in there]
    if not there:
        return None
    new = rng.choice(others)
    return re.sub(rf"\b{rng.choice(there)}\b", new, text, count=1, flags=re.I)


_NEGATION = (
    (r"\bhad no\b", ("had",)),
    (r"\bhas no\b", ("has",)),
    (r"\bdenies\b", ("reports", "has")),
    (r"\bdenied\b", ("reported", "had")),
    (r"\bdoes not have\b", ("has",)),
    (r"\bdid not have\b", ("had",)),
    (r"\bwithout\b", ("with",)),
    (r"\bnegative for\b", ("positive for",)),
    (r"\bNo (?=[a-z])", ("",)),
    (r"\bno (?=[a-z])", ("",)),
    (r"\bwas not given\b", ("was given",)),
    (r"\bwere not\b", ("were",)),
    (r"\bwas not\b", ("was",)),
    (r"\bhad(?! no\b)", ("had no", "did not have", "never had", "had no evidence of")),
    (r"\bhas(?! no\b)(?= )", ("has no", "does not have", "denies")),
    (r"\breported\b", ("denied", "did not report", "reported no")),
    (r"\breports\b", ("denies", "does not report", "reports no")),
    (r"\bwas taking\b", ("was not taking", "never took")),
    (r"\btakes\b", ("does not take", "never took")),
    (r"\bincludes?\b", ("does not include", "excludes")),
    (r"\bwas (?!not|taking|ruled)(?=[a-z])", ("was not ", "was never ")),
    (r"\bwere (?!not|taking|ruled)(?=[a-z])", ("were not ", "were never ")),
    (r"\bis (?!not)(?=[a-z])", ("is not ",)),
    (r"\bunderwent\b", ("did not undergo", "never underwent")),
)


def negation(text: str, rng: random.Random) -> str | None:
    """Deny what is stated, or state what is denied."""
    return replaced(text, rng, _NEGATION)


_PERSON = (
    (r"\b[Tt]he patient(?= (?:had|has|was|is|takes|reports|reported|denies|denied|underwent))",
     ("The patient's mother", "Her brother", "His wife", "The patient's father")),
    (r"\b(?:She|He|They)(?= (?:had|has|was|is|takes|reports|reported|denies|denied|underwent))",
     ("Her sister", "His roommate", "The patient's grandmother")),
    (r"\bthe family history includes\b", ("the patient had",)),
    (r"\bThe family history includes\b", ("The patient had", "The patient's wife had")),
    (r"\b[Ff]amily history (?:is (?:notable|significant|positive) for|includes)\b",
     ("The patient has",)),
    (r"\b[Ff]amily history of\b(?!.*(?:mother|father))", ("diagnosis of",)),
    (r"\b[Mm]other\b", ("father", "wife")),
    (r"\b[Ff]ather\b", ("mother", "roommate")),
    (r"\b[Bb]rother\b", ("sister", "husband")),
    (r"\b[Ss]ister\b", ("brother", "neighbor")),
    (r"\b[Aa]llergies include\b", ("His mother has allergies to",)),
    (r"\bwas suspected\b", ("was suspected in her mother",)),
    (r"\bLaboratory results were\b", ("The donor's laboratory results were",)),
    (r"\bVital signs were\b", ("Her brother's vital signs were",)),
)  # fmt: skip


def person(text: str, rng: random.Random) -> str | None:
    """Give the fact to another person."""
    return replaced(text, rng, _PERSON)


_CERTAINTY = (
    (r"\bwas suspected\b", ("was confirmed", "was present")),
    (r"\bwere suspected\b", ("were confirmed", "were present")),
    (r"\bis suspected\b", ("is confirmed", "is present")),
    (r"\b(?:[Pp]ossible|[Pp]robable|[Ss]uspected|[Ll]ikely) (?=[a-z])", ("", "confirmed ")),
    (r"\bhad (?!no\b|possible\b)(?=[a-z])", ("had possible ", "may have had ", "was at risk for ")),
    (r"\bhas (?!no\b|possible\b)(?=[a-z])", ("has suspected ", "may have ", "is at risk of ")),
    (r"\breported\b", ("possibly had",)),
    (r"\bwas taking\b", ("may have been taking",)),
    (r"\bdiagnosed with\b", ("suspected of having", "at risk for")),
)


def certainty(text: str, rng: random.Random) -> str | None:
    """Make a doubted fact certain, or a certain fact doubted."""
    return replaced(text, rng, _CERTAINTY)


_SIDES = (
    (r"\bleft\b", ("right", "bilateral")),
    (r"\bright\b", ("left",)),
    (r"\bbilateral\b", ("left",)),
    (r"\bLeft\b", ("Right",)),
    (r"\bRight\b", ("Left",)),
)


def laterality(text: str, rng: random.Random) -> str | None:
    """Exchange the side."""
    return replaced(text, rng, _SIDES)


_STATUS = (
    (r"\bwas stopped\b", ("was continued", "was started", "is on hold")),
    (r"\bwere stopped\b", ("were continued", "were held")),
    (r"\bwas discontinued\b", ("was continued",)),
    (r"\bdiscontinued\b", ("continued",)),
    (r"\bstopped\b", ("continued",)),
    (r"\bon hold\b", ("continued",)),
    (r"\bwas planned\b", ("was completed", "was performed")),
    (r"\bwere planned\b", ("were performed",)),
    (r"\bis planned\b", ("was performed",)),
    (r"\bis scheduled\b", ("was performed",)),
    (r"\bwas taking\b", ("stopped taking", "will be started on")),
    (r"\btakes\b", ("no longer takes",)),
    (r"\bwas not taken\b", ("was taken",)),
    (r"\bhistory of\b", ("new diagnosis of",)),
    (
        r"(?<!previously )\bhad (?!no\b|a history|[^.;]*\bpast\b)(?=[a-z])",
        ("had a history of ", "previously had "),
    ),
    (r"\bhas (?!no\b|a \w*\s?history)(?=[a-z])", ("has a history of ",)),
)


def status(text: str, rng: random.Random) -> str | None:
    """Exchange stopped and taken, planned and done, past and present."""
    return replaced(text, rng, _STATUS)


_FLAGS = (
    (r"\(high", ("(low", "(normal", "(critical")),
    (r"\(low", ("(high", "(normal")),
    (r"\bhigh at\b", ("low at", "normal at")),
    (r"\belevated\b", ("low", "normal", "decreased")),
    (r"\b[Hh]igh\b", ("low",)),
    (r"\b[Ll]ow\b", ("high",)),
    (r"\blaboratory results were (?=[^(]*$)", ("laboratory results were elevated: ",)),
    (r"\bvital signs were (?=[a-z])", ("vital signs were stable: ", "abnormal vital signs were ")),
)


def flag(text: str, rng: random.Random) -> str | None:
    """Exchange or invent the interpretation of a result."""
    return replaced(text, rng, _FLAGS)


def swapped(text: str, rng: random.Random) -> str | None:
    """Exchange the values of two names."""
    found = [
        m
        for m in re.finditer(r"(?<![\w.,/-])\d+(?:[.,/]\d+)*(?![\w]|[.,]\d)", text)
        if not any(a <= m.start() < b for a, b in (d.span() for d in _DATE.finditer(text)))
        and not re.search(r"(?:range|reference|type|stage|every) [^,]*$", text[: m.start()][-30:])
        and not re.match(r"[-–]| to \d| hours", text[m.end() :])
    ]
    pairs = [
        (a, b)
        for i, a in enumerate(found)
        for b in found[i + 1 :]
        if _names_differ(text, a, b)
        and a[0].rstrip("0") != b[0].rstrip("0")
        and ("," in text[a.end() : b.start()] or "and" in text[a.end() : b.start()])
    ]
    if not pairs:
        return None
    a, b = rng.choice(pairs)
    return text[: a.start()] + b[0] + text[a.end() : b.start()] + a[0] + text[b.end() :]


def _names_differ(text: str, a: re.Match[str], b: re.Match[str]) -> bool:
    """Return whether the order of two values means something: other names, or steps."""
    if re.search(r"\bsteps\b|\bthen\b", text):
        return True
    names = [
        re.split(r",|;|:|\(|\band\b|\bwere\b|\binclude\b|\bwas\b", text[: m.start()])[-1]
        for m in (a, b)
    ]
    return names[0].strip().casefold() != names[1].strip().casefold()


_COMPARATORS = (
    (r"<= ?(?=\d)", ("", ">=", ">")),
    (r">= ?(?=\d)", ("", "<=", "<")),
    (r"< ?(?=\d)", ("", ">")),
    (r"> ?(?=\d)", ("", "<")),
    (r"\bless than (?=\d)", ("", "more than ")),
    (r"\bgreater than (?=\d)", ("", "less than ")),
    (r"(?<=[ (])-(?=\d)", ("",)),
)


def comparator(text: str, rng: random.Random) -> str | None:
    """Exchange or drop the sign before a number."""
    return replaced(text, rng, _COMPARATORS)


def replaced(text: str, rng: random.Random, rules: Rules) -> str | None:
    """Replace one match of one rule; None if no rule fits."""
    fitting = [(m, new) for pattern, new in rules for m in re.finditer(pattern, text)]
    if not fitting:
        return None
    m, new = rng.choice(fitting)
    return text[: m.start()] + m.expand(rng.choice(new)) + text[m.end() :]


ALTERATIONS: dict[str, Alteration] = {
    "number": number,
    "unit": unit,
    "date": date,
    "drug": drug,
    "condition": condition,
    "negation": negation,
    "person": person,
    "certainty": certainty,
    "laterality": laterality,
    "status": status,
    "flag": flag,
    "swapped values": swapped,
    "comparator": comparator,
}
