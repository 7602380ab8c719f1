"""The words of a sentence that speak of one entity, and the printed dates in these words.

A clause ends at the next drug. A date counts only if nothing but the entity's own directions lies
between the date and the entity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pipeline.clinical.evidence import Evidence
from pipeline.clinical.facts import EntityFacts
from pipeline.clinical.medications.sig import DOSE, DURATION, FREQUENCY, GAP, ROUTE, SUPPLY
from pipeline.providers.local.names.lexicon import lexicon
from pipeline.providers.local.text.tokens import tokenize

_LONGEST = 400
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_NO_AMOUNT = (
    r"(?![\w/-]|\.\d|[ ]?(?:(?:mg|mcg|g|mL|units?|tab\w*|cap\w*"
    r"|puffs?|pills?|drops?|sprays?|patch\w*|IU|mEq)\b|%))"
)
DATE = (
    r"(?<![\w/.-])(?:(?:19|20)\d{2}-\d{1,2}-\d{1,2}"
    r"|\d{1,2}[/.-]\d{1,2}[/.-](?:\d{4}|\d{2})"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?[ -](?:of[ ])?{_MONTH}\.?,?[ -](?:\d{{4}}|\d{{2}})"
    rf"|{_MONTH}\.?[ ]\d{{1,2}}(?:st|nd|rd|th)?,?[ ]\d{{4}}"
    rf"|{_MONTH}\.?,?[ ](?:of[ ])?(?:19|20)\d{{2}}"
    r"|\d{1,2}/(?:19|20)\d{2}"
    rf"|{_MONTH}\.?[ ]\d{{1,2}}(?:st|nd|rd|th)?"
    r"|(?:(?:early|late|mid)[ -]?)?(?:19|20)\d{2}"
    rf"|\d{{1,2}}/\d{{1,2}}){_NO_AMOUNT}"
)
"""A printed date with its year, month or day; `clinical.dates` decides what the date means."""
_PLAIN = re.compile(
    r"(?:(?:tab(?:let)?s?|cap(?:sule)?s?|XL|ER|SR|XR|DR|inhaler|injection|oral|taken|used|given"
    r"|prescribed|was|were|is|has|have|had|been|which|that|he|she|they|patient|pt|the|and|then"
    r"|first|initially|originally|newly|take|takes|taking|on|in|at|by|med|medication|drug|dose"
    r"|therapy|course|new|also|now|currently|this)(?!\w)[ ]*)",
    re.I,
)
"""Words that add no other subject."""


class Clause(NamedTuple):
    """The words in front of a quote and behind the quote."""

    before: str
    """From the end of the entity before; in a table, only the own cell."""
    after: str
    """Up to the next drug or the end of the sentence; in a table, only the own cell."""


def clause_of(evidence: Evidence) -> Clause:
    """Return the clause of a medication's quote."""
    before, quote = evidence.before[-_LONGEST:], " ".join(evidence.quote.splitlines())
    if evidence.cells or "\t" in evidence.row:
        return Clause(before, evidence.after[:_LONGEST])
    at = evidence.sentence.find(evidence.before + quote + evidence.after)
    if at < 0:
        return Clause(before, evidence.after[:_LONGEST])
    begin = at + len(evidence.before) + len(quote)
    rest = evidence.sentence[begin : begin + _LONGEST]
    return Clause(before, rest[: _next_drug(rest, evidence, len(evidence.after))])


def _next_drug(rest: str, evidence: Evidence, entity_at: int) -> int:
    """Return where the next drug begins; a next entity of an unknown kind counts as a drug."""
    end = len(rest)
    if evidence.entity_after and not _is_reason(evidence.entity_after):
        end = min(end, entity_at)
    for match in lexicon().find(tokenize(rest), rest):
        if match.reading("medication") and not match.reading("condition", "symptom"):
            return min(end, match.start)
    return end


def _is_reason(quote: str) -> bool:
    return bool(quote) and reason_end(quote, 0) == len(quote.rstrip(" .,;"))


def reason_end(text: str, at: int) -> int:
    """Return the end of the conditions that begin at `at`; `at` itself without a condition."""
    end = at
    tokens = [token for token in tokenize(text) if token.start >= at]
    for match in lexicon().find(tokens, text):
        between = text[end : match.start]
        allowed = _ADJECTIVES if end == at else _JOINED
        if not match.reading("condition", "symptom") or not allowed.fullmatch(between):
            break
        end = match.end
    return end


_ADJECTIVES = re.compile(
    r"(?:(?:acute|chronic|severe|mild|moderate|recurrent|persistent|refractory|essential|his|her"
    r"|their|the|known|new|any|uncontrolled|poorly controlled|left|right|lower|upper|low)[ ])*",
    re.I,
)
_JOINED = re.compile(r"[ ]?(?:,|/|&|\+)?[ ]?(?:and|or)?[ ]?", re.I)


def skip_directions(text: str, at: int = 0) -> int:
    """Return the end of the directions and the plain words that begin at `at`."""
    while at < len(text):
        start = at
        gap = GAP.match(text, at)
        at = gap.end() if gap else at
        for pattern in (SUPPLY, DOSE, DURATION, FREQUENCY, ROUTE, _PLAIN):
            m = pattern.match(text, at)
            if m is not None and m.end() > at:
                at = m.end()
                break
        if at == start:
            return at
    return at


def cells_of(evidence: Evidence, heading: re.Pattern[str]) -> Iterator[str]:
    """Yield the cells of the row whose column has a heading of this form."""
    for head, cell in evidence.cells:
        words = " ".join(cell.split()).strip(" .")
        if heading.fullmatch(" ".join(head.split()).strip(" .:*").lower()) and words:
            yield words


def only(found: list[str]) -> str | None:
    """Return the one candidate; None without a candidate or with two that differ."""
    return found[0] if len(set(found)) == 1 else None


_LEAD = re.compile(
    r"[ ]*(?:\([^()\n\d]{1,20}\))?(?:[ ,:;(–-]|(?:was|were|is|done|given|administered|received"
    r"|performed|completed|vaccine|vaccination|shot|dose|series|booster|on|in|of|dated|date|last"
    r"|the|left|right|side|today)(?=[ ,:])|#[ ]?\d|[1-9][ ]of[ ][1-9]|[1-9](?:st|nd|rd|th))*",
    re.I,
)
_LAST = re.compile(
    rf"(?:^|[.;][ ]*)[ *•-]*(?:on[ ]|in[ ])?(?P<date>{DATE})[ ]?[:,–-]?[ ]*"
    r"(?:(?:s/p|status[ ]post|underwent|had|received|given|he|she|they|patient|pt|the|was|an?)"
    r"[ ]+)*$",
    re.I,
)
_NO_EVENT = re.compile(r"\b(?:due|next|exp(?:ires?)?|until|before|after|since|comparison)\b", re.I)


def event_dates(facts: EntityFacts, evidence: Evidence) -> Iterator[str]:
    """Yield the printed days of a procedure or an immunization: inside, behind, and in front."""
    quote = " ".join(evidence.quote.split())
    at = quote.lower().find(facts.name.lower())
    inside = quote[at + len(facts.name) :] if at >= 0 else ""
    for text in (inside, evidence.after):
        lead = _LEAD.match(text)
        m = _DAY.match(text, lead.end() if lead else 0)
        if m is not None and not _NO_EVENT.search(text[: m.start()]):
            yield m.group()
            if more := _AND_DAY.match(text, m.end()):
                # Two days of two events compete: `colonoscopy 2015, 2020`.
                yield more["date"]
    # A date behind another entity is a date of that entity.
    ahead = None if evidence.entity_before else _LAST.search(evidence.before)
    if ahead is not None:
        yield ahead["date"]


_DAY = re.compile(DATE, re.I)
_AND_DAY = re.compile(rf"[ ]*(?:,|and\b|&)[ ]*(?:again[ ])?(?:in[ ])?(?P<date>{DATE})", re.I)
