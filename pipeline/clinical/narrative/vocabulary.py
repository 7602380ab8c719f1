"""The closed list of words and cues of a narrative, read from `words.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from pipeline.clinical.narrative.text import starts_of, tokens_of

_LIST = Path(__file__).with_name("words.txt")
_ALTERNATIVES = re.compile(r"\(([^)]*)\)")
_BE = ("is", "are", "was", "were")
_AT_A_VISIT = ("", "during the ", "during a ", "during an ", "during this ")


@dataclass(frozen=True, kw_only=True, slots=True)
class CuePhrase:
    """The meaning of a phrase: the section of the list, and the direction in which a cue acts."""

    kind: str
    direction: str = ""
    begins_with_verb: bool = False


@cache
def phrases() -> dict[tuple[str, ...], CuePhrase]:
    """Return the meaning of each phrase by its tokens. The last section with a phrase wins."""
    found: dict[tuple[str, ...], CuePhrase] = {}
    kind = direction = ""
    for line in _LIST.read_text(encoding="utf-8").splitlines():
        row = line.strip()
        if row.startswith("["):
            kind, _, direction = row.strip("[]").partition(" ")
        elif row and not row.startswith("#"):
            for phrase in _each(row, direction):
                words = tuple(t.text for t in tokens_of(phrase))
                if words:
                    found[words] = CuePhrase(kind=kind, direction=direction)
    single = {words[0] for words, each in found.items() if each.kind == "verb" and len(words) == 1}
    verbs = single | {"denies", "denied", "remains"}
    return {
        words: CuePhrase(
            kind=each.kind, direction=each.direction, begins_with_verb=words[0] in verbs
        )
        for words, each in found.items()
    }


def _each(row: str, direction: str) -> Iterator[str]:
    """Yield the phrases of a row of the list, with each of their alternatives."""
    for phrase in row.split(";"):
        parts = [part.split("|") for part in _ALTERNATIVES.split(phrase)]
        for chosen in product(*parts):
            for before in _AT_A_VISIT if direction == "encounter" else ("",):
                yield from _forms(before + "".join(chosen).strip(), direction)


def _forms(phrase: str, direction: str) -> Iterator[str]:
    """Yield a phrase, and a predicate in singular and plural, present and past: `are pending`."""
    yield phrase
    verb, _, rest = phrase.partition(" ")
    if direction == "post" and verb in _BE and rest:
        yield from (f"{each} {rest}" for each in _BE if each != verb)


@cache
def phrase_starts() -> frozenset[str]:
    """Return the first tokens of all phrases."""
    return starts_of(phrases())


@cache
def longest_phrase() -> int:
    """Return the number of tokens of the longest phrase."""
    return max(len(words) for words in phrases())
