"""Medications with dose, route and frequency, including misspelt and unlisted names."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.lexicon import TermMatch, lexicon
from pipeline.providers.local.lexicon_files import concepts_of_drugs, words
from pipeline.providers.local.prescription_sig import dose_before, read_sig, salt_end

_STOPPED = re.compile(
    r"(?<!was )(?<!were )(?<!been )\b(?:stop(?:ped|ping)?|discontinu(?:e|ed|ing)|d/c'?d?"
    r"|hold(?:ing)?|held|avoid(?:ed|ing)?|never[ ]take|do[ ]not[ ](?:take|use|restart|give)"
    r"|no[ ]longer[ ](?:taking|on|takes)|off[ ]of|no[ ]more|come[ ]off|taken[ ]off|quit)\b"
    r"(?![^.;]*\b(?:start|begin|continue|started|takes|taking)\b)",
    re.I,
)
_STOPPED_BEHIND = re.compile(
    r"^[^.;\n]{0,40}?\b(?:was|were|is|are|has[ ]been|have[ ]been|been|:|-)[ ](?:now[ ]|also[ ])?"
    r"(?:stopped|discontinued|held|on[ ]hold|avoided)\b",
    re.I,
)
_STOP_HEADING = re.compile(r"^(?:stop|discontinu|held|hold|avoid)", re.I)
_SIG_ONLY = re.compile(
    r"(?<![\w-])([A-Za-z][A-Za-z-]{4,})[ ]+(?=\(?\d[\d,.]*[ ]?"
    r"(?:mg|mcg|[µμ]g|units|mEq|puffs?)(?:/kg)?(?![\w/]))"
)
_UNKNOWN = re.compile(r"(?<![\w-])[A-Za-z][A-Za-z-]{4,}(?![\w-])")
_LONG_NAME = 9
"""A name with at least this many letters may differ from a known name in two places."""


def medication(reading: DocumentState, match: TermMatch, next_start: int) -> Finding | None:
    """Return the medication at `match`; read no further than `next_start`."""
    term = match.reading("medication")
    if term is None:
        return None
    return described(
        reading,
        match.start,
        match.end,
        next_start,
        rule="med.sig.v1" if term.kind != "class" else "med.class.v1",
        strength=0.95 if term.kind == "word" else 0.85,
        needs_dose=term.kind == "bare" and reading.zones.type_at(match.start) != "medications",
    )


def described(
    reading: DocumentState,
    start: int,
    end: int,
    next_start: int,
    *,
    rule: str,
    strength: float,
    needs_dose: bool = False,
) -> Finding | None:
    """Read the directions around a drug's name and judge whether the patient takes the drug."""
    text = reading.text
    sentence = reading.assertions.sentence_at(start)
    limit = min(next_start, max(sentence.end, end))
    name_end = salt_end(text, end, limit)
    sig = read_sig(text, name_end, limit)
    dose, begin = sig.dose, start
    if dose is None and (before := dose_before(text, start, sentence.start)) is not None:
        begin, dose = before
    if needs_dose and dose is None:
        return None
    assertion = reading.judge(start, end)
    zone = reading.zones.at(start)
    stopped = _is_stopped(text, sentence.start, start, max(sig.end, end), sentence.end) or (
        zone is not None and bool(_STOP_HEADING.match(zone.heading or ""))
    )
    return Finding(
        category="medication",
        start=begin,
        end=max(sig.end, name_end),
        head_end=name_end,
        name=own_words(text[start:name_end]),
        rule=rule,
        strength=strength,
        dose=dose,
        route=sig.route,
        frequency=sig.frequency,
        negated=True if stopped else assertion.negated,
        historical=None if stopped and not assertion.historical else assertion.historical,
        hypothetical=assertion.hypothetical,
        family=assertion.family,
        zone=zone.zone if zone else None,
    )


def read_unknown_drugs(reading: DocumentState) -> None:
    """Add unlisted names: names before a dose, and misspelt names in a medication section."""
    for m in _SIG_ONLY.finditer(reading.text):
        start, end = m.span(1)
        word = m[1].lower()
        if reading.is_claimed(start, end) or word in words("common_words.txt"):
            continue
        found = described(
            reading, start, end, len(reading.text), rule="med.sig-only.v1", strength=0.5
        )
        if found is not None and found.dose is not None:
            reading.add(found)
    for zone in reading.zones.all:
        if zone.zone != "medications":
            continue
        for m in _UNKNOWN.finditer(reading.text, zone.body, zone.end):
            known = misspelt(m.group())
            if known is None or reading.is_claimed(m.start(), m.end()):
                continue
            found = described(
                reading,
                m.start(),
                m.end(),
                zone.end,
                rule="med.misspelt.v1",
                strength=0.6,
            )
            if found is not None:
                reading.add(found)


@lru_cache(maxsize=4_096)
def misspelt(word: str) -> str | None:
    """Return the drug that `word` most likely misspells; None for any other word."""
    low = word.lower()
    if low in words("common_words.txt") or lexicon().lookup(low):
        return None
    allowed = 2 if len(low) >= _LONG_NAME else 1
    for name in _names_by_letter().get(low[0], ()):
        if abs(len(name) - len(low)) <= allowed and _distance(low, name, allowed) <= allowed:
            return name
    return None


@cache
def _names_by_letter() -> dict[str, tuple[str, ...]]:
    names: dict[str, list[str]] = {}
    for name in concepts_of_drugs():
        if name.isalpha() and len(name) >= 5:
            names.setdefault(name[0].lower(), []).append(name.lower())
    return {letter: tuple(found) for letter, found in names.items()}


def _distance(left: str, right: str, limit: int) -> int:
    """Return the Levenshtein distance, or any number above `limit` if it is larger."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        previous, row[0] = row[0], i
        for j, b in enumerate(right, start=1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
        if min(row) > limit:
            return limit + 1
    return row[-1]


def _is_stopped(text: str, first: int, start: int, end: int, last: int) -> bool:
    before = text[max(first, start - 80) : start].replace("\n", " ")
    behind = text[end : min(last, end + 80)].replace("\n", " ")
    return bool(_STOPPED.search(before)) or bool(_STOPPED_BEHIND.match(behind))
