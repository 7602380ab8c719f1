"""Marks that say that the words behind them come from an older document.

`[Copied from the note of 2019]` makes no statement about today: a person must read the paragraph.
"""

from __future__ import annotations

import re
from functools import lru_cache

_OLD = r"(?:(?:the|his|her|an?)[ ])?(?:previous|prior|last|old|older|earlier|outside)"
_DOCUMENT = (
    r"(?:notes?|visits?|admissions?|h&p|consults?|records?|charts?|documentation|encounters?"
    r"|(?:discharge[ ])?summar(?:y|ies)|hospitali[sz]ations?|stays?)"
)
_MARK = re.compile(
    r"(?:\b(?:copied|carried|pulled|pasted|imported|brought)(?:[ ]forward)?[ ](?:from|forward)\b"
    r"|\bcopy[- ]?forward(?:ed)?\b"
    rf"|\b(?:as[ ])?(?:per|from|quot(?:ed|ing)[ ]from|taken[ ]from|according[ ]to)[ ]{_OLD}[ ]"
    rf"(?:\w+[ ])?{_DOCUMENT}\b)[^.;:\n\]]{{0,60}}(?:[:\]]|[ ][–—-][ ]|\n)",
    re.I,
)
_NOW = re.compile(
    r"\b(?:today|currently|this[ ]visit|on[ ]today['’]s|interval[ ]history|now)\b", re.I
)
_MOST = 1_500


def is_below_copy_mark(text: str, start: int) -> bool:
    """Return whether such a mark is above `start` in the same paragraph.

    A word for today behind the mark ends the copied words.
    """
    marks = _marks(text)
    at = next((end for end in reversed(marks) if end <= start), None)
    if at is None or start - at > _MOST or "\n\n" in text[at:start]:
        return False
    return _NOW.search(text, at, start) is None


@lru_cache(maxsize=8)
def _marks(text: str) -> tuple[int, ...]:
    return tuple(m.end() for m in _MARK.finditer(text))
