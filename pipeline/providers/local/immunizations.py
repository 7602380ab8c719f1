"""Vaccines that were given, planned or refused, with the date beside them."""

from __future__ import annotations

import re
from functools import cache

from pipeline.providers.local.dates import DateOrder, iso_day
from pipeline.providers.local.document_state import DocumentState
from pipeline.providers.local.finding import Finding, own_words
from pipeline.providers.local.lexicon import Term, TermMatch
from pipeline.providers.local.lexicon_files import concepts
from pipeline.providers.local.lines import bullet_end
from pipeline.providers.schemas import Certainty

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
    r"|needed|is\b|was\b|recommend|postpon|contra|unknown|up[ ]to)|[.:;|]"
)
_TO_BE = r"[ ,:(–-]*(?:(?:was|were|is|are|has|have|been|now|today|still|also)[ ]+)*"
_NOT_GIVEN = re.compile(
    _TO_BE
    + r"(?:declin|refus|defer|postpon|withheld|contraindicat|not[ ](?:given|wanted|received|done"
    r"|yet)|never|held\b)",
    re.I,
)
_NOT_YET = re.compile(_TO_BE + r"(?:(?:over)?due\b|offer|needed|recommend|planned|discussed)", re.I)


def _state(
    reading: DocumentState, end: int, negated: bool | None, certainty: Certainty | None
) -> tuple[bool | None, Certainty | None]:
    """Return whether the vaccine was refused and whether it is still due, by the words behind."""
    if _NOT_GIVEN.match(reading.text, end):
        return True, None
    if _NOT_YET.match(reading.text, end):
        return negated, "hypothetical"
    return negated, certainty


def read_immunization_rows(reading: DocumentState) -> None:
    """Add rows of an immunization list that name only the disease (`Zoster 10/11/2022`)."""
    for line in reading.lines:
        start = line.start + bullet_end(line.text)
        if reading.zones.type_at(start) != "immunizations" or reading.zones.in_heading(start):
            continue
        words = line.text[start - line.start :]
        m = _targets().match(words)
        if m is None or reading.is_claimed(start, line.end):
            continue
        name = _NAME_END.split(words, maxsplit=1)[0]
        end = start + len(name.rstrip(" ,"))
        date_at = _DATE.match(reading.text, end, line.end)
        given = _iso(date_at, reading.date_order) if date_at else None
        assertion = reading.judge(start, end)
        negated, certainty = _state(reading, end, assertion.negated, assertion.certainty)
        reading.add(
            Finding(
                category="immunization",
                start=start,
                end=date_at.end() if date_at and given else end,
                head_end=end,
                name=own_words(reading.text[start:end]),
                rule="immunization.row.v1",
                engine_confidence=0.85,
                date=given,
                negated=negated,
                temporality=assertion.temporality,
                certainty=certainty,
                experiencer=assertion.experiencer,
                zone="immunizations",
            )
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
    assertion = reading.judge(match.start, match.end)
    negated, certainty = _state(reading, match.end, assertion.negated, assertion.certainty)
    return Finding(
        category="immunization",
        start=match.start,
        end=m.end() if m and given else match.end,
        head_end=match.end,
        name=own_words(reading.text[match.start : match.end]),
        rule="immunization.v1",
        engine_confidence=0.9,
        date=given,
        negated=negated,
        temporality=assertion.temporality,
        certainty=certainty,
        experiencer=assertion.experiencer,
        zone=reading.zones.type_at(match.start),
    )


def _iso(m: re.Match[str], order: DateOrder | None) -> str | None:
    """Return the date; None if the date is ambiguous or if the calendar has no such day."""
    return iso_day(f"{m[1]}/{m[2]}/{m[3]}" if m[1] else f"{m[4]}-{m[5]}-{m[6]}", order)
