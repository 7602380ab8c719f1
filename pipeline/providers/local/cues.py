"""The phrases that decide an assertion, compiled from `lexicon/cues.txt`.

The order of the file matters: the first phrase that matches at a place is taken. So the file lists
pseudo-cues first, and longer phrases before shorter ones.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import cache

from pipeline.providers.local.lexicon_files import raw_rows


class CueKind(Enum):
    """The effect of a phrase on the mentions around it."""

    NEUTRAL = auto()
    """A phrase that looks like a cue but is not a cue."""
    NOT = auto()
    NOT_POST = auto()
    NEAR_NOT = auto()
    """A bare `not`, which reaches only a few words."""
    ADJACENT_NOT = auto()
    """`non-`, which negates only the next word."""
    PAST = auto()
    HISTORY = auto()
    """`history of`: past for an acute disease, present for a chronic disease."""
    PAST_POST = auto()
    POSSIBLE = auto()
    POSSIBLE_POST = auto()
    FAMILY = auto()
    FAMILY_POST = auto()
    STOP = auto()
    """Closes all scopes."""
    AFFIRM = auto()
    """A verb that states the words after it; closes the scopes before it."""
    PRESENT = auto()
    PATIENT = auto()
    """A word for the patient: the sentence is not about a relative."""


POST = frozenset({CueKind.NOT_POST, CueKind.PAST_POST, CueKind.POSSIBLE_POST, CueKind.FAMILY_POST})
"""Kinds whose scope lies before the phrase."""

_RELATIVE = (
    r"(?:(?:maternal|paternal|half|step)[ -])?"
    r"(?:(?:great[ -])?grand(?:mother|father|parents?|ma|pa)|mother|father|mom|dad|brothers?"
    r"|sisters?|siblings?|aunts?|uncles?|cousins?|parents?|nephews?|nieces?|son|daughter"
    r"|maternal|paternal|relatives?)"
)


@cache
def cue_pattern() -> re.Pattern[str]:
    """Return one pattern for all phrases. The matching group's name is the kind."""
    phrases: dict[CueKind, list[str]] = {}
    kind = CueKind.NEUTRAL
    for row in raw_rows("cues.txt"):
        if re.fullmatch(r"\[[A-Z_]+\]", row):
            kind = CueKind[row[1:-1]]
        else:
            phrases.setdefault(kind, []).append(row.replace("RELATIVE", _RELATIVE))
    groups = (f"(?P<{kind.name}>{'|'.join(rows)})" for kind, rows in phrases.items())
    return re.compile("|".join(groups), re.I)
