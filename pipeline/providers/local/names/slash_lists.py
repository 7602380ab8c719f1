"""Abbreviated lists of findings, letter by letter: `n/v/d`, `m/r/g`, `f/c/ns`.

A letter has a meaning only beside the other letters.
"""

from __future__ import annotations

import re

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding

_MEANINGS: dict[str, str] = {
    "n": "nausea",
    "v": "vomiting",
    "d": "diarrhea",
    "c": "chills",
    "f": "fever",
    "s": "sweats",
    "ns": "night sweats",
    "cp": "chest pain",
    "sob": "shortness of breath",
    "doe": "dyspnea on exertion",
    "ha": "headache",
    "abd pain": "abdominal pain",
    "m": "murmur",
    "r": "rub",
    "g": "gallop",
    "w": "wheeze",
    "e": "edema",
    "t": "tenderness",
    "lof": "loss of fluid",
    "vb": "vaginal bleeding",
    "ctx": "contractions",
    "uti": "urinary tract infection",
    "hsm": "hepatosplenomegaly",
    "jvd": "jugular venous distention",
    "lad": "lymphadenopathy",
}
_LISTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("c", "c", "e"): ("clubbing", "cyanosis", "edema"),
    ("w", "r", "r"): ("wheezes", "rales", "rhonchi"),
    ("r", "r", "w"): ("rales", "rhonchi", "wheezes"),
    ("r", "g"): ("rebound", "guarding"),
    ("g", "r"): ("guarding", "rebound"),
    ("r", "g", "r"): ("rebound", "guarding", "rigidity"),
    ("g", "r", "r"): ("guarding", "rebound", "rigidity"),
}
_RUN = re.compile(r"(?<![\w/])[A-Za-z]{1,3}(?:/[A-Za-z]{1,3})+(?![\w/])")


_PAIRS = frozenset(
    {("n", "v"), ("f", "c"), ("v", "d"), ("n", "d"), ("cp", "sob"), ("sob", "cp"), ("sob", "doe")}
    | {("m", "r"), ("r", "m"), ("r", "g"), ("m", "g"), ("lof", "vb"), ("vb", "lof"), ("c", "e")}
)


def read_slash_lists(reading: DocumentState) -> None:
    """Add one symptom for each letter of every such list."""
    for m in _RUN.finditer(reading.text):
        letters = tuple(m.group().lower().split("/"))
        meanings = _LISTS.get(letters) or _by_letter(letters)
        if meanings is None or reading.is_claimed(m.start(), m.end()):
            continue
        if reading.zones.in_heading(m.start()) or _is_of_days(reading.text, m.start(), letters):
            continue
        assertion = reading.judge(m.start(), m.end())
        at = m.start()
        for letter, meaning in zip(letters, meanings, strict=True):
            reading.add(
                Finding(
                    category="symptom",
                    start=at,
                    end=at + len(letter),
                    head_end=at + len(letter),
                    name=meaning,
                    rule="symptom.slash-list.v1",
                    engine_confidence=0.8,
                    negated=assertion.negated,
                    temporality=assertion.temporality,
                    certainty=assertion.certainty,
                    experiencer=assertion.experiencer,
                    zone=reading.zones.type_at(at),
                )
            )
            at += len(letter) + 1


_DAYS = frozenset({"m", "t", "w", "f", "s", "mo", "tu", "we", "th", "fr", "sa", "su", "r", "u"})
_DOSED = re.compile(r"\d[ ]?(?:mg|mcg|g|units?|u|mEq|ml|tabs?|caps?|puffs?)?[ ]*$", re.I)


def _is_of_days(text: str, start: int, letters: tuple[str, ...]) -> bool:
    """Return whether the letters behind a dose are the days of the dose (`5 mg M/W/F`)."""
    return set(letters) <= _DAYS and _DOSED.search(text, max(0, start - 16), start) is not None


def _by_letter(letters: tuple[str, ...]) -> tuple[str, ...] | None:
    if not all(letter in _MEANINGS for letter in letters) or letters in (("f", "u"), ("s", "s")):
        return None
    if len(letters) == 2 and letters not in _PAIRS:
        return None
    return tuple(_MEANINGS[letter] for letter in letters)
