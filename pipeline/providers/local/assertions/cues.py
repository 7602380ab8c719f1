"""The phrases that decide an assertion, compiled from `cue_grammar` and `lexicon/cues.txt`.

The order matters: the first phrase that matches at a place is taken. Pseudo-cues come first, then
the grammar of verb forms, then the file, which lists longer phrases before shorter ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from enum import Enum, auto
from functools import cache, lru_cache
from typing import NamedTuple

from pipeline.providers.local.assertions.cue_beginnings import ANY, alternatives, beginnings
from pipeline.providers.local.assertions.cue_grammar import grammar_rows
from pipeline.providers.local.names.word_lists import raw_rows


class CueKind(Enum):
    """The effect of a phrase on the mentions around it."""

    __hash__ = object.__hash__
    """Members are equal only to themselves, and sets of kinds hash in every judgement."""

    NEUTRAL = auto()
    """A phrase that looks like a cue but is not a cue."""
    NOT = auto()
    NOT_POST = auto()
    UNCLEAR = auto()
    """A double negation (`never denied`): the words behind are neither stated nor denied."""
    REFUSED_POST = auto()
    """`refused`, `cancelled`: the act directly before was not done. A cough can decline."""
    NEAR_NOT = auto()
    """A bare `not`, which reaches only a few words."""
    NEAR_NOT_POST = auto()
    """`absent`, which reaches back only a few words."""
    ADJACENT_NOT = auto()
    """`non-`, which negates only the next word."""
    ADJACENT_NOT_POST = auto()
    """`HIV-negative`: negates only the word directly before."""
    DENIED_PART = auto()
    """`no change in`: denies a word of the phrase itself, and nothing behind the phrase."""
    PAST = auto()
    HISTORY = auto()
    """`history of`: past for an acute disease, present for a chronic disease."""
    PAST_POST = auto()
    ONSET_POST = auto()
    """A past date or age: past for an acute disease, the beginning of a chronic disease."""
    POSSIBLE = auto()
    """Suspected, probable, not excluded."""
    POSSIBLE_POST = auto()
    CONFIRM_POST = auto()
    """`and was positive`: what was tested, suspected or sought is present."""
    DOUBT = auto()
    """`whether`, `likely that`: the clause behind is possible, over verbs that state."""
    BETWEEN = auto()
    """`versus`: both sides are merely possible."""
    RISK = auto()
    """A risk, a warning or prevention: the mention is hypothetical."""
    RISK_POST = auto()
    """`prophylaxis`, `precautions`: reaches only the mention directly before."""
    PLANNED = auto()
    """`scheduled for`: planned, if the mention is something that is done."""
    PLANNED_POST = auto()
    """`is scheduled`: not done yet."""
    LATER_POST = auto()
    """`next week`: planned, if the mention is something that is done."""
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
        CueKind.NEAR_NOT_POST,
        CueKind.ADJACENT_NOT_POST,
        CueKind.REFUSED_POST,
        CueKind.CONFIRM_POST,
        CueKind.PAST_POST,
        CueKind.ONSET_POST,
        CueKind.POSSIBLE_POST,
        CueKind.RISK_POST,
        CueKind.PLANNED_POST,
        CueKind.LATER_POST,
        CueKind.FAMILY_POST,
    }
)
"""Kinds whose scope lies before the phrase."""


class Cue(NamedTuple):
    """A phrase that opens or closes a scope; offsets count from the start of the text."""

    start: int
    end: int
    kind: CueKind


_PLACE = re.compile(r"[a-z0-9]+|[^a-z0-9]", re.I)
"""A cue begins with a word or a sign, never inside a word."""
_DIAGNOSIS = re.compile(r"diagnos[ie]s[ ]+of\b", re.I)
_OR_VERB = re.compile(r"[ ](?:or|nor)[ ]+(?:(?:ever|even|otherwise)[ ]+)?$", re.I)
_DETERMINED = re.compile(
    r"[ ]*(?:(?:the|an?|any|his|her|their|this|prior|previous|formal|clinical|alternative|new"
    r"|known)[ ]+)*",
    re.I,
)
_OF_DIAGNOSIS = frozenset(
    {CueKind.NOT, CueKind.NEAR_NOT, CueKind.UNCLEAR, CueKind.POSSIBLE, CueKind.DOUBT, CueKind.RISK}
)
_SIZE = 4
"""The characters by which phrases are chosen. With two, a place has five times as many."""
_OF_TIME = frozenset({CueKind.PAST, CueKind.PRESENT})
_Phrase = tuple[CueKind, re.Pattern[str]]


@cache
def cue_rows() -> tuple[tuple[CueKind, str], ...]:
    """Return all patterns with their kinds. The first pattern that matches at a place is taken."""
    neutral: list[tuple[CueKind, str]] = []
    listed: list[tuple[CueKind, str]] = []
    kind = CueKind.NEUTRAL
    for row in raw_rows("cues.txt"):
        if re.fullmatch(r"\[[A-Z_]+\]", row):
            kind = CueKind[row[1:-1]]
        else:
            (neutral if kind is CueKind.NEUTRAL else listed).append((kind, row))
    grammar = [(CueKind[name], row) for name, row in grammar_rows()]
    return (*neutral, *grammar, *listed)


@cache
def _phrases() -> tuple[_Phrase, ...]:
    return tuple(
        (kind, re.compile(part, re.I)) for kind, row in cue_rows() for part in alternatives(row)
    )


@cache
def _by_beginning() -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """Return the places of the phrases by each of their beginnings, and by what begins those."""
    whole: defaultdict[str, set[int]] = defaultdict(set)
    cut: defaultdict[str, set[int]] = defaultdict(set)
    parts = (part for _, row in cue_rows() for part in alternatives(row))
    for place, part in enumerate(parts):
        for begin in beginnings(part, _SIZE):
            whole[begin].add(place)
            for size in range(len(begin)):
                cut[begin[:size]].add(place)
    return _tuples(whole), _tuples(cut)


def _tuples(places: Mapping[str, set[int]]) -> dict[str, tuple[int, ...]]:
    return {begin: tuple(found) for begin, found in places.items()}


@lru_cache(maxsize=8_192)
def phrases_at(opening: str) -> tuple[_Phrase, ...]:
    """Return the phrases that can match text that begins with these characters, in their order."""
    whole, cut = _by_beginning()
    places: set[int] = set()
    marks = [""]
    for sign in ("", *opening):
        marks = [mark + one for mark in marks for one in (sign, ANY)] if sign else marks
        for mark in marks:
            places.update(whole.get(mark, ()))
    if len(opening) < _SIZE:
        # The text ends here, or its next characters decide nothing.
        for mark in marks:
            places.update(cut.get(mark, ()))
    return tuple(_phrases()[place] for place in sorted(places))


def _opening(low: str, at: int) -> str:
    """Return the characters by which the phrases at a place are chosen.

    `re` takes some letters beyond ASCII for others (`ſ` for `s`), so fewer of them decide.
    """
    opening = low[at : at + _SIZE]
    return opening if opening.isascii() else opening[:2]


def cues_in(text: str) -> tuple[Cue, ...]:
    """Return the cues of a text from left to right, without overlaps."""
    found: list[Cue] = []
    low = text.lower() if text.isascii() else "".join(_lower(sign) for sign in text)
    end = 0
    for place in _PLACE.finditer(low):
        at = place.start()
        if at < end:
            continue
        for kind, pattern in phrases_at(_opening(low, at)):
            m = pattern.match(text, at)
            if m is not None and m.end() > at:
                goes_on = kind is CueKind.AFFIRM and _is_denied_verb(text, found, m.start())
                if not goes_on and not _names_diagnosis(text, found, m):
                    found.append(Cue(at, m.end(), kind))
                end = m.end()
                break
    return tuple(found)


def _is_denied_verb(text: str, found: list[Cue], start: int) -> bool:
    """Return whether `or` joins a verb to a denied verb (`never smoked or had hepatitis`)."""
    if not found or found[-1].kind not in (CueKind.NOT, CueKind.NEAR_NOT):
        return False
    return _OR_VERB.search(text, found[-1].end, start) is not None


def _names_diagnosis(text: str, found: list[Cue], m: re.Match[str]) -> bool:
    """Return whether `diagnosis of` is the object of the cue before (`against the diagnosis of`).

    Such words state nothing themselves.
    """
    if not _DIAGNOSIS.match(m.group()):
        return False
    ruling = next((c for c in reversed(found) if c.kind not in _OF_TIME), None)
    if ruling is None or ruling.kind not in _OF_DIAGNOSIS:
        return False
    return _DETERMINED.fullmatch(text, ruling.end, m.start()) is not None


def _lower(sign: str) -> str:
    """Return the lower case of one character, if this is one character too."""
    low = sign.lower()
    return low if len(low) == 1 else sign
