"""More alterations of a narrative sentence, each of which makes the sentence untrue or unproven.

The module shares no code with the check: it knows only English words and the printed text.
"""

from __future__ import annotations

import random
import re

from tests.support.narrative_mutations import (
    CONDITIONS,
    MONTHS,
    Alteration,
    Rules,
    matched_date,
    replaced,
)

_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "ten", "second", "third")
_SIMILAR = {
    "lisinopril": "fosinopril", "metformin": "metronidazole", "atorvastatin": "pravastatin",
    "glargine": "glulisine", "apixaban": "rivaroxaban",
    "metoprolol succinate": "metoprolol tartrate",
    "furosemide": "torsemide", "warfarin": "warfarin sodium", "nitroglycerin": "nitroprusside",
    "ceftriaxone": "cefotaxime", "metronidazole": "metformin", "ondansetron": "granisetron",
    "prednisone": "prednisolone", "losartan": "valsartan", "levothyroxine": "liothyronine",
    "omeprazole": "esomeprazole", "sumatriptan": "rizatriptan", "gabapentin": "pregabalin",
    "topiramate": "topotecan", "propranolol": "propafenone", "fluticasone": "flunisolide",
    "sertraline": "cetirizine", "azithromycin": "erythromycin", "methotrexate": "metolazone",
    "hydrochlorothiazide": "hydralazine", "fentanyl": "sufentanil", "albuterol": "levalbuterol",
    "penicillin": "penicillamine", "codeine": "cocaine", "sulfa": "sulfur", "latex": "lasix",
    "ferrous sulfate": "ferrous gluconate", "acetaminophen": "acetazolamide",
    "amoxicillin": "ampicillin", "ibuprofen": "ketoprofen", "tdap": "td",
    "hepatitis b": "hepatitis a", "influenza vaccine": "pneumococcal vaccine",
    "troponin i": "troponin t", "ldl": "hdl", "vitamin b12": "vitamin b6", "alt": "ast",
    "bnp": "bun", "type 2": "type 1", "stage 3": "stage 4", "total bilirubin": "direct bilirubin",
}  # fmt: skip


def number_word(text: str, rng: random.Random) -> str | None:
    """Exchange a number that is a word."""
    there = list(re.finditer(rf"\b({'|'.join(_WORDS)})\b(?! (?:times|type))", text))
    if not there:
        return None
    m = rng.choice(there)
    others = [w for w in _WORDS if w != m[0] and w.endswith("d") == m[0].endswith("d")]
    return text[: m.start()] + rng.choice(others) + text[m.end() :]


def similar_name(text: str, rng: random.Random) -> str | None:
    """Exchange a name with a name that looks alike."""
    return replaced(text, rng, tuple((rf"(?i)\b{old}\b", (new,)) for old, new in _SIMILAR.items()))


_UNITS: Rules = (
    (r"(?<=\d )mEq/L\b", ("mg/dL",)),
    (r"(?<=\d )mm/hr\b", ("mm/min",)),
    (r"(?<=\d )cm\b", ("in", "mm")),
    (r"(?<=\d )centimeters\b", ("inches",)),
    (r"(?<=\d )kilograms\b", ("pounds",)),
    (r"(?<=\d )pounds\b", ("kilograms",)),
    (r"(?<=\d )mcg/hr\b", ("mg/hr", "mcg/min", "mcg")),
    (r"(?<=\d )grams?\b", ("milligram",)),
    (r"(?<=\d )g(?= )", ("mg",)),
    (r"(?<=\d )mcg\b(?!/)", ("mg", "g")),
    (r"(?<=\d )mg\b(?!/)", ("mcg", "g", "mL", "mg/kg")),
    (r"(?<=\d )mg/dL\b", ("mg/L", "g/dL", "mmol/L")),
    (r"(?<=\d )mmol/L\b", ("mmol/dL", "mEq/dL", "mg/dL")),
    (r"(?<=\d )ng/mL\b", ("ng/dL", "mcg/mL")),
    (r"(?<=\d )mcg/mL\b", ("mg/mL", "mcg/L")),
    (r"(?<=\d )(?:bpm|beats per minute)\b", ("beats per hour",)),
    (r"(?<=\d )breaths per minute\b", ("breaths per hour",)),
    (r"°C\b", ("°F",)),
    (r"degrees Fahrenheit", ("degrees Celsius",)),
    (r"millimeters of mercury", ("centimeters of water",)),
    (r"(?<=\d)(?:%| percent)", (" mg/dL",)),
    (r"\bpuffs\b", ("tablets",)),
)
_FREQUENCY: Rules = (
    (r"\btwice daily\b", ("daily", "three times daily", "weekly")),
    (r"\btwice a day\b", ("once a day", "four times a day")),
    (r"\bthree times (?:daily|a day|per day)\b", ("twice daily", "once daily")),
    (
        r"\b(?<!twice )(?<!times )(?<!once )daily\b(?! medic)",
        ("twice daily", "every other day", "weekly"),
    ),
    (r"\bonce (?:daily|a day)\b", ("twice daily", "once weekly")),
    (r"\bonce (?:weekly|a week)\b", ("daily", "twice weekly", "monthly")),
    (r"\bat bedtime\b", ("in the morning", "twice daily")),
    (r"\b(?:every|each|in the) morning\b", ("every evening", "at bedtime")),
    (r"\bevery (?:8|eight) hours\b", ("every 6 hours", "every 12 hours")),
    (r"\bevery (?:6|4|four) hours\b", ("every 8 hours", "every 24 hours", "every 6 days")),
    (r"\bevery 72 hours\b", ("every 24 hours", "every 72 minutes")),
    (r"\bfor 10 days\b", ("for 14 days", "for 10 weeks", "for 10 doses")),
    (r"\bfor 5 days\b", ("for 10 days", "for 5 weeks")),
    (r"\b10-day\b", ("14-day", "10-week")),
    (r"\bfive-day\b", ("ten-day", "five-week")),
    (r",? as needed\b", ("", " around the clock")),
)
_ROUTE: Rules = (
    (r"\bby mouth\b", ("intravenously", "rectally", "by injection")),
    (r"\borally\b", ("intramuscularly", "topically")),
    (r"\b[Oo]ral medications\b", ("Topical medications", "Intravenous medications")),
    (r"\boral (?=[a-z]+ \d)", ("intravenous ",)),
    (r"\bIV\b", ("by mouth", "IM", "PO")),
    (r"\bintravenously\b", ("orally", "subcutaneously")),
    (r"\b[Ii]ntravenous\b", ("Oral",)),
    (r"\bsubcutaneously\b", ("intravenously", "intramuscularly")),
    (r"\b[Ss]ublingual\b", ("Topical", "Transdermal")),
    (r"\bunder the tongue\b", ("into the muscle",)),
    (r"\b[Tt]ransdermal\b", ("Oral", "Intravenous")),
    (r"\binhaled\b", ("by mouth", "injected")),
    (r"\binhales\b", ("swallows", "injects")),
)
_SEVERITY: Rules = (
    (r"\b[Ss]evere\b", ("mild", "moderate")),
    (r"\b[Mm]ild\b", ("severe", "moderate")),
    (r"\b[Mm]oderate\b", ("mild", "severe")),
    (r"\b[Aa]cute (?=chole)", ("chronic ",)),
    (r"\banaphylaxis\b", ("rash", "a mild reaction")),
    (r"\bhives\b", ("anaphylaxis", "swelling")),
    (r"\b(?<=\()nausea\b", ("anaphylaxis",)),
    (r"\b(?:[Tt]he patient|[Ss]he|[Hh]e) has (?!no|never)(?=[a-z])", ("The patient has severe ",)),
)
_CHANGE: Rules = (
    (r"\bwas increased\b", ("was decreased", "was stopped")),
    (r"\b(?:was|were) (?:decreased|reduced|lowered)\b", ("was increased", "was doubled")),
    (r"\bwas raised\b", ("was lowered",)),
    (r"\b(?:was|been) (?:stopped|discontinued)\b", ("was started", "was resumed", "was increased")),
    (r"\bwas started\b", ("was stopped", "was restarted", "was declined")),
    (r"\bfrom (\d+ mg) to (\d+ mg)\b", (r"from \2 to \1",)),
    (
        r"\bto 20 mg daily from a previous dose of 10 mg\b",
        ("to 10 mg daily from a previous dose of 20 mg",),
    ),
    (
        r"\b(?:was held|is being held|on hold)\b",
        ("was restarted", "was increased", "was continued"),
    ),
    (r"\bno longer on\b", ("still on", "newly on")),
    (r"\bwas declined\b", ("was given", "was postponed")),
    (r"\bdeclined the\b", ("received the", "requested the")),
    (r"\bis scheduled\b|\bhas been scheduled\b", ("was completed", "was cancelled")),
    (r"\bis planned\b", ("was cancelled", "was completed")),
    (r"\bhas resolved\b|\bis resolved\b", ("has recurred", "is active", "has worsened")),
    (r"\bwere performed\b|\bwas performed\b", ("was cancelled", "is planned", "was refused")),
)
_BOTH_SIDES: Rules = (
    (r"\bbilateral\b|\bBilateral\b", ("right", "left")),
    (r"\bboth ankles\b", ("the left ankle",)),
    (r"\bright\b", ("left", "bilateral")),
    (r"\bleft\b", ("right", "bilateral")),
    (r"\b(?:Mild )?left\b", ("Right",)),
    (r"\bshoulder\b", ("hip", "elbow")),
    (r"\bknee\b", ("hip",)),
    (r"\bbrain\b", ("spine",)),
    (r"\blower extremity\b", ("upper extremity",)),
)
_CERTAIN: Rules = (
    (r"\bis considered possible\b", ("is confirmed", "is present")),
    (r"\bwas raised as a possibility but was not confirmed\b", ("was confirmed",)),
    (r"\bmay have\b", ("has", "definitely has")),
    (r"\b(?:possible|suspected|probable) (?=[a-z])", ("", "known ", "proven ")),
    (r"\bPossible diagnoses include\b", ("Diagnoses include",)),
    (r"\bis to be ruled out\b", ("was ruled out", "was diagnosed", "is present")),
    (r"\bremains under consideration and is not confirmed\b", ("was confirmed",)),
    (r"\bis probable\b|\bwas felt to be likely\b", ("is certain", "is present", "is unlikely")),
    (r"\bwas suspected\b", ("was diagnosed", "was excluded", "was treated")),
    (
        r"\bwas ruled out\b|\bhas been excluded\b",
        ("was confirmed", "could not be ruled out", "was suspected"),
    ),
    (r"\b[Nn]o evidence of\b", ("evidence of", "possible")),
    (r"\bwas diagnosed with\b", ("may have", "probably has")),
)
_FLAG: Rules = (
    (
        r"\b(?:was|is|were) (?:elevated|high|increased)\b",
        ("was low", "was normal", "was critically high"),
    ),
    (r"\b(?:was|were) (?:low|decreased)\b", ("was high", "was normal", "was critically low")),
    (
        r"\babove (?:the reference range|normal)\b",
        ("below the reference range", "within normal limits"),
    ),
    (r"\bbelow the reference range\b", ("above the reference range", "within the reference range")),
    (
        r"\bwithin (?:the reference range|normal limits|their reference ranges)\b",
        ("above the reference range", "below the reference range"),
    ),
    (r"\bexceeded\b", ("was below",)),
    (r"\bnormal\b", ("high", "abnormal", "low")),
    (r"\b[Ee]levated\b", ("low", "normal")),
    (r"\((?:high|low)\)", ("(normal)", "(critical)")),
    (r"\bnegative\b(?! for)", ("positive", "indeterminate")),
    (r"\bnon-?reactive\b", ("reactive", "equivocal")),
    (
        r"\b[Bb]lood pressure was\b",
        ("Blood pressure was elevated at", "Blood pressure was normal at"),
    ),
)
_COMPARED: Rules = (
    (r"\bless than (?=\d)", ("greater than ", "")),
    (r"\bgreater than (?=\d)", ("less than ", "")),
    (r"<(?=\d)", (">", "", "≥")),
    (r">(?=\d)", ("<", "", "≤")),
    (r"(?<= at | of )(?=\d[\d.]* (?:mg/dL|mmol/L|ng/mL|pg/mL|U/L|K/uL))", ("less than ", ">")),
)
_SCOPE: Rules = (
    (r"\bbut denied\b", ("and reported", "but also had")),
    (r"\bdenied\b|\bdenies\b", ("reports", "confirms")),
    (r"\breport(?:ed|s)\b", ("denied",)),
    (r"\bbut has no\b", ("and has",)),
    (r"\bwithout\b", ("with",)),
    (r"\b[Nn]either (\w+(?: \w+)?) nor\b", (r"both \1 and", r"\1 and")),
    (r"\bno (?=(?:fever|chills|family|chest))", ("",)),
    (r"\bwas not (?=present|reported)", ("was ",)),
    (r"; syncope was not\b", ("; syncope was too",)),
    (r"\bPertinent negatives\b", ("Pertinent positives", "Symptoms")),
    (r"\bare present\b|\bwas present\b", ("are absent", "was not present")),
    (r"\bnegative for (?=colon)", ("positive for ",)),
    (r"\bpositive for (?=stroke)", ("negative for ",)),
    (
        r"\b(?:has|had) (?!no|been|not|never)(?=a |an |hypert|atrial|mild)",
        ("has never had ", "does not have "),
    ),
    (r"\bis allergic to\b", ("tolerates", "is not allergic to", "takes")),
)
_RELATIVE: Rules = (
    (r"\bmother\b", ("father", "aunt", "daughter")),
    (r"\bfather\b", ("mother", "grandfather", "son")),
    (r"\bbrother\b", ("sister", "uncle")),
    (r"\bsister\b", ("brother", "cousin")),
    (r"\bmaternal\b", ("paternal",)),
    (r"\bgrandfather\b", ("grandmother",)),
    (
        r"\bFamily history includes\b|\bFamily history is notable for\b",
        ("Past medical history includes", "The patient has"),
    ),
    (r"\bThe patient's (?:mother|father)\b", ("The patient",)),
    (r"\b(?:in|\() ?(?:the|a) (?:mother|father|sister|brother)\b", ("in the patient",)),
    (
        r"^The patient(?= )|^She(?= )|^He(?= )",
        ("The patient's husband", "Her daughter", "The spouse"),
    ),
    (r"\b[Hh]er (?=medic|weight|past|BP)", ("her mother's ",)),
)


def day_shift(text: str, rng: random.Random) -> str | None:
    """Move a date by one day, or exchange day and month."""
    found = matched_date(text)
    if not found:
        return None
    m = rng.choice(found)
    if m["iso"]:
        year, month, day = map(int, m["iso"].split("-"))
        new = f"{year}-{month:02}-{day + 1 if day < 28 else day - 1:02}"
    elif m["us"]:
        month, day, year = map(int, m["us"].split("/"))
        can_swap = day <= 12 and day != month
        new = (
            f"{day}/{month}/{year}"
            if can_swap and rng.random() < 0.5
            else (f"{month}/{day + 1 if day < 28 else day - 1}/{year}")
        )
    else:
        day = int(m["d"])
        month = MONTHS.index(m["m"])
        if rng.random() < 0.5:
            new = f"{MONTHS[(month + rng.choice((1, 6, 11))) % 12]} {day}, {m['y']}"
        else:
            new = f"{m['m']} {day + 1 if day < 28 else day - 1}, {m['y']}"
    return text[: m.start()] + new + text[m.end() :]


_CAUSES = (
    "due to {}", "because of {}", "caused by {}", "secondary to {}", "as a result of {}",
    "related to {}", "in the setting of {}", "attributed to {}", "from {}", "owing to {}",
    "complicated by {}", "resulting in {}", "which led to {}", "to treat {}", "to prevent {}",
)  # fmt: skip
_TIMES = (
    "yesterday", "for two weeks", "since last month", "three days ago", "after the procedure",
    "before admission", "at discharge", "after surgery", "in the past year", "during pregnancy",
    "overnight", "since childhood", "until recently", "for the first time", "again",
    "two hours later", "on admission", "at the last visit",
)  # fmt: skip
_TRENDS = (
    "and has improved", "and has worsened", "and is stable", "and is well controlled",
    "and is poorly controlled", "and has resolved", "which is unchanged", "with good response",
    "with improvement", "which is concerning", "and is improving", "and remains elevated",
    "and has returned to normal", "and is new", "without complications", "and tolerated well",
    "and is progressing", "down from 9.9", "up from the prior value", "and requires treatment",
)  # fmt: skip


def cause(text: str, rng: random.Random) -> str | None:
    """Add a cause or a purpose, at times one of the sentence's own names."""
    own = [name for name in CONDITIONS if re.search(rf"\b{name}\b", text, re.I)]
    name = rng.choice(own or list(CONDITIONS))
    if (
        own
        and rng.random() < 0.5
        and (m := re.search(r", and | and |, (?=[a-z])", text)) is not None
    ):
        new = rng.choice((" due to ", " because of ", " caused by ", " leading to "))
        return text[: m.start()] + new + text[m.end() :]
    return _added(text, rng.choice(_CAUSES).format(name))


def time_relation(text: str, rng: random.Random) -> str | None:
    """Add a time that no entity states."""
    return _added(text, rng.choice(_TIMES))


def trend(text: str, rng: random.Random) -> str | None:
    """Add a course that no entity states."""
    return _added(text, rng.choice(_TRENDS))


def other_day(text: str, rng: random.Random) -> str | None:
    """Put the whole sentence on another day."""
    day = rng.choice(
        ("April 1, 2024", "2021-05-17", "8/30/2020", "November 15, 2023", "June 2021", "2018")
    )
    if rng.random() < 0.5:
        return _added(text, f"on {day}" if len(day) > 9 else f"in {day}")
    return f"On {day}, {text[0].lower()}{text[1:]}"


_COURSE = (
    "stable", "controlled", "uncontrolled", "resolved", "worsening", "chronic", "recurrent",
    "new-onset", "improving", "end-stage", "metastatic", "treated", "acute",
)  # fmt: skip


def course(text: str, rng: random.Random) -> str | None:
    """Put an adjective that no entity states before a condition."""
    found = [
        m
        for name in (
            *CONDITIONS,
            "myocardial",
            "osteoarthritis",
            "anemia",
            "sepsis",
            "tuberculosis",
        )
        for m in re.finditer(rf"\b{name}\b", text, re.I)
    ]
    if not found:
        return None
    m = rng.choice(found)
    return f"{text[: m.start()]}{rng.choice(_COURSE)} {m[0].lower()}{text[m.end() :]}"


def negation_swapped(text: str, rng: random.Random) -> str | None:
    """Exchange what is reported and what is denied."""
    m = re.search(r"(reported|reports|complains of) (.+?)(,? but (?:denied|has no)) (.+?)\.", text)
    if m is None:
        return None
    return f"{text[: m.start()]}{m[1]} {m[4]}{m[3]} {m[2]}."


def joined(text: str, rng: random.Random) -> str | None:
    """Add a fact that no cited entity states."""
    new = rng.choice(
        (
            "and has a fever", "and denies pain", "with a cough", "and takes warfarin",
            "and lives alone", "and smokes", "and was advised to rest",
            "and follow-up was arranged",
            "and was discharged home", "and is allergic to iodine", "and the dose was doubled",
            "and no side effects were reported", "and the examination was unremarkable",
            "and no other abnormalities were found", "and all other results were normal",
        )
    )  # fmt: skip
    return _added(text, new)


def _added(text: str, new: str) -> str:
    return f"{text[:-1]} {new}." if text.endswith(".") else f"{text} {new}"


def _of(rules: Rules) -> Alteration:
    def altered(text: str, rng: random.Random) -> str | None:
        return replaced(text, rng, rules)

    return altered


MORE: dict[str, Alteration] = {
    "number word": number_word,
    "similar name": similar_name,
    "other unit": _of(_UNITS),
    "frequency": _of(_FREQUENCY),
    "route": _of(_ROUTE),
    "severity": _of(_SEVERITY),
    "change": _of(_CHANGE),
    "side or site": _of(_BOTH_SIDES),
    "certainty upgrade": _of(_CERTAIN),
    "interpretation": _of(_FLAG),
    "comparison": _of(_COMPARED),
    "scope": _of(_SCOPE),
    "relative": _of(_RELATIVE),
    "day": day_shift,
    "cause": cause,
    "time relation": time_relation,
    "trend": trend,
    "other day": other_day,
    "course": course,
    "negation swapped": negation_swapped,
    "added fact": joined,
}
