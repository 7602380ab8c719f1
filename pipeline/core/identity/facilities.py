"""Whether two printed names are of one facility. Imports nothing of the project."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

ALIKE = 0.88
"""Ratio of equal characters from which two names are one; a scanner spoils one letter in ten."""
SHORTEST_PREFIX = 8
"""Letters that a name needs to stand for the longer one that it begins, as a department does."""


def same_facility(a: str, b: str) -> bool:
    """Whether two printed names are of one facility, scanner slips and departments aside."""
    one, other = _plain(a), _plain(b)
    if not one or not other:
        return False
    if one == other or SequenceMatcher(None, one, other, autojunk=False).ratio() >= ALIKE:
        return True
    short, long = sorted((one, other), key=len)
    return len(short) >= SHORTEST_PREFIX and long.startswith(short + " ")


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.casefold()))
