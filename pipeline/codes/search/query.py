"""A query: the words of an entity's name as slots with alternatives, and its stated facets.

This module is pure. Any text is a query; a text without letters or digits has no slots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.codes.search.facets import SPECIMENS, Facets, Side, wound_of
from pipeline.codes.search.phrases import Form, longest, phrases
from pipeline.codes.search.words import MAX_WORDS, SearchWord, plain, tokens, words_of_tokens

MAX_CHARACTERS = 600

_PLACEHOLDER = 0xE000
"""The first private character; a placeholder marks a slot with alternatives."""
_SIDES = {
    **dict.fromkeys(("left", "l", "lt", "left-sided", "l-sided", "leftsided"), Side.LEFT),
    **dict.fromkeys(("right", "r", "rt", "right-sided", "r-sided", "rightsided"), Side.RIGHT),
    **dict.fromkeys(("bilateral", "bilat", "bilaterally", "bl", "both"), Side.BOTH),
}
_TRIMESTER = re.compile(r"\b(first|second|third|1st|2nd|3rd) tri(?:mester)?\b")
_TRIMESTERS = {"first": "1", "1st": "1", "second": "2", "2nd": "2", "third": "3", "3rd": "3"}
_ENCOUNTERS = (
    ("A", re.compile(r"\binitial (?:encounter|visit|enc)\b|\binitial$|\binitial(?= ,)")),
    (
        "D",
        re.compile(
            r"\b(?:subsequent|f u|follow up|follow-up|fu) (?:encounter|visit|enc)\b"
            r"|\bsubsequent$|\bsubsequent(?= ,)|(?<=, )(?:f u|follow up|follow-up)\b"
        ),
    ),
    ("S", re.compile(r"\bsequelae?\b(?: of)?|\blate effects?\b(?: of)?")),
)
_FRACTURE = re.compile(r"\b(?:fx|fxs|fracture|fractures|fractured|broken)\b")
_WOUND = re.compile(
    r"\b(?:for )?(?:open|compound|closed)\b(?: fracture\b)?"
    r"(?: types? (?:i{1,3}|[123])[abc]?\b(?:(?: ,)?(?: or)? (?:i{1,3}|[123])[abc]?\b)*)?"
)
_HEALING = re.compile(
    r"\b(?:with |w )?(routine|delayed) healing\b|\b(?:with )?(nonunion|malunion)\b"
)
_FETUS = re.compile(r"\bfetus (\d)\b")
_DOSE = re.compile(
    r"\b\d[\d.,/]*$|(?:\b\d\S*|\b\S{1,3})?\s*\b(?:mg|mcg|ug|g|ml|iu|units?|meq|mmol|puffs?|tabs?|tablets?"
    r"|caps?|capsules?|po|bid|tid|qid|qd|qhs|prn|daily)\b.*$|\b\d[\d.,]*(?:mg|mcg|ug|g|ml|iu|meq)\b.*$"
)


@dataclass(frozen=True)
class Slot:
    """One idea of the query; one of the alternatives must be covered."""

    alternatives: tuple[tuple[SearchWord, ...], ...]


@dataclass(frozen=True)
class Query:
    """A parsed query."""

    slots: tuple[Slot, ...]
    facets: Facets
    is_initial: bool = False
    """Whether the encounter, though not the text, says that treatment begins."""

    @property
    def words(self) -> set[str]:
        """Every word of every alternative."""
        return {word.text for slot in self.slots for option in slot.alternatives for word in option}


def tokens_of(text: str, category: str) -> tuple[str, ...]:
    """Return the tokens of an entity's name; a dose behind a product is left out."""
    text = plain(text[:MAX_CHARACTERS])
    if category in ("medication", "immunization", "allergy"):
        text = _DOSE.sub("", text) or text
    return tuple(tokens(text)[:MAX_WORDS])


def parse(found: Sequence[str], category: str, *, is_initial: bool = False) -> Query:
    """Return the query of the tokens of an entity's name."""
    specimen = ""
    if category == "lab":
        found, specimen = _without_specimen(found)
    text, facets = _stated(" ".join(found))
    replaced, options = _with_phrases(text.split(), category)
    replaced, side = _without_sides(replaced)
    slots = tuple(
        Slot(_alternatives(word, options))
        for word in words_of_tokens(replaced)
        if not word.is_joined
    )
    if not any(_tells(word) for s in slots for option in s.alternatives for word in option):
        slots = ()
    return Query(
        slots,
        replace(facets, side=side, specimen=specimen),
        is_initial,
    )


def _without_specimen(found: Sequence[str]) -> tuple[list[str], str]:
    stated = {SPECIMENS[token] for token in found if token in SPECIMENS}
    return [token for token in found if token not in SPECIMENS], next(iter(sorted(stated)), "")


def _tells(word: SearchWord) -> bool:
    """Return whether a word names anything: a digit or a letter alone does not."""
    return sum(character.isalpha() for character in word.text) > 1


def _stated(text: str) -> tuple[str, Facets]:
    """Return the text without stated facets, and the facets besides the side."""
    trimester = encounter = wound = healing = fetus = ""
    if match := _FETUS.search(text):
        fetus = match[1]
        text = text.replace(match[0], " ")
    if match := _TRIMESTER.search(text):
        trimester = _TRIMESTERS[match[1]]
        text = text.replace(match[0], " ")
    for letter, pattern in _ENCOUNTERS:
        if match := pattern.search(text):
            encounter = letter
            text = pattern.sub(" ", text)
            break
    if _FRACTURE.search(text):
        if match := _WOUND.search(text):
            wound = wound_of(match[0])
            text = text.replace(match[0], " ")
        if match := _HEALING.search(text):
            healing = match[1] or match[2]
            text = text.replace(match[0], " ")
    return text, Facets(Side.NONE, trimester, encounter, wound, healing, fetus)


def _with_phrases(found: list[str], category: str) -> tuple[list[str], list[tuple[Form, ...]]]:
    """Replace known forms; several alternatives become one placeholder."""
    known, length = phrases(category), longest(category)
    replaced: list[str] = []
    options: list[tuple[Form, ...]] = []
    at = 0
    while at < len(found):
        for size in range(min(length, len(found) - at), 0, -1):
            alternatives = known.get(tuple(found[at : at + size]))
            if alternatives is None:
                continue
            if len(alternatives) == 1:
                replaced.extend(alternatives[0])
            else:
                replaced.append(chr(_PLACEHOLDER + len(options)))
                options.append(alternatives)
            at += size
            break
        else:
            replaced.append(found[at])
            at += 1
    return replaced, options


def _without_sides(found: list[str]) -> tuple[list[str], Side]:
    kept: list[str] = []
    sides: set[Side] = set()
    before = ""
    for word in f" {' '.join(found)} ".replace(" b l ", " bilat ").split():
        if word in _SIDES:
            sides.add(_SIDES[word])
        elif not (word in ("side", "sided") and before in _SIDES):
            kept.append(word)
        before = word
    if Side.BOTH in sides or len(sides) > 1:
        return kept, Side.BOTH
    return kept, next(iter(sides), Side.NONE)


def _alternatives(
    word: SearchWord, options: list[tuple[Form, ...]]
) -> tuple[tuple[SearchWord, ...], ...]:
    number = ord(word.text[0]) - _PLACEHOLDER
    if not 0 <= number < len(options):
        return ((word,),)
    return tuple(
        tuple(
            SearchWord(each.text, each.is_negated or word.is_negated)
            for each in words_of_tokens(_without_sides(list(form))[0])
            if not each.is_joined
        )
        for form in options[number]
    )
