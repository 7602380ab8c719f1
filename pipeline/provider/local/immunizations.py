"""Vaccines that were given, planned or refused, with the date that stands beside them.

May import `reading`, `lexicon`, `dates` and `found`.
"""

from __future__ import annotations

import re
from datetime import date

from pipeline.provider.local.found import Found, own_words
from pipeline.provider.local.lexicon import Match, Term
from pipeline.provider.local.reading import Reading

_GENERAL = "vaccine"
_DATE = re.compile(r"(?<!\d)(?:(\d{1,2})/(\d{1,2})/(\d{4})|(\d{4})-(\d{2})-(\d{2}))(?!\d)")
_REACH = 40


def as_immunization(reading: Reading, match: Match, term: Term) -> Found | None:
    """Return the vaccine at `match`; the word alone, without a disease, is none."""
    if term.name == _GENERAL:
        return None
    limit = reading.text.find("\n", match.end)
    limit = min(match.end + _REACH, limit if limit >= 0 else len(reading.text))
    m = _DATE.search(reading.text, match.end, limit)
    given = _iso(m) if m else None
    said = reading.judge(match.start, match.end)
    return Found(
        category="immunization",
        start=match.start,
        end=m.end() if m and given else match.end,
        head_end=match.end,
        name=own_words(reading.text[match.start : match.end]),
        rule="immunization.v1",
        strength=0.9,
        date=given,
        negated=said.negated,
        historical=said.historical,
        hypothetical=said.hypothetical,
        zone=reading.zones.type_at(match.start),
    )


def _iso(m: re.Match[str]) -> str | None:
    """Return the date, or None where the calendar has no such day."""
    month, day, year = (m[1], m[2], m[3]) if m[1] else (m[5], m[6], m[4])
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None
