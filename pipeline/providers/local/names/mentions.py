"""Terms of the lexicon in running text and lists, each with its assertion."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache, lru_cache

from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.medications.allergies import Allergens, as_allergy
from pipeline.providers.local.medications.immunizations import (
    as_immunization,
    is_vaccine_target,
    names_target,
)
from pipeline.providers.local.medications.rule import described, is_part_of_name, medication
from pipeline.providers.local.names.act_times import timed
from pipeline.providers.local.names.false_positives import (
    is_drug_beyond_doubt,
    is_ruled_out,
    names_resistance,
)
from pipeline.providers.local.names.lexicon import Term, TermMatch, lexicon
from pipeline.providers.local.names.misspellings import SHORTEST, misspelt_drug
from pipeline.providers.local.names.morphology import SHORTEST_ENDING, category_of
from pipeline.providers.local.names.word_lists import concepts, words
from pipeline.providers.local.text.tokens import is_word, normal

_STAGE = re.compile(
    r",?[ \n]+(?:stage|grade|class|type|NYHA(?:[ ]class)?)[ ]+(?:[IVX]{1,4}|\d)[A-Ca-c]?(?![\w])"
    r"(?![ ]+(?:diabet|DM|MI|myocardial|respiratory|hypersens|HIT))",
    re.I,
)
_ZERO = re.compile(
    r"[ \t]*[:=]?[ \t]*(?:0\+?|0[ ]?/[ ]?\d{1,2}|zero)(?=[ ]*(?:[,;)|\t\n]|\.(?!\d)|$))", re.I
)
"""A grade of zero (`Fever 0`), which can deny the symptom."""
_DEFINITION = re.compile(r"[ \n]{1,2}\(([A-Z]{2,6})s?\)")
_VAGUE = frozenset(("disease", "disorder", "syndrome"))
_EPONYM = re.compile(r"(?<![.\n:])[ ]([A-ZÀ-Þ][a-zß-ÿ]+(?:-[A-ZÀ-Þ][a-zß-ÿ]+)?(?:['’]s)?)[ ]$")
"""An unlisted name before a vague word, which makes a disease of the word (`Kienböck disease`)."""
_DEFINED = ("condition", "symptom", "procedure")
_WORDS = re.compile(r"[A-Za-z]+")
_SMALL = ("of", "the", "and", "in", "with")
_CONFIDENCE = {"word": 0.92, "abbreviation": 0.88, "class": 0.85, "allergen": 0.85, "bare": 0.8}


def read_mentions(reading: DocumentState) -> None:
    """Add every known term that no earlier rule has claimed."""
    allergens = Allergens(reading)
    matches = [
        match
        for match in lexicon().find(reading.tokens, reading.document.raw)
        if not reading.is_claimed(match.start, match.end) and not _in_plain_heading(reading, match)
    ]
    starts = [
        m.start for m in matches if m.reading("medication") and not is_part_of_name(reading.text, m)
    ]
    starts = sorted({*starts, *(m.start for m in _unlisted(reading) if m.reading("medication"))})
    for match in matches:
        if reading.is_claimed(match.start, match.end):
            continue
        after = bisect_right(starts, match.start)
        following = starts[after] if after < len(starts) else len(reading.text)
        found = _read(reading, match, allergens, following)
        if found is not None:
            reading.add(found)


def read_defined(reading: DocumentState) -> None:
    """Add later mentions of abbreviations that the text defines: `plantar fasciitis (PF)`."""
    defined = {
        m[1]: finding
        for finding in reading.findings
        if finding.category in _DEFINED
        and (m := _DEFINITION.match(reading.text, finding.end))
        and _abbreviates(m[1], reading.text[max(0, finding.end - 120) : finding.end])
    }
    if not defined:
        return
    for index, token in enumerate(reading.tokens):
        long = defined.get(token.text) or defined.get(token.text.removesuffix("s"))
        if long is None or token.start <= long.end + 2:
            continue
        if reading.is_claimed(token.start, token.end) or reading.zones.in_heading(token.start):
            continue
        term = Term(long.category, long.name, "defined")
        match = TermMatch(index, index + 1, token.start, token.end, (term,))
        found = _decided(
            reading, _finding(reading, match, term, rule=f"{long.category}.defined.v1")
        )
        if found is not None:
            reading.add(found)


def _abbreviates(short: str, words: str) -> bool:
    """Return whether the last words before an abbreviation begin with its letters."""
    letters = [c.lower() for c in short]
    initials = [word[0].lower() for word in _WORDS.findall(words) if word.lower() not in _SMALL]
    return len(letters) >= 2 and initials[-len(letters) :] == letters


def read_by_ending(reading: DocumentState) -> None:
    """Add unlisted words that their ending identifies, and misspelt drugs."""
    allergens = Allergens(reading)
    matches = [m for m in _unlisted(reading) if not reading.is_claimed(m.start, m.end)]
    ends = [m.start for m in matches[1:] if m.reading("medication")]
    for match in matches:
        term = match.terms[0]
        if reading.is_claimed(match.start, match.end):
            continue
        found: Finding | None
        if term.category != "medication":
            rule = f"{term.category}.{term.kind}.v1"
            found = _decided(reading, _finding(reading, match, term, rule=rule))
        elif allergens.speaks_at(match.start):
            found = as_allergy(reading, match, allergens)
        elif not is_drug_beyond_doubt(reading, match, term):
            continue
        else:
            following = next((end for end in ends if end > match.start), len(reading.text))
            found = described(
                reading,
                match.start,
                match.end,
                following,
                rule=f"med.{term.kind}.v1",
                engine_confidence=0.6,
            )
            found = _decided(reading, found)
        if found is not None:
            reading.add(found)


def _unlisted(reading: DocumentState) -> list[TermMatch]:
    """Return the words that no list knows, and that their ending or a misspelt drug explains."""
    found: list[TermMatch] = []
    for index, token in enumerate(reading.tokens):
        term = term_of(token.text) if len(token.text) >= SHORTEST_ENDING else None
        if term is not None and not reading.zones.in_heading(token.start):
            found.append(TermMatch(index, index + 1, token.start, token.end, (term,)))
    return found


@lru_cache(maxsize=20_000)
def term_of(word: str) -> Term | None:
    """Return the meaning of a word that no list knows, by its ending or as a misspelt drug."""
    category = category_of(word)
    misspelt = misspelt_drug(word) if len(word) >= SHORTEST else None
    if (category is None and misspelt is None) or lexicon().lookup(word):
        return None
    if misspelt is not None:
        return Term("medication", misspelt, "misspelt")
    return Term(category, normal(word), "ending") if category else None


def _in_plain_heading(reading: DocumentState, match: TermMatch) -> bool:
    """Return whether a match is only a section's heading, not a problem printed as a heading."""
    zone = reading.zones.at(match.start)
    if zone is None or match.end > zone.body:
        return False
    return not (zone.zone == "imaging" and match.reading("procedure"))


def _read(
    reading: DocumentState, match: TermMatch, allergens: Allergens, following: int
) -> Finding | None:
    is_substance = match.reading("medication", "allergy") is not None
    if is_substance and names_resistance(reading, match):
        return None
    if is_substance and allergens.speaks_at(match.start):
        return as_allergy(reading, match, allergens)
    term = next((t for t in match.terms if t.category != "allergy"), None)
    if term is None or is_ruled_out(reading, match, term):
        return None
    if term.category == "medication":
        return _decided(reading, medication(reading, match, following))
    if term.category == "immunization":
        return as_immunization(reading, match, term)
    if is_vaccine_target(reading, match):
        return as_immunization(reading, match, term)
    return _decided(reading, _finding(reading, match, term, rule=f"{term.category}.{term.kind}.v1"))


def _decided(reading: DocumentState, found: Finding | None) -> Finding | None:
    """Return None below headings side by side, unless the words of `found` decide its column."""
    zone = reading.zones.at(found.start) if found is not None else None
    if found is None or zone is None or not zone.beside:
        return found
    if found.category == "medication":
        listed = "medications" in zone.beside and not zone.beside & {"allergies", "family_history"}
        return found if listed or found.dose or found.frequency else None
    if "family_history" in zone.beside:
        return None
    is_vaccine = "immunizations" in zone.beside and names_target(found.name)
    return None if is_vaccine else found


_PASSING = re.compile(
    r"\bacute\b(?![ ]on[ ]chronic)|\bgestational\b|\bpregnancy\b|\b(?:crisis|crises|attacks?)\b"
    r"|\bseptic\b|\bexacerbation|\bketoacidosis\b|\bhyperosmolar\b|\bulcers?\b"
)
"""Words that turn the name of a lasting disease into the name of an episode."""


def _finding(reading: DocumentState, match: TermMatch, term: Term, *, rule: str) -> Finding:
    start, end = match.start, match.end
    if term.category in ("condition", "symptom") and term.kind != "abbreviation":
        start = _with_modifiers(reading, match)
        before = reading.text[max(0, start - 40) : start]
        if before.lower().endswith("non-") and start < match.start:
            start -= len("non-")
        elif start == match.start and reading.text[start:end] in _VAGUE:
            eponym = _EPONYM.search(before)
            start -= len(before) - eponym.start(1) if eponym else 0
    if term.category == "condition":
        stage = _STAGE.match(reading.text, end)
        end = stage.end() if stage else end
    lasting = term.category == "condition" and _is_chronic(reading.text[start:end], term)
    assertion = reading.judge(
        match.start, match.end, lasting=lasting, is_act=term.category == "procedure"
    )
    if term.category == "procedure":
        assertion = timed(reading, match.start, match.end, assertion)
    negated = True if term.name == "no acute distress" else assertion.negated
    is_graded_zero = term.category in ("condition", "symptom") and _ZERO.match(reading.text, end)
    if assertion.is_doubtful or is_graded_zero:
        rule = f"{rule.removesuffix('.v1')}-not-understood.v1"
    return Finding(
        category=term.category,
        start=start,
        end=end,
        head_end=match.end,
        name=own_words(reading.text[start:end]),
        rule=rule,
        engine_confidence=_CONFIDENCE.get(term.kind, 0.7),
        negated=negated,
        temporality=assertion.temporality,
        certainty=assertion.certainty,
        experiencer=assertion.experiencer,
        zone=reading.zones.type_at(match.start),
    )


def _is_chronic(printed: str, term: Term) -> bool:
    """Return whether the printed words name a disease that lasts.

    A concept groups related diseases, some of which pass. So its name counts only for a short form.
    """
    words = own_words(printed).lower()
    if term.kind == "abbreviation":
        words = f"{words} {term.name}".lower()
    return _names_chronic(words)


@lru_cache(maxsize=4_096)
def _names_chronic(words: str) -> bool:
    return _PASSING.search(words) is None and any(chronic in words for chronic in _chronic())


@cache
def _chronic() -> tuple[str, ...]:
    return tuple(variant.lower() for variants in concepts("chronic.txt") for variant in variants)


def _with_modifiers(reading: DocumentState, match: TermMatch) -> int:
    """Return where the mention begins, including the modifiers that belong to its name."""
    start = match.start
    known = words("modifiers.txt")
    at = match.first - 1
    while at >= 0 and match.first - at <= 4:
        token = reading.tokens[at]
        gap = reading.document.raw[token.end : start]
        if (
            not is_word(token)
            or gap not in (" ", "\n", "-", "  ")
            or token.text.lower() not in known
        ):
            break
        if token.text.lower() == "on" and reading.tokens[at - 1].text.lower() != "acute":
            break
        if reading.is_claimed(token.start, token.end) or reading.zones.in_heading(token.start):
            break
        if reading.assertions.sentence_at(token.start).end <= match.start:
            break
        start = token.start
        at -= 1
    return start
