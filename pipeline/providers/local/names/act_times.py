"""The time of a procedure by the date behind the procedure and by the heading above.

`Appendectomy, 1974` is over. A procedure below `RECOMMENDATIONS` is not done yet, unless its
sentence says so.
"""

from __future__ import annotations

import re
from datetime import date

from pipeline.clinical.date_forms import DATE_FORM, iso_day
from pipeline.providers.local.assertions.judgement import Assertion
from pipeline.providers.local.document_state import DocumentState

_WHEN = re.compile(
    r"(?:[ ]*,[ ](?:left|right|bilateral))?[ \t,:;(–-]*"
    r"(?:(?:of|on|in|from|dated|done|performed)[ ]+)?"
    rf"(?P<when>{DATE_FORM}|(?:19|20)\d\d(?![\d/-]))",
    re.I,
)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_PAST_HEADING = re.compile(
    r"\b(?:surg(?:ical|eries)|procedur(?:e|es|al)|operati(?:ve|ons?))\b.*\b(?:history|hx)\b"
    r"|\b(?:past|prior|previous)\b.*\b(?:surg|procedur|operati)|\bPSH\b",
    re.I,
)
_PLAN_HEADING = re.compile(
    r"^(?:(?:treatment|care|discharge)[ ])?(?:plans?|recommendations?|orders?|follow[- ]?up"
    r"|to[ -]?do|next[ ]steps)\b",
    re.I,
)
_GOES_ON = re.compile(r"\b(?:continu|resum|remain|tolerat|complet|s/p|status)\w*", re.I)

_RESULT = re.compile(
    r":|\b(?:today|normal|abnormal|negative|positive|unremarkable|show\w*|reveal\w*|found|results?"
    r"|was|were|is|are)\b",
    re.I,
)


def timed(reading: DocumentState, start: int, end: int, said: Assertion) -> Assertion:
    """Return the assertion about a procedure with the time that its date or its heading gives."""
    if said.negated is True or said.temporality in ("historical", "planned"):
        return said
    m = _WHEN.match(reading.text, end)
    order = _compared(reading, m["when"]) if m else 0
    zone = reading.zones.at(start)
    heading = (zone.heading or "") if zone else ""
    if order < 0 or (order == 0 and _PAST_HEADING.search(heading)):
        return said._replace(temporality="historical")
    if order > 0 or (
        m is None and _PLAN_HEADING.search(heading) and _is_bare(reading, start, said)
    ):
        return said._replace(temporality="planned", certainty="hypothetical")
    return said


def _is_bare(reading: DocumentState, start: int, said: Assertion) -> bool:
    """Return whether the sentence says nothing about the time of a procedure."""
    sentence = reading.assertions.sentence_at(start)
    if said.certainty is not None or _GOES_ON.search(reading.text, sentence.start, start):
        return False
    return _RESULT.search(reading.text, start, sentence.end) is None


def _compared(reading: DocumentState, when: str) -> int:
    """Return -1 for a date before the document's own date, 1 for a later date, 0 if not certain."""
    own, years = reading.own_day, {int(y) for y in _YEAR.findall(reading.own_dates)}
    day = iso_day(when, reading.date_order)
    if day is not None and own is not None:
        then = date.fromisoformat(day)
        return (then > own) - (then < own)
    found = _YEAR.search(when)
    if found is None or not years:
        return 0
    year = int(found.group())
    return (year > max(years)) - (year < min(years))
