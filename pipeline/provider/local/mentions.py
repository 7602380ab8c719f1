"""Terms of the lexicon in running text and lists, each with its assertion.

May import `reading`, `lexicon`, `medications` and `found`.
"""

from __future__ import annotations

from pipeline.provider.local.found import Found, own_words
from pipeline.provider.local.lexicon import Match, lexicon
from pipeline.provider.local.reading import Reading


def read_mentions(reading: Reading) -> None:
    """Add every known term that no earlier rule has claimed."""
    for match in lexicon().find(reading.tokens):
        if reading.is_claimed(match.start, match.end) or reading.zones.in_heading(match.start):
            continue
        found = _plain(reading, match)
        if found is not None:
            reading.add(found)


def _plain(reading: Reading, match: Match) -> Found | None:
    term = match.terms[0]
    if term.kind == "bare":
        return None
    said = reading.judge(match.start, match.end)
    return Found(
        category=term.category,
        start=match.start,
        end=match.end,
        head_end=match.end,
        name=own_words(reading.text[match.start : match.end]),
        rule=f"{term.category}.{term.kind}.v1",
        strength=0.9,
        negated=said.negated,
        historical=said.historical,
        hypothetical=said.hypothetical,
        family=said.family,
        zone=reading.zones.type_at(match.start),
    )
