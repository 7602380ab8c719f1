"""The phrases that decide an assertion, compiled from `cue_grammar` and `lexicon/cues.txt`.

The order matters: the first phrase that matches at a place is taken. Pseudo-cues come first, then
the grammar of verb forms, then the file, which lists longer phrases before shorter ones.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from functools import cache

from pipeline.providers.local.cue_grammar import FIRST, grammar_rows
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
    ONSET_POST = auto()
    """A past date or age: past for an acute disease, the beginning of a chronic disease."""
    POSSIBLE = auto()
    POSSIBLE_POST = auto()
    BETWEEN = auto()
    """`versus`: both sides are merely possible."""
    CONDITION = auto()
    """`if`, `unless`: reaches to the end of the sentence, over verbs that state."""
    FAMILY = auto()
    FAMILY_POST = auto()
    STOP = auto()
    """Closes all scopes."""
    AFFIRM = auto()
    """A verb that states the words after it; closes the scopes before it."""
    PRESENT = auto()
    PATIENT = auto()
    """A word for the patient: the sentence is not about a relative."""


POST = frozenset(
    {
        CueKind.NOT_POST,
        CueKind.PAST_POST,
        CueKind.ONSET_POST,
        CueKind.POSSIBLE_POST,
        CueKind.FAMILY_POST,
    }
)
"""Kinds whose scope lies before the phrase."""


_NOT_INSIDE_A_WORD = r"(?!(?<=[a-z0-9])[a-z0-9])"
"""No cue begins inside a word. This test first makes the scan three times as fast."""


@cache
def cue_pattern() -> re.Pattern[str]:
    """Return one pattern for all phrases. `kind_of` reads the kind from the matching group."""
    listed: dict[str, list[str]] = {}
    kind = ""
    for row in raw_rows("cues.txt"):
        if re.fullmatch(r"\[[A-Z_]+\]", row):
            kind = CueKind[row[1:-1]].name
        else:
            listed.setdefault(kind, []).append(row)
    form = [_named(kind, row, i) for i, (kind, row) in enumerate(grammar_rows())]
    rest = [
        _named(kind, "|".join(rows), len(form) + i) for i, (kind, rows) in enumerate(listed.items())
    ]
    # The first kind of the file is NEUTRAL, which goes before the grammar.
    forms = "|".join([rest[0], f"{FIRST}(?:{'|'.join(form)})", *rest[1:]])
    return re.compile(f"{_NOT_INSIDE_A_WORD}(?:{forms})", re.I)


def _named(kind: str, rows: str, number: int) -> str:
    return f"(?P<{kind}_{number}>{rows})"


def kind_of(match: re.Match[str]) -> CueKind:
    """Return the kind of a match of `cue_pattern`."""
    return CueKind[(match.lastgroup or "NEUTRAL_0").rpartition("_")[0]]
