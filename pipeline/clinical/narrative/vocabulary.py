"""The closed list of words and cues of a narrative, read from `words.txt`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pipeline.clinical.narrative.text import tokens_of

_LIST = Path(__file__).with_name("words.txt")


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
            for phrase in row.split(";"):
                words = tuple(t.text for t in tokens_of(phrase))
                if words:
                    found[words] = CuePhrase(kind=kind, direction=direction)
    verbs = {words[0] for words, each in found.items() if each.kind == "verb"} | {
        "denies",
        "denied",
    }
    return {
        words: CuePhrase(
            kind=each.kind, direction=each.direction, begins_with_verb=words[0] in verbs
        )
        for words, each in found.items()
    }


@cache
def longest_phrase() -> int:
    """Return the number of tokens of the longest phrase."""
    return max(len(words) for words in phrases())
