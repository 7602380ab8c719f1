"""Vaccines that were given, planned or refused, with the date beside them."""

from __future__ import annotations

import re
from functools import cache

from pipeline.clinical.date_forms import DateOrder, iso_day
from pipeline.clinical.page_text.lines import bullet_end
from pipeline.providers.local.assertions.judgement import Assertion
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.names.lexicon import Term, TermMatch
from pipeline.providers.local.names.word_lists import concepts

_GENERAL = "vaccine"
_DATE = re.compile(
    r"(?:[ ]*\([^)\n]{1,20}\))?[ ,:;(–-]*"
    r"(?:(?:given|administered|received|vaccine|dose|on|date|series|booster|completed"
    r"|today|last|in|was|is)[ ,:]+){0,4}"
    r"(?<!\d)(?:(\d{1,2})/(\d{1,2})/(\d{4})|(\d{4})-(\d{2})-(\d{2}))(?!\d)",
    re.I,
)


_NAME_END = re.compile(
    r"[ ]+(?=\d{1,2}/|\d{4}\b|-|–|\(|given\b|on\b|declin|refus|defer|due\b|overdue|not\b|offered"
    r"|needed|series\b|completed\b|patient\b|is\b|was\b|recommend|postpon|contra|unknown"
    r"|up[ ]to)|[.:;|]"
)
_TO_BE = (
    r"(?:[ ]*(?:#[ ]?\d|\([^)\n]{1,16}\)|(?:dose|series|booster)(?:[ ]#?\d)?))?[ ,;:(–-]*"
    r"(?:(?:was|were|is|are|has|have|been|and|then|now|today|still|also|patient|pt|he|she|they"
    r"|parents?|mother|father|family|guardian|but|again|offered|dose|this|visit|status)[ ,:]+)*"
)
_NOT_GIVEN = re.compile(
    _TO_BE
    + r"(?:declin|refus|defer|postpon|withheld|contraindicat|not[ ](?:given|wanted|received|done"
    r"|yet)|never|held\b)",
    re.I,
)
_NOT_YET = re.compile(
    _TO_BE + r"(?:(?:over)?due\b|offer|needed|recommend|planned|discussed|scheduled|pending)", re.I
)
_GIVEN = re.compile(_TO_BE + r"(?:given|administered|received)\b", re.I)


_HAD_DISEASE = re.compile(
    r"[ ,:;(–-]*(?:(?:positive|documented|reported|known)[ ])*(?:(?:patient|pt|he|she)[ ])?"
    r"(?:(?:(?:history|hx|h/o)[ ]of|had|natural|prior|past)[ ](?:the[ ])?"
    r"(?:disease|illness|infection|chicken[ ]?pox|shingles|measles|mumps)\b"
    r"|(?:non-?)?immun(?:e|ity)\b|titers?\b|IgG\b)",
    re.I,
)
"""Words behind the name of a disease that tell of the disease or of a titer, and of no vaccine."""


def _judged(reading: DocumentState, start: int, end: int) -> Assertion:
    """Judge a vaccine; the words behind say whether the vaccine was given, refused or is due."""
    said = reading.judge(start, end, is_act=True)
    if _NOT_GIVEN.match(reading.text, end):
        return said._replace(negated=True, certainty=None)
    if _NOT_YET.match(reading.text, end):
        return said._replace(temporality="planned", certainty="hypothetical")
    if said.temporality == "planned" and _GIVEN.match(reading.text, end):
        return said._replace(negated=False, temporality=None, certainty="certain")
    return said


def read_immunization_rows(reading: DocumentState) -> None:
    """Add rows of an immunization list that name only the disease (`Zoster 10/11/2022`)."""
    _read_named(reading)
    for line in reading.lines:
        start = line.start + bullet_end(line.text)
        if reading.zones.type_at(start) != "immunizations" or reading.zones.in_heading(start):
            continue
        words = line.text[start - line.start :]
        m = _targets().match(words)
        if m is None or reading.is_claimed(start, line.end):
            continue
        if _HAD_DISEASE.match(words, m.end()):
            continue
        name = _NAME_END.split(words, maxsplit=1)[0]
        end = start + len(name.rstrip(" ,"))
        date_at = _DATE.match(reading.text, end, line.end)
        given = _iso(date_at, reading.date_order) if date_at else None
        assertion = _judged(reading, start, end)
        reading.add(
            Finding(
                category="immunization",
                start=start,
                end=date_at.end() if date_at and given else end,
                head_end=end,
                name=own_words(reading.text[start:end]),
                rule=_rule(reading, start, end, assertion, "immunization.row"),
                engine_confidence=0.85,
                date=given,
                negated=assertion.negated,
                temporality=assertion.temporality,
                certainty=assertion.certainty,
                experiencer=assertion.experiencer,
                zone="immunizations",
            )
        )


_UNCLEAR = re.compile(
    r"\b(?:wait(?:s|ing)?|hold(?:s|ing)?[ ]off|delay(?:ed|s)?|think(?:s|ing)?|hesitan\w+|interested"
    r"|ask(?:s|ed|ing)?|questions?|contraindicat\w+|reactions?[ ]to|allerg\w+|side[ ]effects?"
    r"|unsure|unknown|uncertain|unclear|if|unless|whether|until|when|missed|miss(?:es)?|not|never"
    r"|no[ ]longer|except|instead|error|incorrect\w*|wrong|eligible|candidate|available|prefers?"
    r"|wants?|wishes|agrees?|consent\w*|education|counsel\w*|information|discuss\w*)\b|\?",
    re.I,
)
"""Words of a statement that leave open whether the vaccine was given."""


def _rule(reading: DocumentState, start: int, end: int, assertion: Assertion, name: str) -> str:
    """Return the rule's id; a vaccine beside words that no rule explains is not understood."""
    stated = assertion.negated is not True and assertion.temporality != "planned"
    stated = stated and assertion.certainty in (None, "certain")
    sentence = reading.assertions.sentence_at(start)
    line_end = reading.text.find("\n", end)
    until = min(sentence.end, line_end if line_end >= 0 else sentence.end, end + 80)
    around = reading.text[max(sentence.start, start - 60) : start], reading.text[end:until]
    is_open = stated and any(_UNCLEAR.search(words) for words in around)
    if is_open or (assertion.is_doubtful and stated):
        return f"{name}-not-understood.v1"
    return f"{name}.v1"


_BEHIND_NAME = re.compile(r"\)[ ]+(?:vaccin|immuni[sz]ation|shot|booster)", re.I)
"""Words without which `_named` finds nothing. This test is much faster."""


def _read_named(reading: DocumentState) -> None:
    """Add vaccines with another name in parentheses (`Influenza (flu) vaccine given`)."""
    if not _BEHIND_NAME.search(reading.text):
        return
    for m in _named().finditer(reading.text):
        if reading.is_claimed(m.start(), m.end()) or reading.zones.in_heading(m.start()):
            continue
        term = Term("immunization", own_words(m.group()), "word")
        match = TermMatch(0, 0, m.start(), m.end(), (term,))
        found = as_immunization(reading, match, term)
        if found is not None:
            reading.add(found)


@cache
def _named() -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w-]){_targets().pattern}[ ]*\([^)\n]{{1,30}}\)[ ]+"
        r"(?:vaccin(?:e|ation)s?|immuni[sz]ations?|shots?|boosters?)\b",
        re.I,
    )


@cache
def _targets() -> re.Pattern[str]:
    names = sorted(
        (v for variants in concepts("immunization_targets.txt") for v in variants),
        key=len,
        reverse=True,
    )
    return re.compile(rf"(?:{'|'.join(re.escape(name) for name in names)})(?!\w)", re.I)


def is_vaccine_target(reading: DocumentState, match: TermMatch) -> bool:
    """Return whether a disease in a list of immunizations is the name of its vaccine."""
    if reading.zones.type_at(match.start) != "immunizations":
        return False
    if _HAD_DISEASE.match(reading.text, match.end):
        return False
    return _targets().fullmatch(reading.text[match.start : match.end]) is not None


def names_target(name: str) -> bool:
    """Return whether `name` is a disease that a vaccine prevents."""
    return _targets().fullmatch(name) is not None


def as_immunization(reading: DocumentState, match: TermMatch, term: Term) -> Finding | None:
    """Return the vaccine at `match`; None for the bare word `vaccine` without a disease."""
    if term.name == _GENERAL:
        return None
    m = _DATE.match(reading.text, match.end)
    given = _iso(m, reading.date_order) if m else None
    assertion = _judged(reading, match.start, match.end)
    return Finding(
        category="immunization",
        start=match.start,
        end=m.end() if m and given else match.end,
        head_end=match.end,
        name=own_words(reading.text[match.start : match.end]),
        rule=_rule(reading, match.start, match.end, assertion, "immunization"),
        engine_confidence=0.9,
        date=given,
        negated=assertion.negated,
        temporality=assertion.temporality,
        certainty=assertion.certainty,
        experiencer=assertion.experiencer,
        zone=reading.zones.type_at(match.start),
    )


def _iso(m: re.Match[str], order: DateOrder | None) -> str | None:
    """Return the date; None if the date is ambiguous or if the calendar has no such day."""
    return iso_day(f"{m[1]}/{m[2]}/{m[3]}" if m[1] else f"{m[4]}-{m[5]}-{m[6]}", order)
